//! Operators, casts and classes of operators: `pg_operator`, `pg_cast`, `pg_opclass`.
//!
//! `operators.txt` and `casts.txt` have a line for each operator and cast of PostgreSQL 15 that is
//! here. The words of an operator are number, name, kind, and whether it can merge and hash. The
//! types of its sides and of its result follow. Last are the numbers of its commutator, its
//! negator, its function and the two functions that estimate. The words of a cast are the columns
//! of `pg_cast`.

use super::Kind::{Bool, Char, Name, Oid};
use super::{Cell, Columns, Source, View, key, unique, view};

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_operator", 2617, PG_OPERATOR, pg_operator).keyed(&[
        unique("pg_operator_oid_index", 2688, &["oid"]),
        key("pg_operator_oprname_l_r_n_index", 2689, &["oprname"]),
    ]),
    view("pg_cast", 2605, PG_CAST, pg_cast).keyed(&[
        unique("pg_cast_oid_index", 2660, &["oid"]),
        unique("pg_cast_source_target_index", 2661, &["castsource", "casttarget"]),
    ]),
    view("pg_opclass", 2616, PG_OPCLASS, pg_opclass).keyed(&[unique(
        "pg_opclass_oid_index",
        2687,
        &["oid"],
    )]),
];

/// The lines of a file that are a row whose column has the wanted number, if one is wanted.
fn lines(text: &'static str, wanted: Option<u32>) -> impl Iterator<Item = Vec<&'static str>> {
    let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    words.filter(move |words| {
        wanted.is_none_or(|oid| words.first().is_some_and(|word| word.parse() == Ok(oid)))
    })
}

/// The number in a row's word.
fn number(words: &[&str], place: usize) -> Option<u32> {
    words.get(place)?.parse().ok()
}

/// The types that a cast converts from and to.
pub(crate) fn cast(oid: u32) -> Option<(u32, u32)> {
    let words = lines(include_str!("casts.txt"), Some(oid)).next()?;
    Some((number(&words, 1)?, number(&words, 2)?))
}

/// The symbol of an operator and the types of its sides, of which the left one is 0 if it has none.
pub(crate) fn operator(oid: u32) -> Option<(&'static str, u32, u32)> {
    let words = lines(include_str!("operators.txt"), Some(oid)).next()?;
    Some((words.get(1)?, number(&words, 5)?, number(&words, 6)?))
}

/// The number of the cast between two types.
pub(crate) fn cast_between(source: i64, target: i64) -> Option<u32> {
    let is_it = |words: &Vec<&str>| {
        number(words, 1).map(i64::from) == Some(source)
            && number(words, 2).map(i64::from) == Some(target)
    };
    number(&lines(include_str!("casts.txt"), None).find(is_it)?, 0)
}

/// The number of the operator of a symbol between two types. The left one is 0 if it has none.
pub(crate) fn operator_named(symbol: &str, left: i64, right: i64) -> Option<u32> {
    let is_it = |words: &Vec<&str>| {
        words.get(1) == Some(&symbol)
            && number(words, 5).map(i64::from) == Some(left)
            && number(words, 6).map(i64::from) == Some(right)
    };
    number(&lines(include_str!("operators.txt"), None).find(is_it)?, 0)
}

/// The name of a class of operators.
pub(crate) fn operator_class(oid: u32) -> Option<&'static str> {
    OPCLASSES.iter().find(|class| class.0 == oid).map(|class| class.1)
}

/// A word as a value of a column.
fn cell(word: &str, kind: super::Kind) -> Cell {
    match kind {
        Bool => (word == "1").into(),
        Oid => word.parse::<u32>().map_or(Cell::Null, Cell::from),
        _ => word.into(),
    }
}

const PG_OPERATOR: Columns = &[
    ("oid", Oid),
    ("oprname", Name),
    ("oprnamespace", Oid),
    ("oprowner", Oid),
    ("oprkind", Char),
    ("oprcanmerge", Bool),
    ("oprcanhash", Bool),
    ("oprleft", Oid),
    ("oprright", Oid),
    ("oprresult", Oid),
    ("oprcom", Oid),
    ("oprnegate", Oid),
    ("oprcode", Oid),
    ("oprrest", Oid),
    ("oprjoin", Oid),
];

fn pg_operator(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let name = source.wanted_name("oprname");
    let row = |words: Vec<&'static str>| {
        let mut words = words.into_iter();
        let cell = |(column, kind): &(&str, super::Kind)| match *column {
            "oprnamespace" => 11.into(),
            "oprowner" => 10.into(),
            _ => words.next().map_or(Cell::Null, |word| cell(word, *kind)),
        };
        PG_OPERATOR.iter().map(cell).collect()
    };
    lines(include_str!("operators.txt"), source.wanted_oid("oid"))
        .filter(|words| name.is_none_or(|name| words.get(1) == Some(&name)))
        .map(row)
        .collect()
}

const PG_CAST: Columns = &[
    ("oid", Oid),
    ("castsource", Oid),
    ("casttarget", Oid),
    ("castfunc", Oid),
    ("castcontext", Char),
    ("castmethod", Char),
];

fn pg_cast(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |words: Vec<&'static str>| {
        words.iter().zip(PG_CAST).map(|(word, (_, kind))| cell(word, *kind)).collect()
    };
    lines(include_str!("casts.txt"), source.wanted_oid("oid")).map(row).collect()
}

const PG_OPCLASS: Columns = &[
    ("oid", Oid),
    ("opcmethod", Oid),
    ("opcname", Name),
    ("opcnamespace", Oid),
    ("opcowner", Oid),
    ("opcfamily", Oid),
    ("opcintype", Oid),
    ("opcdefault", Bool),
    ("opckeytype", Oid),
];

/// Number, name, number of the family and of the type of the B-tree classes that are defaults.
const OPCLASSES: &[(u32, &str, u32, u32)] = &[
    (1978, "int4_ops", 1976, 23),
    (1979, "int2_ops", 1976, 21),
    (3122, "date_ops", 434, 1082),
    (3123, "float8_ops", 1970, 701),
    (3124, "int8_ops", 1976, 20),
    (3125, "numeric_ops", 1988, 1700),
    (3126, "text_ops", 1994, 25),
    (3127, "timestamptz_ops", 434, 1184),
    (3128, "timestamp_ops", 434, 1114),
    (10002, "bool_ops", 424, 16),
    (10012, "bpchar_ops", 426, 1042),
    (10013, "bytea_ops", 428, 17),
    (10020, "float4_ops", 1970, 700),
];

fn pg_opclass(_: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |(oid, name, family, ty): &(u32, &str, u32, u32)| {
        vec![
            (*oid).into(),
            403.into(),
            (*name).into(),
            11.into(),
            10.into(),
            (*family).into(),
            (*ty).into(),
            true.into(),
            0.into(),
        ]
    };
    OPCLASSES.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::functions::type_number;
    use crate::expr::operators;

    #[test]
    fn every_operator_of_the_evaluator_has_a_line() {
        let sides: Vec<_> = lines(include_str!("operators.txt"), None)
            .map(|words| (words[1], words[5].parse().unwrap(), words[6].parse().unwrap()))
            .collect();
        for operator in operators::all() {
            let types: Vec<u32> = operator.args.iter().map(|param| type_number(*param)).collect();
            let (left, right) = match types[..] {
                [right] => (0, right),
                [left, right] => (left, right),
                _ => unreachable!("an operator has one side or two"),
            };
            let symbol = operator.symbol;
            assert!(sides.contains(&(symbol, left, right)), "{left} {symbol} {right}");
        }
    }
}
