//! The functions of large objects. There are none, and none can be made, so none is found.

use super::Body;
use super::catalog::{BYTEA, INT4, INT8, OID, Param, Proc, TEXT, VOID, proc};
use super::value::wrong_arguments;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::{Datum, Value};

/// A function of a large object by its number.
const fn of_object(oid: u32, name: &'static str, args: &'static [Param], result: Param) -> Proc {
    proc(oid, name, args, result, Body::Datums(|args, _| absent(args))).volatile()
}

/// A function of a large object that has been opened.
const fn of_descriptor(
    oid: u32,
    name: &'static str,
    args: &'static [Param],
    result: Param,
) -> Proc {
    proc(oid, name, args, result, Body::Datums(|args, _| not_open(args))).volatile()
}

pub(super) static OBJECTS: &[Proc] = &[
    of_object(3458, "lo_get", &[OID], BYTEA),
    of_object(3459, "lo_get", &[OID, INT8, INT4], BYTEA),
    of_object(3460, "lo_put", &[OID, INT8, BYTEA], VOID),
    of_object(765, "lo_export", &[OID, TEXT], INT4),
    of_object(964, "lo_unlink", &[OID], INT4),
    proc(952, "lo_open", &[OID, INT4], INT4, Body::Datums(open)).volatile(),
];

pub(super) static DESCRIPTORS: &[Proc] = &[
    of_descriptor(953, "lo_close", &[INT4], INT4),
    of_descriptor(954, "loread", &[INT4, INT4], BYTEA),
    of_descriptor(955, "lowrite", &[INT4, BYTEA], INT4),
    of_descriptor(956, "lo_lseek", &[INT4, INT4, INT4], INT4),
    of_descriptor(3170, "lo_lseek64", &[INT4, INT8, INT4], INT8),
    of_descriptor(958, "lo_tell", &[INT4], INT4),
    of_descriptor(3171, "lo_tell64", &[INT4], INT8),
    of_descriptor(1004, "lo_truncate", &[INT4, INT4], INT4),
    of_descriptor(3172, "lo_truncate64", &[INT4, INT8], INT4),
];

fn absent(args: &[Datum<'_>]) -> Result<Value> {
    if let [_, Datum::Int8(_), Datum::Int4(..0)] = args {
        let message = "requested length cannot be negative";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let Some(Datum::Int8(oid)) = args.first() else { return Err(wrong_arguments(args.len())) };
    Err(undefined(format!("large object {oid} does not exist")))
}

fn not_open(args: &[Datum<'_>]) -> Result<Value> {
    let Some(Datum::Int4(number)) = args.first() else { return Err(wrong_arguments(args.len())) };
    Err(undefined(format!("invalid large-object descriptor: {number}")))
}

fn undefined(message: String) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

fn open(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    /// To write, and to read.
    const MODES: i32 = 0x2_0000 | 0x4_0000;
    match args {
        [_, Datum::Int4(flags)] if flags & MODES == 0 => {
            let message = format!("invalid flags for opening a large object: {flags}");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
        args => absent(args),
    }
}
