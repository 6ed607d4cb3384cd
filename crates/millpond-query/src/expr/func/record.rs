//! Functions of records: how one is made, and what is in it.

use millpond_types::other::RECORD;
use millpond_types::record::{self, Field};

use super::Body;
use super::catalog::{ANY, BOOL, Proc, RECORD_TYPE, proc};
use super::value::wrong_arguments;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::{Datum, Value};

/// A record: bytes that have its fields' names and types with NULLs; something that is NULL if the
/// record is; then the values.
pub(in crate::expr) static MAKE: Proc =
    proc(0, "row", &[ANY, ANY], RECORD_TYPE, Body::Datums(make)).called_on_null().variadic();

/// A field of a record, by its place.
pub(in crate::expr) static FIELD: Proc =
    proc(0, "field", &[RECORD_TYPE, ANY], ANY, Body::Datums(field));

/// Whether all fields of a record are NULL (or, with `true`, none is).
pub(in crate::expr) static IS_NULL: Proc =
    proc(0, "row_is_null", &[RECORD_TYPE, BOOL], BOOL, Body::Datums(is_null)).called_on_null();

/// Bytes reserved for each value at first.
const ROOM_OF_VALUE: usize = 12;

fn make(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [Datum::Bytea(header), presence, values @ ..] = args else {
        return Err(wrong_arguments(args.len()));
    };
    if presence.is_null() {
        return Ok(Value::Null);
    }
    let mut bytes = Vec::with_capacity(header.len() + ROOM_OF_VALUE * values.len());
    for (field, value) in record::fields(header).zip(values) {
        record::push_field(&Field { value: *value, ..field }, &mut bytes).ok_or_else(too_large)?;
    }
    Ok(Value::Other(RECORD, bytes.into()))
}

fn field(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [Datum::Other(RECORD, bytes), Datum::Int4(place)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let place = usize::try_from(*place).map_err(|_| wrong_arguments(args.len()))?;
    let found = record::fields(bytes).nth(place);
    found.map(|field| field.value.to_value()).ok_or_else(|| wrong_arguments(args.len()))
}

fn is_null(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [record, Datum::Bool(negated)] = args else { return Err(wrong_arguments(args.len())) };
    let Datum::Other(RECORD, bytes) = record else { return Ok(Value::Bool(!negated)) };
    let all = record::fields(bytes).all(|field| field.value.is_null() != *negated);
    Ok(Value::Bool(all))
}

#[cold]
pub(super) fn too_large() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "row is too large")
}
