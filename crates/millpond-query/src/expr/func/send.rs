//! Values as the bytes that the wire's binary formats have, and the functions behind the operators
//! of truth values.

use millpond_types::other;

use super::Body;
use super::catalog::{
    ANYARRAY, BOOL, BPCHAR, BYTEA, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, NAME, NUMERIC, OID,
    Param, Proc, TEXT, TIMESTAMPTZ, other, proc,
};
use super::datetime::{INTERVAL, TIME, TIMESTAMP, TIMETZ};
use super::value::{body, wrong_arguments};
use crate::error::Result;
use crate::expr::cast::type_of;
use crate::types::binary;
use crate::{DataType, Datum, Value};

/// A function that encodes a value of a type.
const fn send(oid: u32, name: &'static str, args: &'static [Param]) -> Proc {
    let body = match args {
        // Its value is held as a bigint.
        [Param::Type(DataType::Oid)] => Body::Datums(|args, _| encoded(args, Some(DataType::Oid))),
        _ => Body::Datums(|args, _| encoded(args, None)),
    };
    proc(oid, name, args, BYTEA, body)
}

fn encoded(args: &[Datum<'_>], ty: Option<DataType>) -> Result<Value> {
    let [value] = args else { return Err(wrong_arguments(args.len())) };
    let mut bytes = Vec::new();
    if let Some(ty) = ty.or_else(|| type_of(value)) {
        binary::encode(ty, value, &mut bytes);
    }
    Ok(Value::Bytea(bytes))
}

pub(super) static SENDS: &[Proc] = &[
    send(2401, "array_send", &[ANYARRAY]).stable(),
    send(2503, "anyarray_send", &[ANYARRAY]).stable(),
    send(5091, "anycompatiblearray_send", &[Param::AnyCompatibleArray]).stable(),
    send(2431, "bpcharsend", &[BPCHAR]).stable(),
    send(2413, "byteasend", &[BYTEA]),
    send(2469, "date_send", &[DATE]),
    send(2411, "int2vectorsend", &[other(other::INT2VECTOR)]),
    send(2479, "interval_send", &[INTERVAL]),
    send(324, "json_send", &[other(other::JSON)]),
    send(3803, "jsonb_send", &[other(other::JSONB)]),
    send(4004, "jsonpath_send", &[other(other::JSONPATH)]),
    send(2423, "namesend", &[NAME]).stable(),
    send(2461, "numeric_send", &[NUMERIC]),
    send(2419, "oidsend", &[OID]),
    send(2421, "oidvectorsend", &[other(other::OIDVECTOR)]),
    send(2403, "record_send", &[other(other::RECORD)]).stable(),
    send(2453, "regclasssend", &[other(other::REGCLASS)]),
    send(4088, "regnamespacesend", &[other(other::REGNAMESPACE)]),
    send(2447, "regproceduresend", &[other(other::REGPROCEDURE)]),
    send(2445, "regprocsend", &[other(other::REGPROC)]),
    send(4095, "regrolesend", &[other(other::REGROLE)]),
    send(2455, "regtypesend", &[other(other::REGTYPE)]),
    send(2415, "textsend", &[TEXT]).stable(),
    send(2471, "time_send", &[TIME]),
    send(2475, "timestamp_send", &[TIMESTAMP]),
    send(2477, "timestamptz_send", &[TIMESTAMPTZ]),
    send(2473, "timetz_send", &[TIMETZ]),
    send(2962, "uuid_send", &[other(other::UUID)]),
    send(2439, "tidsend", &[other(other::TID)]),
    send(2441, "xidsend", &[other(other::XID)]),
    send(2443, "cidsend", &[other(other::CID)]),
    send(5083, "xid8send", &[other(other::XID8)]),
    send(3239, "pg_lsn_send", &[other(other::PG_LSN)]),
    send(2433, "varcharsend", &[Param::Type(DataType::Varchar(None))]).stable(),
];

pub(super) static PROCS: &[Proc] = &[
    proc(2405, "int2send", &[INT2], BYTEA, body!(|x: i16| x.to_be_bytes().to_vec())),
    proc(2407, "int4send", &[INT4], BYTEA, body!(|x: i32| x.to_be_bytes().to_vec())),
    proc(2409, "int8send", &[INT8], BYTEA, body!(|x: i64| x.to_be_bytes().to_vec())),
    proc(2425, "float4send", &[FLOAT4], BYTEA, body!(|x: f32| x.to_be_bytes().to_vec())),
    proc(2427, "float8send", &[FLOAT8], BYTEA, body!(|x: f64| x.to_be_bytes().to_vec())),
    proc(2437, "boolsend", &[BOOL], BYTEA, body!(|x: bool| vec![u8::from(x)])),
    proc(60, "booleq", &[BOOL, BOOL], BOOL, body!(|a: bool, b: bool| a == b)),
    proc(84, "boolne", &[BOOL, BOOL], BOOL, body!(|a: bool, b: bool| a != b)),
    proc(56, "boollt", &[BOOL, BOOL], BOOL, body!(|a: bool, b: bool| !a & b)),
    proc(57, "boolgt", &[BOOL, BOOL], BOOL, body!(|a: bool, b: bool| a & !b)),
    proc(1691, "boolle", &[BOOL, BOOL], BOOL, body!(|a: bool, b: bool| a <= b)),
    proc(1692, "boolge", &[BOOL, BOOL], BOOL, body!(|a: bool, b: bool| a >= b)),
];
