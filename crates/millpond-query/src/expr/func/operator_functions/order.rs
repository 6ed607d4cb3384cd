//! The functions that order two values, as B-trees ask for: which comes first, the larger and the
//! smaller of them.

use std::cmp::Ordering;

use millpond_types::array::ArrayRef;
use millpond_types::other;
use millpond_types::record::{self, Field};

use super::super::Body;
use super::super::catalog::{
    ANY, ANYARRAY, BOOL, BPCHAR, BYTEA, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, JSONB_TYPE,
    LSN_TYPE, NAME, NUMERIC, OID, OIDVECTOR_TYPE, Param, Proc, RECORD_TYPE, TEXT, TID_TYPE,
    TIMESTAMPTZ, UUID_TYPE, XID8_TYPE, proc,
};
use super::super::datetime::{INTERVAL, TIME, TIMESTAMP, TIMETZ};
use super::super::format_type;
use super::super::value::{body, wrong_arguments};
use super::OfOperator;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::{DataType, Datum, Value};

/// A function that says which of two values comes first. The binder converts them to the type in
/// which they compare, and calls [`ORDER`].
const fn order(oid: u32, name: &'static str, args: &'static [Param]) -> Proc {
    proc(oid, name, args, INT4, Body::OfOperator(OfOperator::Order))
}

pub(in super::super) static ORDERS: &[Proc] = &[
    order(1078, "bpcharcmp", &[BPCHAR, BPCHAR]),
    order(382, "btarraycmp", &[ANYARRAY, ANYARRAY]),
    order(1693, "btboolcmp", &[BOOL, BOOL]),
    order(2180, "btbpchar_pattern_cmp", &[BPCHAR, BPCHAR]),
    order(2194, "btfloat48cmp", &[FLOAT4, FLOAT8]),
    order(354, "btfloat4cmp", &[FLOAT4, FLOAT4]),
    order(2195, "btfloat84cmp", &[FLOAT8, FLOAT4]),
    order(355, "btfloat8cmp", &[FLOAT8, FLOAT8]),
    order(2190, "btint24cmp", &[INT2, INT4]),
    order(2192, "btint28cmp", &[INT2, INT8]),
    order(350, "btint2cmp", &[INT2, INT2]),
    order(2191, "btint42cmp", &[INT4, INT2]),
    order(2188, "btint48cmp", &[INT4, INT8]),
    order(351, "btint4cmp", &[INT4, INT4]),
    order(2193, "btint82cmp", &[INT8, INT2]),
    order(2189, "btint84cmp", &[INT8, INT4]),
    order(842, "btint8cmp", &[INT8, INT8]),
    order(246, "btnametextcmp", &[NAME, TEXT]),
    order(356, "btoidcmp", &[OID, OID]),
    order(404, "btoidvectorcmp", &[OIDVECTOR_TYPE, OIDVECTOR_TYPE]),
    order(2987, "btrecordcmp", &[RECORD_TYPE, RECORD_TYPE]),
    order(2166, "bttext_pattern_cmp", &[TEXT, TEXT]),
    order(360, "bttextcmp", &[TEXT, TEXT]),
    order(253, "bttextnamecmp", &[TEXT, NAME]),
    order(1954, "byteacmp", &[BYTEA, BYTEA]),
    order(1092, "date_cmp", &[DATE, DATE]),
    order(2344, "date_cmp_timestamp", &[DATE, TIMESTAMP]),
    order(3724, "gin_cmp_tslexeme", &[TEXT, TEXT]),
    order(1315, "interval_cmp", &[INTERVAL, INTERVAL]),
    order(4044, "jsonb_cmp", &[JSONB_TYPE, JSONB_TYPE]),
    order(1769, "numeric_cmp", &[NUMERIC, NUMERIC]),
    order(3251, "pg_lsn_cmp", &[LSN_TYPE, LSN_TYPE]),
    order(2794, "bttidcmp", &[TID_TYPE, TID_TYPE]),
    order(1107, "time_cmp", &[TIME, TIME]),
    order(2045, "timestamp_cmp", &[TIMESTAMP, TIMESTAMP]),
    order(2370, "timestamp_cmp_date", &[TIMESTAMP, DATE]),
    order(1314, "timestamptz_cmp", &[TIMESTAMPTZ, TIMESTAMPTZ]),
    order(1358, "timetz_cmp", &[TIMETZ, TIMETZ]),
    order(2960, "uuid_cmp", &[UUID_TYPE, UUID_TYPE]),
    order(5096, "xid8cmp", &[XID8_TYPE, XID8_TYPE]),
    order(2357, "date_cmp_timestamptz", &[DATE, TIMESTAMPTZ]).stable(),
    order(2526, "timestamp_cmp_timestamptz", &[TIMESTAMP, TIMESTAMPTZ]).stable(),
    order(2383, "timestamptz_cmp_date", &[TIMESTAMPTZ, DATE]).stable(),
    order(2533, "timestamptz_cmp_timestamp", &[TIMESTAMPTZ, TIMESTAMP]).stable(),
    proc(359, "btnamecmp", &[NAME, NAME], INT4, Body::Datums(order_of_names)),
];

/// For a type the functions that choose the larger and the smaller value. Of two that are equal,
/// both choose the second.
macro_rules! chosen {
    ($($ty:ident: $larger:literal $is_larger:literal, $smaller:literal $is_smaller:literal;)*) => {
        &[$(
            proc($larger, $is_larger, &[$ty, $ty], $ty, Body::Datums(|args, _| {
                first_if(args, Ordering::is_gt)
            })),
            proc($smaller, $is_smaller, &[$ty, $ty], $ty, Body::Datums(|args, _| {
                first_if(args, Ordering::is_lt)
            })),
        )*]
    };
}

pub(in super::super) static EXTREMES: &[Proc] = chosen! {
    ANYARRAY: 515 "array_larger", 516 "array_smaller";
    DATE: 1138 "date_larger", 1139 "date_smaller";
    FLOAT4: 209 "float4larger", 211 "float4smaller";
    FLOAT8: 223 "float8larger", 224 "float8smaller";
    INT2: 770 "int2larger", 771 "int2smaller";
    INT4: 768 "int4larger", 769 "int4smaller";
    INT8: 1236 "int8larger", 1237 "int8smaller";
    INTERVAL: 1198 "interval_larger", 1197 "interval_smaller";
    LSN_TYPE: 4187 "pg_lsn_larger", 4188 "pg_lsn_smaller";
    NUMERIC: 1767 "numeric_larger", 1766 "numeric_smaller";
    OID: 1965 "oidlarger", 1966 "oidsmaller";
    TEXT: 458 "text_larger", 459 "text_smaller";
    TID_TYPE: 2795 "tidlarger", 2796 "tidsmaller";
    TIME: 1377 "time_larger", 1378 "time_smaller";
    TIMESTAMP: 2036 "timestamp_larger", 2035 "timestamp_smaller";
    TIMESTAMPTZ: 1196 "timestamptz_larger", 1195 "timestamptz_smaller";
    TIMETZ: 1379 "timetz_larger", 1380 "timetz_smaller";
    XID8_TYPE: 5097 "xid8_larger", 5098 "xid8_smaller";
};

/// Those of `character`: spaces at the end don't count, and are part of the result.
pub(in super::super) static EXTREMES_OF_CHARS: &[Proc] = &[
    proc(
        1063,
        "bpchar_larger",
        &[BPCHAR, BPCHAR],
        BPCHAR,
        body!(|a: &str, b: &str| if trimmed(a) >= trimmed(b) { a } else { b }),
    ),
    proc(
        1064,
        "bpchar_smaller",
        &[BPCHAR, BPCHAR],
        BPCHAR,
        body!(|a: &str, b: &str| if trimmed(a) <= trimmed(b) { a } else { b }),
    ),
];

fn trimmed(text: &str) -> &[u8] {
    text.trim_end_matches(' ').as_bytes()
}

/// What an order of two values of one type is as a number. Of bytes, PostgreSQL gives what the C
/// library's comparison gives: as a rule the difference of the first two that differ.
pub(in crate::expr) static ORDER: Proc =
    proc(0, "order", &[ANY, ANY], INT4, Body::Datums(order_of));

fn order_of(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [a, b] = args else { return Err(wrong_arguments(args.len())) };
    let number = match (a, b) {
        // As in PostgreSQL, their difference.
        (Datum::Int2(a), Datum::Int2(b)) => i32::from(*a) - i32::from(*b),
        (Datum::Text(a), Datum::Text(b)) => difference(a.as_bytes(), b.as_bytes()),
        (Datum::Bytea(a), Datum::Bytea(b)) => difference(a, b),
        (Datum::Other(other::UUID, a), Datum::Other(other::UUID, b)) => difference(a, b),
        (Datum::Other(other::OIDVECTOR, _), Datum::Other(other::OIDVECTOR, _)) => {
            let (x, y) = (count_of(a), count_of(b));
            if x == y { order_number(a, b)? } else { x - y }
        }
        (Datum::Other(other::RECORD, a), Datum::Other(other::RECORD, b)) => {
            record_order(a, b, "a comparison function")? as i32
        }
        _ => order_number(a, b)?,
    };
    Ok(Value::Int4(number))
}

/// The same of two records, for the operators that ask only whether they are equal.
pub(in crate::expr) static ORDER_FOR_EQUALITY: Proc =
    proc(0, "order_for_equality", &[RECORD_TYPE, RECORD_TYPE], INT4, Body::Datums(equality_of));

fn equality_of(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [Datum::Other(other::RECORD, a), Datum::Other(other::RECORD, b)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    Ok(Value::Int4(record_order(a, b, "an equality operator")? as i32))
}

fn count_of(vector: &Datum<'_>) -> i32 {
    let array = match vector {
        Datum::Other(_, bytes) => ArrayRef::from_bytes(DataType::Oid.oid(), bytes),
        _ => None,
    };
    array.map_or(0, |array| i32::try_from(array.iter().count()).unwrap_or(i32::MAX))
}

/// The difference of the first bytes that differ. If there are none, the longer comes last.
fn difference(a: &[u8], b: &[u8]) -> i32 {
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((a, b)) => i32::from(*a) - i32::from(*b),
        None => a.len().cmp(&b.len()) as i32,
    }
}

/// A name has a zero byte at its end, which counts.
fn order_of_names(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [Datum::Text(a), Datum::Text(b)] = args else { return Err(wrong_arguments(args.len())) };
    let ended = |name: &str| [name.as_bytes(), &[0]].concat();
    Ok(Value::Int4(difference(&ended(a), &ended(b))))
}

fn order_number(a: &Datum<'_>, b: &Datum<'_>) -> Result<i32> {
    let order = a.sql_cmp(b).map(|order| order as i32);
    order.ok_or_else(|| not_found("a comparison function", "json"))
}

#[cold]
fn not_found(what: &str, ty: &str) -> SqlError {
    let message = format!("could not identify {what} for type {ty}");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
}

/// The fields of two records side by side. The last is an error if one has more of them.
pub(super) fn fields_beside<'a>(
    a: &'a [u8],
    b: &'a [u8],
) -> impl Iterator<Item = Result<(Field<'a>, Field<'a>)>> {
    let (mut left, mut right) = (record::fields(a), record::fields(b));
    std::iter::from_fn(move || match (left.next(), right.next()) {
        (None, None) => None,
        (Some(a), Some(b)) => Some(Ok((a, b))),
        _ => {
            let message = "cannot compare record types with different numbers of columns";
            Some(Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)))
        }
    })
}

/// The error of two fields at one place whose types differ.
#[cold]
pub(super) fn dissimilar_fields(a: &Field<'_>, b: &Field<'_>, column: usize) -> Result<SqlError> {
    let name = |field: &Field<'_>| format_type(field.type_oid.into(), None);
    let (a, b) = (name(a)?, name(b)?);
    let message =
        format!("cannot compare dissimilar column types {a} and {b} at record column {column}");
    Ok(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
}

/// The order of two records by their first fields that differ. Those before have to be of one type.
fn record_order(a: &[u8], b: &[u8], needed: &str) -> Result<Ordering> {
    for (place, pair) in fields_beside(a, b).enumerate() {
        let (a, b) = pair?;
        if a.type_oid != b.type_oid {
            return Err(dissimilar_fields(&a, &b, place + 1)?);
        }
        let order = match (a.value.is_null(), b.value.is_null()) {
            (false, false) => match a.value.sql_cmp(&b.value) {
                Some(order) => order,
                None => {
                    return Err(not_found(needed, &format_type(a.type_oid.into(), None)?));
                }
            },
            (a, b) => a.cmp(&b),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// The first value if its order fits, else the second.
fn first_if(args: &[Datum<'_>], fits: fn(Ordering) -> bool) -> Result<Value> {
    let [a, b] = args else { return Err(wrong_arguments(args.len())) };
    let order = a.sql_cmp(b).ok_or_else(|| not_found("a comparison function", "json"))?;
    Ok(if fits(order) { a.to_value() } else { b.to_value() })
}
