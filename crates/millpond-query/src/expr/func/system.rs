//! What clients ask of the system: names of types, comments, encodings.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::catalog::{BOOL, INT4, NAME, OID, Proc, TEXT, proc};
use super::value::body;
use crate::DataType;
use crate::error::{Result, SqlError};

pub(super) static PROCS: &[Proc] = &[
    proc(
        1081,
        "format_type",
        &[OID, INT4],
        TEXT,
        body!(|oid: Option<i64>, typmod: Option<i32>| oid
            .map(|oid| format_type(oid, typmod))
            .transpose()),
    )
    .stable()
    .called_on_null(),
    // There are no comments.
    proc(
        1215,
        "obj_description",
        &[OID, NAME],
        TEXT,
        body!(|_oid: i64, _catalog: &str| None::<String>),
    )
    .stable(),
    proc(1348, "obj_description", &[OID], TEXT, body!(|_oid: i64| None::<String>)).stable(),
    proc(
        1216,
        "col_description",
        &[OID, INT4],
        TEXT,
        body!(|_oid: i64, _column: i32| None::<String>),
    )
    .stable(),
    proc(
        1993,
        "shobj_description",
        &[OID, NAME],
        TEXT,
        body!(|_oid: i64, _catalog: &str| None::<String>),
    )
    .stable(),
    proc(3810, "pg_is_in_recovery", &[], BOOL, body!(|| false)).volatile(),
    proc(1597, "pg_encoding_to_char", &[INT4], NAME, body!(|number: i32| encoding_name(number)))
        .stable(),
    proc(1264, "pg_char_to_encoding", &[NAME], INT4, body!(|name: &str| encoding_number(name)))
        .stable(),
    proc(
        2319,
        "pg_encoding_max_length",
        &[INT4],
        INT4,
        body!(|number: i32| longest_character(encoding_name(number))),
    ),
    proc(2854, "pg_my_temp_schema", &[], OID, body!(|| 0i64)).stable(),
    proc(2855, "pg_is_other_temp_schema", &[OID], BOOL, body!(|_oid: i64| false)).stable(),
    proc(3163, "pg_trigger_depth", &[], INT4, body!(|| 0i32)).stable(),
    proc(315, "pg_jit_available", &[], BOOL, body!(|| false)).volatile(),
];

/// The names of PostgreSQL 15's own types, by their numbers: those that are here and all others.
static TYPE_NAMES: LazyLock<HashMap<i64, &str>> = LazyLock::new(|| {
    let parsed = |line: &'static str| {
        let (oid, name) = line.split_once(' ')?;
        Some((oid.parse().ok()?, name))
    };
    include_str!("type_names.txt").lines().filter_map(parsed).collect()
});

/// The number of a type that PostgreSQL prints so.
pub(crate) fn type_named(name: &str) -> Option<i64> {
    TYPE_NAMES.iter().find(|(_, own)| **own == name).map(|(oid, _)| *oid)
}

/// The name of a type as SQL has it. A modifier that is NULL does not show, not even as missing.
pub fn format_type(oid: i64, typmod: Option<i32>) -> Result<String> {
    if oid == 0 {
        return Ok("-".to_owned());
    }
    let modifier = typmod.filter(|typmod| *typmod >= 0);
    let ty = u32::try_from(oid).ok().and_then(|oid| DataType::from_oid(oid, typmod.unwrap_or(-1)));
    match (oid, ty, modifier) {
        (1042, _, None) if typmod.is_some() => Ok("bpchar".to_owned()),
        (1042, Some(ty @ DataType::Char(_)), Some(_)) => Ok(ty.to_string()),
        (1114 | 1184 | 1083 | 1266, _, Some(digits)) => {
            let name = if matches!(oid, 1114 | 1184) { "timestamp" } else { "time" };
            let zone = if matches!(oid, 1114 | 1083) { "without" } else { "with" };
            Ok(format!("{name}({digits}) {zone} time zone"))
        }
        (1043 | 1700, Some(ty), Some(_)) => Ok(ty.to_string()),
        (1186 | 1560 | 1562, _, Some(_)) => {
            Err(SqlError::unsupported("the modifier of such a type"))
        }
        _ => Ok(TYPE_NAMES.get(&oid).map_or("???", |name| name).to_owned()),
    }
}

/// PostgreSQL's encodings by their numbers.
const ENCODINGS: &[&str] = &[
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

fn encoding_name(number: i32) -> &'static str {
    usize::try_from(number).ok().and_then(|number| ENCODINGS.get(number)).copied().unwrap_or("")
}

/// How many bytes a character of an encoding can have.
fn longest_character(encoding: &str) -> Option<i32> {
    Some(match encoding {
        "" => return None,
        "UTF8" | "EUC_TW" | "MULE_INTERNAL" | "GB18030" => 4,
        "EUC_JP" | "EUC_CN" | "EUC_KR" | "EUC_JIS_2004" | "JOHAB" => 3,
        "SJIS" | "BIG5" | "GBK" | "UHC" | "SHIFT_JIS_2004" => 2,
        _ => 1,
    })
}

fn encoding_number(name: &str) -> i32 {
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted = plain(name);
    let wanted = if wanted == "unicode" { "utf8".to_owned() } else { wanted };
    ENCODINGS.iter().position(|own| plain(own) == wanted).map_or(-1, |place| place as i32)
}
