//! `pg_type`: the types that columns and views have, with PostgreSQL's numbers.

use super::Kind::{Bool, Char, Int2, Int4, Name, Oid, Text};
use super::{Cell, Kind, Source, View};

/// The views of this file.
pub const VIEWS: &[View] =
    &[View { schema: "pg_catalog", name: "pg_type", oid: 1247, columns: PG_TYPE, rows: pg_type }];

const PG_TYPE: &[(&str, Kind)] = &[
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
    ("typelem", Oid),
    ("typarray", Oid),
    ("typbasetype", Oid),
    ("typtypmod", Int4),
    ("typnotnull", Bool),
    ("typndims", Int4),
    ("typcollation", Oid),
    ("typdefault", Text),
];

/// Number, name, length, category, number of the array type.
const TYPES: &[(i64, &str, i64, &str, i64)] = &[
    (16, "bool", 1, "B", 1000),
    (17, "bytea", -1, "U", 1001),
    (18, "char", 1, "Z", 1002),
    (19, "name", 64, "S", 1003),
    (20, "int8", 8, "N", 1016),
    (21, "int2", 2, "N", 1005),
    (23, "int4", 4, "N", 1007),
    (25, "text", -1, "S", 1009),
    (26, "oid", 4, "N", 1028),
    (114, "json", -1, "U", 199),
    (700, "float4", 4, "N", 1021),
    (701, "float8", 8, "N", 1022),
    (705, "unknown", -2, "X", 0),
    (1042, "bpchar", -1, "S", 1014),
    (1043, "varchar", -1, "S", 1015),
    (1082, "date", 4, "D", 1182),
    (1114, "timestamp", 8, "D", 1115),
    (1184, "timestamptz", 8, "D", 1185),
    (1700, "numeric", -1, "N", 1231),
    (2249, "record", -1, "P", 2287),
    (2278, "void", 4, "P", 0),
    (2950, "uuid", 16, "U", 2951),
];

/// Names that declarations use for types that are stored under another.
const SPELLINGS: &[(&str, &str)] = &[
    ("boolean", "bool"),
    ("smallint", "int2"),
    ("integer", "int4"),
    ("int", "int4"),
    ("bigint", "int8"),
    ("real", "float4"),
    ("double precision", "float8"),
    ("decimal", "numeric"),
    ("character varying", "varchar"),
    ("character", "bpchar"),
    ("timestamp without time zone", "timestamp"),
    ("timestamp with time zone", "timestamptz"),
];

/// The number of a type by any of its names.
pub fn type_oid(name: &str) -> Option<i64> {
    let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let stored = SPELLINGS.iter().find(|spelling| spelling.0 == bare).map_or(bare, |found| found.1);
    TYPES.iter().find(|ty| ty.1 == stored).map(|ty| ty.0)
}

/// The name of the type of that number.
pub fn type_name(oid: i64) -> Option<&'static str> {
    let array = TYPES.iter().any(|ty| ty.4 == oid && oid != 0);
    TYPES.iter().find(|ty| ty.0 == oid).map(|ty| ty.1).or(array.then_some("array"))
}

/// How many bytes values of the type of that number have; -1 if that differs.
pub fn type_len(oid: u32) -> i64 {
    TYPES.iter().find(|ty| ty.0 == i64::from(oid)).map_or(-1, |ty| ty.2)
}

fn pg_type(_: &Source<'_>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for &(oid, name, length, category, array) in TYPES {
        let kind = if category == "P" { "p" } else { "b" };
        rows.push(row(oid, name, length, kind, category, 0, array));
        if array != 0 {
            rows.push(row(array, &format!("_{name}"), -1, "b", "A", oid, 0));
        }
    }
    rows
}

fn row(
    oid: i64,
    name: &str,
    length: i64,
    kind: &str,
    category: &str,
    element: i64,
    array: i64,
) -> Vec<Cell> {
    let collation = if category == "S" { 100 } else { 0 };
    vec![
        oid.into(),
        name.into(),
        11.into(),
        10.into(),
        length.into(),
        (length > 0 && length <= 8).into(),
        kind.into(),
        category.into(),
        false.into(),
        true.into(),
        ",".into(),
        0.into(),
        element.into(),
        array.into(),
        0.into(),
        (-1).into(),
        false.into(),
        0.into(),
        collation.into(),
        Cell::Null,
    ]
}
