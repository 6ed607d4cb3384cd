//! Functions and operators of `json` and `jsonb`.

pub(crate) mod aggregate;
mod build;
mod change;
mod contain;
mod encode;
mod filled;
mod jsonpath;
mod member;
mod path;
mod record;
mod rows;
mod strip;
mod update;

use millpond_types::jsonb::Json;
use millpond_types::other::{JSON, JSONB};

use super::catalog::{JSONB_TYPE, Param, TEXT_ARRAY, other};
use super::value::wrong_arguments;
use crate::error::{Result, SqlError, SqlState};
use crate::types::array::array_of;
use crate::types::json::check_depth;
use crate::{Datum, Value};

pub(super) use build::PROCS as BUILD;
pub(super) use change::{OPERATORS as CHANGE_OPERATORS, PROCS as CHANGE};
pub(super) use contain::{OPERATORS as CONTAIN_OPERATORS, PROCS as CONTAIN};
pub(in crate::expr) use filled::{FILLED, definition};
pub(super) use jsonpath::{
    OPERATOR_PROCS as PATH_OPERATOR_PROCS, OPERATORS as JSONPATH_OPERATORS, PROCS as JSONPATH,
};
pub(super) use member::{OPERATORS, PROCS};
pub(super) use path::{OPERATORS as PATH_OPERATORS, PROCS as PATH};
pub(super) use record::PROCS as RECORDS;
pub(super) use rows::PROCS as ROWS;
pub(super) use strip::PROCS as STRIP;
pub(super) use update::PROCS as UPDATE;

const JSON_TYPE: Param = other(JSON);
/// A value's bytes, of `json` or `jsonb`.
type Part<'a> = (u32, &'a [u8]);

fn jsonb_value(bytes: Vec<u8>) -> Value {
    Value::Other(JSONB, bytes.into())
}

/// A value that was made of others.
fn made_value(bytes: Vec<u8>) -> Result<Value> {
    check_depth(&bytes)?;
    Ok(jsonb_value(bytes))
}

fn json_value(text: String) -> Value {
    Value::Other(JSON, text.into_bytes().into())
}

/// The bytes of a `jsonb`, and what they are.
fn jsonb<'a>(datum: &Datum<'a>) -> Result<(Json<'a>, &'a [u8])> {
    match datum {
        Datum::Other(JSONB, bytes) => Json::from_bytes(bytes).map(|value| (value, *bytes)),
        _ => None,
    }
    .ok_or_else(|| wrong_arguments(1))
}

/// The text of a `json`.
fn json<'a>(datum: &Datum<'a>) -> Result<&'a str> {
    match datum {
        Datum::Other(JSON, bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
    .ok_or_else(|| wrong_arguments(1))
}

/// The elements of a `text[]`, whatever its dimensions. `None` is NULL.
fn texts<'a>(datum: &Datum<'a>) -> Result<Vec<Option<&'a str>>> {
    let array = array_of(datum).ok_or_else(|| wrong_arguments(1))?;
    let texts = array.iter().map(|element| match element {
        Datum::Text(text) => Some(text),
        _ => None,
    });
    Ok(texts.collect())
}

/// The texts of a list of names, or of the steps of a change. An array of arrays is no list.
fn list_of_texts<'a>(datum: &Datum<'a>) -> Result<Vec<Option<&'a str>>> {
    if array_of(datum).is_some_and(|array| array.dimensions().len() > 1) {
        let what = "wrong number of array subscripts";
        return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, what));
    }
    texts(datum)
}

/// An error of arguments that have no meaning.
#[cold]
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// A `jsonb` array of elements.
fn array_bytes<'a>(elements: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    use millpond_types::jsonb::write;
    let mut out = Vec::new();
    let mut array = write::Array::begin(&mut out);
    for element in elements {
        array.element();
        out.extend_from_slice(element);
    }
    array.end(&mut out).map_err(crate::types::json::too_long)?;
    Ok(out)
}

/// A `jsonb` object of members.
fn object_bytes<'a>(members: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Vec<u8>> {
    use millpond_types::jsonb::write;
    let mut out = Vec::new();
    write::object(members, &mut out).map_err(crate::types::json::too_long)?;
    Ok(out)
}
