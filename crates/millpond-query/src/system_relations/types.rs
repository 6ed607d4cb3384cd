//! `pg_type`: the types that values, columns and system relations have, as PostgreSQL describes
//! them; and the functions that it names as their input and output.

use std::sync::LazyLock;

use super::Kind::{AclArray, Bool, Char, Int2, Int4, Name, Oid, Text};
use super::{Cell, Columns, Source, View, unique, view};

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[view("pg_type", 1247, PG_TYPE, pg_type).keyed(&[
    unique("pg_type_oid_index", 2703, &["oid"]),
    unique("pg_type_typname_nsp_index", 2704, &["typname", "typnamespace"]),
])];

const PG_TYPE: Columns = &[
    ("oid", Oid),
    ("typname", Name),
    ("typnamespace", Oid),
    ("typowner", Oid),
    ("typlen", Int2),
    ("typbyval", Bool),
    ("typtype", Char),
    ("typcategory", Char),
    ("typispreferred", Bool),
    ("typisdefined", Bool),
    ("typdelim", Char),
    ("typrelid", Oid),
    ("typsubscript", Oid),
    ("typelem", Oid),
    ("typarray", Oid),
    ("typinput", Oid),
    ("typoutput", Oid),
    ("typreceive", Oid),
    ("typsend", Oid),
    ("typmodin", Oid),
    ("typmodout", Oid),
    ("typanalyze", Oid),
    ("typalign", Char),
    ("typstorage", Char),
    ("typnotnull", Bool),
    ("typbasetype", Oid),
    ("typtypmod", Int4),
    ("typndims", Int4),
    ("typcollation", Oid),
    ("typdefaultbin", Text),
    ("typdefault", Text),
    ("typacl", AclArray),
];

/// `array_subscript_handler`
const ARRAY_SUBSCRIPTS: i64 = 6179;

/// A function that reads or writes values of a type. What there is none for has number 0.
pub(crate) struct IoFunction {
    pub(crate) oid: u32,
    pub(crate) name: &'static str,
}

struct PgType {
    oid: i64,
    name: &'static str,
    len: i64,
    by_value: bool,
    kind: &'static str,
    category: &'static str,
    preferred: bool,
    element: i64,
    array: i64,
    /// Input and output of text, then of the binary format.
    io: [IoFunction; 4],
    align: &'static str,
    storage: &'static str,
    collation: i64,
}

static TYPES: LazyLock<Vec<PgType>> =
    LazyLock::new(|| include_str!("types.txt").lines().filter_map(parsed).collect());

/// A line of the file; `None` of a comment.
fn parsed(line: &'static str) -> Option<PgType> {
    let mut words = line.split(' ');
    let mut word = || words.next();
    let function = |word: &'static str| {
        let (name, oid) = word.split_once(':')?;
        Some(IoFunction { oid: oid.parse().ok()?, name })
    };
    Some(PgType {
        oid: word()?.parse().ok()?,
        name: word()?,
        len: word()?.parse().ok()?,
        by_value: word()? == "t",
        kind: word()?,
        category: word()?,
        preferred: word()? == "t",
        element: word()?.parse().ok()?,
        array: word()?.parse().ok()?,
        io: [function(word()?)?, function(word()?)?, function(word()?)?, function(word()?)?],
        align: word()?,
        storage: word()?,
        collation: word()?.parse().ok()?,
    })
}

/// Spellings of names beside `typname` and those that PostgreSQL itself prints.
const SPELLINGS: &[(&str, i64)] =
    &[("int", 23), ("decimal", 1700), ("dec", 1700), ("char", 1042), ("\"char\"", 18)];

/// The number of a type by any of its names, an array's `name[]` among them.
pub fn type_oid(name: &str) -> Option<i64> {
    let bare = name.trim();
    let bare = bare.strip_prefix("pg_catalog.").unwrap_or(bare);
    if let Some(element) = bare.strip_suffix("[]") {
        let element = type_oid(element)?;
        return TYPES
            .iter()
            .find(|ty| ty.oid == element)
            .map(|ty| ty.array)
            .filter(|&oid| oid != 0);
    }
    let folded = bare.to_ascii_lowercase();
    let spelled = SPELLINGS.iter().find(|spelling| spelling.0 == folded).map(|found| found.1);
    spelled
        .or_else(|| TYPES.iter().find(|ty| ty.name == folded).map(|ty| ty.oid))
        .or_else(|| crate::expr::type_named(&folded))
}

/// Whether a type has this number.
pub fn is_type(oid: i64) -> bool {
    TYPES.iter().any(|ty| ty.oid == oid)
}

/// PostgreSQL's `typname` of a type.
pub(crate) fn type_name(oid: i64) -> Option<&'static str> {
    TYPES.iter().find(|ty| ty.oid == oid).map(|ty| ty.name)
}

/// How many bytes values of the type of that number have; -1 if that differs.
pub(crate) fn type_len(oid: u32) -> i64 {
    TYPES.iter().find(|ty| ty.oid == i64::from(oid)).map_or(-1, |ty| ty.len)
}

/// The functions of input and output, each once.
pub(crate) fn io_functions() -> impl Iterator<Item = &'static IoFunction> {
    static FUNCTIONS: LazyLock<Vec<&'static IoFunction>> = LazyLock::new(|| {
        let mut all: Vec<_> =
            TYPES.iter().flat_map(|ty| &ty.io).filter(|function| function.oid != 0).collect();
        all.sort_by_key(|function| function.oid);
        all.dedup_by_key(|function| function.oid);
        all
    });
    FUNCTIONS.iter().copied()
}

fn pg_type(_: &Source<'_>) -> Vec<Vec<Cell>> {
    TYPES.iter().map(row).collect()
}

fn row(ty: &PgType) -> Vec<Cell> {
    let [input, output, receive, send] = &ty.io;
    let subscripts = if ty.category == "A" { ARRAY_SUBSCRIPTS } else { 0 };
    vec![
        ty.oid.into(),
        ty.name.into(),
        11.into(),
        10.into(),
        ty.len.into(),
        ty.by_value.into(),
        ty.kind.into(),
        ty.category.into(),
        ty.preferred.into(),
        true.into(),
        ",".into(),
        0.into(),
        subscripts.into(),
        ty.element.into(),
        ty.array.into(),
        input.oid.into(),
        output.oid.into(),
        receive.oid.into(),
        send.oid.into(),
        0.into(),
        0.into(),
        0.into(),
        ty.align.into(),
        ty.storage.into(),
        false.into(),
        0.into(),
        (-1).into(),
        0.into(),
        ty.collation.into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;

    #[test]
    fn every_line_is_a_type() {
        let lines = include_str!("types.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(TYPES.len(), lines.count());
        // Elements and arrays name each other.
        for ty in TYPES.iter().filter(|ty| ty.array != 0) {
            let array = TYPES.iter().find(|other| other.oid == ty.array).unwrap();
            assert_eq!(array.element, ty.oid, "{}", ty.name);
        }
    }

    #[test]
    fn what_values_have_is_there() {
        for oid in (1..10_000).filter(|oid| DataType::from_oid(*oid, -1).is_some()) {
            let ty = TYPES.iter().find(|ty| ty.oid == i64::from(oid)).unwrap();
            assert_eq!(Some(ty.name), DataType::from_oid(oid, -1).map(DataType::type_name));
        }
    }

    #[test]
    fn types_have_many_names() {
        for (name, oid) in [
            ("_int4", 1007),
            ("integer[]", 1007),
            ("int", 23),
            ("char", 1042),
            ("\"char\"", 18),
            ("timestamp with time zone", 1184),
            ("pg_catalog.varchar[]", 1015),
            ("JSONB", 3802),
        ] {
            assert_eq!(type_oid(name), Some(oid), "{name}");
        }
        assert_eq!(type_oid("nosuch"), None);
        assert_eq!(type_oid("void[]"), None);
    }
}
