//! `jsonb` values put together, and without some of their parts.

use millpond_types::jsonb::Json;

use super::super::Body;
use super::super::catalog::{INT4, Proc, TEXT, proc};
use super::super::operators::{Operator, Work, op};
use super::super::value::{body, wrong_arguments};
use super::update::{Change, change};
use super::{
    JSONB_TYPE, TEXT_ARRAY, array_bytes, invalid, jsonb, jsonb_value, list_of_texts, made_value,
    object_bytes,
};
use crate::error::Result;
use crate::expr::Env;
use crate::{Datum, Value};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        3301,
        "jsonb_concat",
        &[JSONB_TYPE, JSONB_TYPE],
        JSONB_TYPE,
        body!(|a: Datum<'_>, b: Datum<'_>| concatenated(&a, &b)),
    ),
    proc(
        3302,
        "jsonb_delete",
        &[JSONB_TYPE, TEXT],
        JSONB_TYPE,
        body!(|of: Datum<'_>, name: &str| without(&of, &[name])),
    ),
    proc(
        3303,
        "jsonb_delete",
        &[JSONB_TYPE, INT4],
        JSONB_TYPE,
        body!(|of: Datum<'_>, place: i32| without_place(&of, place)),
    ),
    proc(3343, "jsonb_delete", &[JSONB_TYPE, TEXT], JSONB_TYPE, Body::Datums(without_all))
        .variadic(),
    // What the operator calls, with the names as an array.
    proc(
        0,
        "jsonb_delete_names",
        &[JSONB_TYPE, TEXT_ARRAY],
        JSONB_TYPE,
        body!(|of: Datum<'_>, names: Datum<'_>| {
            let names: Vec<&str> = list_of_texts(&names)?.into_iter().flatten().collect();
            without(&of, &names)
        }),
    ),
    proc(
        3304,
        "jsonb_delete_path",
        &[JSONB_TYPE, TEXT_ARRAY],
        JSONB_TYPE,
        body!(|of: Datum<'_>, path: Datum<'_>| change(&of, &path, Change::Delete)),
    ),
];

pub(in super::super) static OPERATORS: &[Operator] = &[
    op("||", &[JSONB_TYPE, JSONB_TYPE], JSONB_TYPE, Work::Call("jsonb_concat")),
    op("-", &[JSONB_TYPE, TEXT], JSONB_TYPE, Work::Call("jsonb_delete")),
    op("-", &[JSONB_TYPE, INT4], JSONB_TYPE, Work::Call("jsonb_delete")),
    op("-", &[JSONB_TYPE, TEXT_ARRAY], JSONB_TYPE, Work::Call("jsonb_delete_names")),
    op("#-", &[JSONB_TYPE, TEXT_ARRAY], JSONB_TYPE, Work::Call("jsonb_delete_path")),
];

/// The elements of an array, or the value as the only one.
fn elements<'a>(value: Json<'a>, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    match value {
        Json::Array(array) => array.iter().map(|(_, bytes)| bytes).collect(),
        _ => vec![bytes],
    }
}

fn concatenated(a: &Datum<'_>, b: &Datum<'_>) -> Result<Value> {
    let ((a, a_bytes), (b, b_bytes)) = (jsonb(a)?, jsonb(b)?);
    let bytes = if let (Json::Object(a), Json::Object(b)) = (a, b) {
        let members = a.iter().chain(b.iter()).map(|(name, _, bytes)| (name, bytes));
        object_bytes(members)?
    } else {
        let parts = [elements(a, a_bytes), elements(b, b_bytes)].concat();
        array_bytes(parts.into_iter())?
    };
    made_value(bytes)
}

/// Without the members of these names, or the elements that are these strings.
fn without(of: &Datum<'_>, names: &[&str]) -> Result<Value> {
    let bytes = match jsonb(of)?.0 {
        Json::Object(object) => {
            let members = object.iter().filter(|(name, ..)| !names.contains(name));
            object_bytes(members.map(|(name, _, bytes)| (name, bytes)))?
        }
        Json::Array(array) => {
            let named = |value: Json<'_>| matches!(value, Json::String(s) if names.contains(&s));
            let rest = array.iter().filter(|(value, _)| !named(*value));
            array_bytes(rest.map(|(_, bytes)| bytes))?
        }
        _ => return Err(invalid("cannot delete from scalar")),
    };
    Ok(jsonb_value(bytes))
}

/// The names are the arguments behind the first.
fn without_all(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let Some((of, names)) = args.split_first() else { return Err(wrong_arguments(0)) };
    let mut texts = Vec::with_capacity(names.len());
    for name in names {
        if let Datum::Text(name) = name {
            texts.push(*name);
        }
    }
    without(of, &texts)
}

fn without_place(of: &Datum<'_>, place: i32) -> Result<Value> {
    let array = match jsonb(of)?.0 {
        Json::Array(array) => array,
        Json::Object(_) => {
            return Err(invalid("cannot delete from object using integer index"));
        }
        _ => return Err(invalid("cannot delete from scalar")),
    };
    let place = match usize::try_from(place) {
        Ok(place) => Some(place),
        Err(_) => array.len().checked_sub(place.unsigned_abs() as usize),
    };
    let rest = array.iter().enumerate().filter(|(own, _)| Some(*own) != place);
    array_bytes(rest.map(|(_, (_, bytes))| bytes)).map(jsonb_value)
}
