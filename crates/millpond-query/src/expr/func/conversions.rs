//! Conversions by the names of types: `int4(2.5)` is a cast. The binder makes one of a call.

use super::Body;
use super::catalog::{
    BOOL, BPCHAR, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, JSONB_TYPE, NAME, NUMERIC, OID, Param,
    Proc, REGCLASS_TYPE, TEXT, TIMESTAMPTZ, XID_TYPE, XID8_TYPE, proc,
};
use super::datetime::{INTERVAL, TIME, TIMESTAMP, TIMETZ};
use super::value::{body, wrong_arguments};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Val, cast};
use crate::types::coerce_text;
use crate::{DataType, Datum, Value};
use millpond_types::other;

const VARCHAR: Param = Param::Type(DataType::Varchar(None));

/// For the name of a type and the type: numbers of functions, and the types that they convert.
macro_rules! conversions {
    ($($name:literal $ty:ident: $($oid:literal $from:ident),*;)*) => {
        &[$($(proc($oid, $name, &[$from], $ty, Body::Conversion),)*)*]
    };
}

pub(super) static CONVERSIONS: &[Proc] = conversions! {
    "bool" BOOL: 2557 INT4, 3556 JSONB_TYPE;
    "bpchar" BPCHAR: 408 NAME;
    "date" DATE: 2029 TIMESTAMP;
    "float4" FLOAT4: 236 INT2, 312 FLOAT8, 318 INT4, 652 INT8, 1745 NUMERIC, 3453 JSONB_TYPE;
    "float8" FLOAT8: 235 INT2, 311 FLOAT4, 316 INT4, 482 INT8, 1746 NUMERIC, 2580 JSONB_TYPE;
    "int2" INT2: 237 FLOAT8, 238 FLOAT4, 314 INT4, 714 INT8, 1783 NUMERIC, 3450 JSONB_TYPE;
    "int4" INT4: 313 INT2, 317 FLOAT8, 319 FLOAT4, 480 INT8, 1744 NUMERIC, 2558 BOOL, 3451 JSONB_TYPE;
    "int8" INT8: 481 INT4, 483 FLOAT8, 653 FLOAT4, 754 INT2, 1288 OID, 1779 NUMERIC, 3452 JSONB_TYPE;
    "interval" INTERVAL: 1370 TIME;
    "name" NAME: 407 TEXT, 409 BPCHAR, 1400 VARCHAR;
    "numeric" NUMERIC: 1740 INT4, 1742 FLOAT4, 1743 FLOAT8, 1781 INT8, 1782 INT2, 3449 JSONB_TYPE;
    "oid" OID: 1287 INT8;
    "text" TEXT: 406 NAME, 2971 BOOL;
    "time" TIME: 1316 TIMESTAMP, 1419 INTERVAL, 2046 TIMETZ;
    "timestamp" TIMESTAMP: 2024 DATE;
    "varchar" VARCHAR: 1401 NAME;
    "xid" XID_TYPE: 5071 XID8_TYPE;
};

/// Those that ask for the session's settings.
pub(super) static CONVERSIONS_IN_SESSION: &[Proc] = &[
    proc(1178, "date", &[TIMESTAMPTZ], DATE, Body::Conversion).stable(),
    proc(1079, "regclass", &[TEXT], REGCLASS_TYPE, Body::Conversion).stable(),
    proc(2019, "time", &[TIMESTAMPTZ], TIME, Body::Conversion).stable(),
    proc(2027, "timestamp", &[TIMESTAMPTZ], TIMESTAMP, Body::Conversion).stable(),
    proc(1174, "timestamptz", &[DATE], TIMESTAMPTZ, Body::Conversion).stable(),
    proc(2028, "timestamptz", &[TIMESTAMP], TIMESTAMPTZ, Body::Conversion).stable(),
    proc(1388, "timetz", &[TIMESTAMPTZ], TIMETZ, Body::Conversion).stable(),
    proc(2047, "timetz", &[TIME], TIMETZ, Body::Conversion).stable(),
];

/// What fits a value to the modifier of its type. A text's modifier is its length and four more.
pub(super) static LENGTHS: &[Proc] = &[
    proc(
        668,
        "bpchar",
        &[BPCHAR, INT4, BOOL],
        BPCHAR,
        body!(|text: &str, typmod: i32, explicit: bool| of_length(text, typmod, explicit, true)),
    ),
    proc(
        669,
        "varchar",
        &[VARCHAR, INT4, BOOL],
        VARCHAR,
        body!(|text: &str, typmod: i32, explicit: bool| of_length(text, typmod, explicit, false)),
    ),
    proc(1703, "numeric", &[NUMERIC, INT4], NUMERIC, Body::Datums(modified)),
    proc(1968, "time", &[TIME, INT4], TIME, Body::Datums(modified)),
    proc(1969, "timetz", &[TIMETZ, INT4], TIMETZ, Body::Datums(modified)),
    proc(1200, "interval", &[INTERVAL, INT4], INTERVAL, Body::Datums(modified)),
];

fn of_length(text: &str, typmod: i32, explicit: bool, padded: bool) -> Result<String> {
    let length = match typmod.checked_sub(4).map(u32::try_from) {
        Some(Ok(length)) if length > 0 || !padded => length,
        _ => return Ok(text.to_owned()),
    };
    let ty = if padded { DataType::Char(length) } else { DataType::Varchar(Some(length)) };
    let fitting = coerce_text(ty, text, explicit)?;
    let missing =
        if padded { (length as usize).saturating_sub(fitting.chars().count()) } else { 0 };
    super::check_length(fitting.len() + missing)?;
    Ok(format!("{fitting}{}", " ".repeat(missing)))
}

/// A value of a type with a modifier. A modifier that the type can't have changes nothing.
fn modified(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [value, Datum::Int4(typmod)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let ty = cast::type_of(value).map(DataType::oid).filter(|_| *typmod >= 0);
    let Some(ty) = ty.and_then(|oid| DataType::from_oid(oid, *typmod)) else {
        return Ok(value.to_value());
    };
    if let Datum::Other(other::INTERVAL, _) = value {
        check_interval(*typmod)?;
    }
    let options = env.facts.settings.format_options();
    cast::cast(Val::Borrowed(*value), ty, true, options).map(Val::into_value)
}

/// Refuses a modifier whose fields or precision no interval has.
fn check_interval(typmod: i32) -> Result<()> {
    const ALL_FIELDS: i32 = 0x7fff;
    const ANY_PRECISION: i32 = 0xffff;
    let (fields, precision) = (typmod >> 16 & ALL_FIELDS, typmod & ANY_PRECISION);
    let known = other::INTERVAL_FIELDS.iter().any(|(bits, _)| *bits == fields);
    let message = if fields != ALL_FIELDS && !known {
        format!("unrecognized interval typmod: {typmod}")
    } else if precision != ANY_PRECISION && precision > 6 {
        format!("interval({precision}) precision must be between 0 and 6")
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}
