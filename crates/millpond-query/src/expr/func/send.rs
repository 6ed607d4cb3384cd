//! Numbers and truth values as the bytes that the wire's binary formats have, and the functions
//! behind the operators of truth values.

use super::catalog::{BOOL, BYTEA, FLOAT4, FLOAT8, INT2, INT4, INT8, Proc, proc};
use super::value::body;

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
