//! Objects of the catalog in words, and as names that tools can store: `pg_describe_object`,
//! `pg_identify_object`.

use super::catalog::{INT4, OID, Proc, RECORD_TYPE, TEXT, TEXT_ARRAY, proc};
use super::identity::{Identity, find, kind_of_absent};
use super::row_list::RowList;
use super::value::{body, wrong_arguments};
use super::{Columns, one_row};
use crate::error::Result;
use crate::expr::Env;
use crate::types::array::build_list;
use crate::{Datum, Value};

/// The number of `text[]`.
const TEXTS: u32 = 1009;

pub(super) static PROCS: &[Proc] = &[
    proc(
        3537,
        "pg_describe_object",
        &[OID, OID, INT4],
        TEXT,
        body!(env, |class: i64, object: i64, column: i32| described(class, object, column, env)),
    )
    .stable(),
    proc(3839, "pg_identify_object", &[OID, OID, INT4], RECORD_TYPE, one_row(IDENTITY, identify))
        .stable(),
    proc(
        3382,
        "pg_identify_object_as_address",
        &[OID, OID, INT4],
        RECORD_TYPE,
        one_row(ADDRESS, identify_as_address),
    )
    .stable(),
];

const IDENTITY: Columns =
    &[(Some("type"), TEXT), (Some("schema"), TEXT), (Some("name"), TEXT), (Some("identity"), TEXT)];

const ADDRESS: Columns =
    &[(Some("type"), TEXT), (Some("object_names"), TEXT_ARRAY), (Some("object_args"), TEXT_ARRAY)];

fn number(oid: i64) -> u32 {
    u32::try_from(oid).unwrap_or(0)
}

fn described(class: i64, object: i64, column: i32, env: &Env<'_>) -> Result<Option<String>> {
    // So does the dependency on no object at all look.
    if class == 0 && object == 0 {
        return Ok(None);
    }
    let found = find(number(class), number(object), column, env)?;
    Ok(found.map(|object| object.description))
}

/// The object that the arguments mean, or what it would be.
fn object_of(args: &[Datum<'_>], env: &Env<'_>) -> Result<(Option<Identity>, &'static str)> {
    let [Datum::Int8(class), Datum::Int8(object), Datum::Int4(column)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let kind = kind_of_absent(number(*class), *column)?;
    Ok((find(number(*class), number(*object), *column, env)?, kind))
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

fn identify(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    list.push(match object_of(args, list.env)? {
        (Some(object), _) => [
            text(object.kind),
            object.schema.map_or(Value::Null, text),
            object.name.map_or(Value::Null, text),
            text(object.identity),
        ],
        (None, kind) => [text(kind), Value::Null, Value::Null, Value::Null],
    })
}

fn identify_as_address(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let array = |texts: &[String]| build_list(TEXTS, texts.iter().map(|text| Datum::Text(text)));
    list.push(match object_of(args, list.env)? {
        (Some(object), _) => {
            let (names, args) = &object.address;
            [text(object.kind), array(names)?, array(args)?]
        }
        (None, kind) => [text(kind), Value::Null, Value::Null],
    })
}
