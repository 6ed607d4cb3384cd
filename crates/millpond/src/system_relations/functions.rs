//! Functions and what belongs to them: `pg_proc`, `pg_language`; classes of operators:
//! `pg_opclass`.

use std::sync::LazyLock;

use super::Kind::{
    AclArray, Bool, Char, CharArray, Float4, Int2, Name, Oid, OidVector, Text, TextArray,
};
use super::types::{IoFunction, io_functions};
use super::{Cell, Columns, Source, View, key, unique, view};
use crate::expr::functions::{self, Proc, Volatility, type_number};

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_proc", 1255, PG_PROC, pg_proc).keyed(&[
        unique("pg_proc_oid_index", 2690, &["oid"]),
        key("pg_proc_proname_args_nsp_index", 2691, &["proname"]),
    ]),
    view("pg_language", 2612, PG_LANGUAGE, pg_language).keyed(&[unique(
        "pg_language_oid_index",
        2682,
        &["oid"],
    )]),
    view("pg_opclass", 2616, PG_OPCLASS, pg_opclass).keyed(&[unique(
        "pg_opclass_oid_index",
        2687,
        &["oid"],
    )]),
];

const PG_PROC: Columns = &[
    ("oid", Oid),
    ("proname", Name),
    ("pronamespace", Oid),
    ("proowner", Oid),
    ("prolang", Oid),
    ("procost", Float4),
    ("prorows", Float4),
    ("provariadic", Oid),
    ("prosupport", Oid),
    ("prokind", Char),
    ("prosecdef", Bool),
    ("proleakproof", Bool),
    ("proisstrict", Bool),
    ("proretset", Bool),
    ("provolatile", Char),
    ("proparallel", Char),
    ("pronargs", Int2),
    ("pronargdefaults", Int2),
    ("prorettype", Oid),
    ("proargtypes", OidVector),
    ("proallargtypes", OidVector),
    ("proargmodes", CharArray),
    ("proargnames", TextArray),
    ("proargdefaults", Text),
    ("protrftypes", OidVector),
    ("prosrc", Text),
    ("probin", Text),
    ("prosqlbody", Text),
    ("proconfig", TextArray),
    ("proacl", AclArray),
];

/// The functions that PostgreSQL has a number for, by their numbers.
static BY_NUMBER: LazyLock<Vec<&'static Proc>> = LazyLock::new(|| {
    let mut procs: Vec<_> = functions::all().filter(|proc| proc.oid != 0).collect();
    procs.sort_by_key(|proc| proc.oid);
    procs
});

/// The function of a number.
pub(crate) fn function(oid: u32) -> Option<&'static Proc> {
    let place = BY_NUMBER.binary_search_by_key(&oid, |proc| proc.oid).ok()?;
    BY_NUMBER.get(place).copied()
}

fn pg_proc(source: &Source<'_>) -> Vec<Vec<Cell>> {
    if let Some(oid) = source.wanted_oid("oid") {
        let own = function(oid).map(proc_row);
        let of_types = io_functions().filter(|function| function.oid == oid).map(io_row);
        return own.into_iter().chain(of_types).collect();
    }
    match source.wanted_name("proname") {
        Some(name) => {
            let procs = functions::named(name).iter().filter(|proc| proc.oid != 0);
            let of_types = io_functions().filter(|function| function.name == name);
            procs.map(|proc| proc_row(proc)).chain(of_types.map(io_row)).collect()
        }
        None => {
            let own = BY_NUMBER.iter().map(|proc| proc_row(proc));
            own.chain(io_functions().map(io_row)).collect()
        }
    }
}

/// A function of input or output. All its types are said to be `internal`: clients look for its
/// name.
fn io_row(function: &IoFunction) -> Vec<Cell> {
    const INTERNAL_TYPE: u32 = 2281;
    let row = PG_PROC.iter().map(|(column, kind)| match *column {
        "oid" => function.oid.into(),
        "proname" | "prosrc" => function.name.into(),
        "pronamespace" => 11.into(),
        "proowner" => 10.into(),
        "prolang" => INTERNAL.into(),
        "procost" | "pronargs" => 1.into(),
        "prokind" => "f".into(),
        "proisstrict" => true.into(),
        "provolatile" => "i".into(),
        "proparallel" => "s".into(),
        "prorettype" => INTERNAL_TYPE.into(),
        "proargtypes" => Cell::Ints(vec![INTERNAL_TYPE.into()]),
        _ => match kind {
            Bool => false.into(),
            Oid | Int2 | Float4 => 0.into(),
            _ => Cell::Null,
        },
    });
    row.collect()
}

fn proc_row(proc: &'static Proc) -> Vec<Cell> {
    let last = proc.args.last().filter(|_| proc.variadic);
    let types = proc.args.iter().map(|param| type_number(*param).into()).collect();
    vec![
        proc.oid.into(),
        proc.name.into(),
        11.into(),
        10.into(),
        INTERNAL.into(),
        1.into(),
        0.into(),
        last.map_or(0, |param| type_number(*param)).into(),
        0.into(),
        "f".into(),
        false.into(),
        false.into(),
        proc.strict.into(),
        proc.returns_rows().into(),
        match proc.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        }
        .into(),
        "s".into(),
        proc.args.len().into(),
        0.into(),
        type_number(proc.result).into(),
        Cell::Ints(types),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        proc.name.into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]
}

/// The number of the language of functions that are part of the server.
const INTERNAL: u32 = 12;

/// The languages there are.
pub(crate) const LANGUAGES: [(u32, &str); 1] = [(INTERNAL, "internal")];

/// Whether a function has this number.
pub(crate) fn is_function(oid: u32) -> bool {
    function(oid).is_some() || io_functions().any(|function| function.oid == oid)
}

const PG_LANGUAGE: Columns = &[
    ("oid", Oid),
    ("lanname", Name),
    ("lanowner", Oid),
    ("lanispl", Bool),
    ("lanpltrusted", Bool),
    ("lanplcallfoid", Oid),
    ("laninline", Oid),
    ("lanvalidator", Oid),
    ("lanacl", AclArray),
];

fn pg_language(_: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![vec![
        INTERNAL.into(),
        "internal".into(),
        10.into(),
        false.into(),
        false.into(),
        0.into(),
        0.into(),
        2246.into(),
        Cell::Null,
    ]]
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
