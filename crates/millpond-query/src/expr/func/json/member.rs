//! Members and elements of JSON values.

use millpond_types::jsonb::Json;
use millpond_types::other::{JSON, JSONB};

use super::super::Body;
use super::super::catalog::{INT4, Proc, TEXT, proc};
use super::super::operators::{Operator, Work, op};
use super::super::value::wrong_arguments;
use super::{JSON_TYPE, JSONB_TYPE, invalid};
use crate::error::Result;
use crate::expr::Env;
use crate::types::json::{Reader, write};
use crate::{Datum, Value};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(3947, "json_object_field", &[JSON_TYPE, TEXT], JSON_TYPE, Body::Datums(part)),
    proc(3948, "json_object_field_text", &[JSON_TYPE, TEXT], TEXT, Body::Datums(part_text)),
    proc(3949, "json_array_element", &[JSON_TYPE, INT4], JSON_TYPE, Body::Datums(part)),
    proc(3950, "json_array_element_text", &[JSON_TYPE, INT4], TEXT, Body::Datums(part_text)),
    proc(3478, "jsonb_object_field", &[JSONB_TYPE, TEXT], JSONB_TYPE, Body::Datums(part)),
    proc(3214, "jsonb_object_field_text", &[JSONB_TYPE, TEXT], TEXT, Body::Datums(part_text)),
    proc(3215, "jsonb_array_element", &[JSONB_TYPE, INT4], JSONB_TYPE, Body::Datums(part)),
    proc(3216, "jsonb_array_element_text", &[JSONB_TYPE, INT4], TEXT, Body::Datums(part_text)),
    proc(3968, "json_typeof", &[JSON_TYPE], TEXT, Body::Datums(json_type_of)),
    proc(3956, "json_array_length", &[JSON_TYPE], INT4, Body::Datums(json_array_length)),
    proc(3210, "jsonb_typeof", &[JSONB_TYPE], TEXT, Body::Datums(type_of)),
    proc(3207, "jsonb_array_length", &[JSONB_TYPE], INT4, Body::Datums(array_length)),
];

pub(in super::super) static OPERATORS: &[Operator] = &[
    op("->", &[JSON_TYPE, TEXT], JSON_TYPE, Work::Call("json_object_field")),
    op("->>", &[JSON_TYPE, TEXT], TEXT, Work::Call("json_object_field_text")),
    op("->", &[JSON_TYPE, INT4], JSON_TYPE, Work::Call("json_array_element")),
    op("->>", &[JSON_TYPE, INT4], TEXT, Work::Call("json_array_element_text")),
    op("->", &[JSONB_TYPE, TEXT], JSONB_TYPE, Work::Call("jsonb_object_field")),
    op("->>", &[JSONB_TYPE, TEXT], TEXT, Work::Call("jsonb_object_field_text")),
    op("->", &[JSONB_TYPE, INT4], JSONB_TYPE, Work::Call("jsonb_array_element")),
    op("->>", &[JSONB_TYPE, INT4], TEXT, Work::Call("jsonb_array_element_text")),
];

/// The bytes of a member or an element.
pub(super) fn find<'a>(args: &[Datum<'a>]) -> Result<Option<(u32, &'a [u8])>> {
    let [Datum::Other(oid, bytes), key] = args else { return Err(wrong_arguments(args.len())) };
    let found = if *oid == JSONB {
        find_jsonb(bytes, key)
    } else {
        let text = std::str::from_utf8(bytes).map_err(|_| wrong_arguments(args.len()))?;
        find_json(text, key)?.map(str::as_bytes)
    };
    Ok(found.map(|found| (*oid, found)))
}

fn find_jsonb<'a>(bytes: &'a [u8], key: &Datum<'_>) -> Option<&'a [u8]> {
    match (Json::from_bytes(bytes)?, key) {
        (Json::Object(object), Datum::Text(name)) => object.get(name).map(|(_, bytes)| bytes),
        (Json::Array(array), Datum::Int4(place)) => {
            let place = from_either_end(*place, array.len())?;
            array.iter().nth(place).map(|(_, bytes)| bytes)
        }
        _ => None,
    }
}

/// A negative place counts from the end.
fn from_either_end(place: i32, length: usize) -> Option<usize> {
    match usize::try_from(place) {
        Ok(place) => Some(place),
        Err(_) => length.checked_sub(place.unsigned_abs() as usize),
    }
}

/// The text of a member (the last of its name) or of an element.
fn find_json<'a>(text: &'a str, key: &Datum<'_>) -> Result<Option<&'a str>> {
    let mut reader = Reader::new(text);
    reader.skip_spaces();
    let (close, is_object) = match key {
        Datum::Text(_) if reader.eat('{') => ('}', true),
        Datum::Int4(_) if reader.eat('[') => (']', false),
        _ => return Ok(None),
    };
    let (mut values, mut found) = (Vec::new(), None);
    reader.skip_spaces();
    while !reader.eat(close) {
        let matches = is_object && matches!(key, Datum::Text(name) if reader.name()? == **name);
        reader.skip_spaces();
        let start = reader.rest();
        reader.value(0, None)?;
        let value = start.get(..start.len() - reader.rest().len()).unwrap_or(start);
        if matches {
            found = Some(value);
        }
        if !is_object {
            values.push(value);
        }
        reader.skip_spaces();
        reader.eat(',');
        reader.skip_spaces();
    }
    Ok(match key {
        Datum::Int4(place) => {
            from_either_end(*place, values.len()).and_then(|place| values.get(place).copied())
        }
        _ => found,
    })
}

/// The same for `->` and `->>`, for which a scalar of jsonb is the one element of itself, at either
/// end. A path does not go there.
fn find_element<'a>(args: &[Datum<'a>]) -> Result<Option<(u32, &'a [u8])>> {
    if let [Datum::Other(oid @ JSONB, bytes), Datum::Int4(0 | -1)] = args
        && !matches!(Json::from_bytes(bytes), None | Some(Json::Object(_) | Json::Array(_)))
    {
        return Ok(Some((*oid, bytes)));
    }
    find(args)
}

fn part(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    Ok(find_element(args)?.map_or(Value::Null, |(oid, bytes)| Value::Other(oid, bytes.into())))
}

fn part_text(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    find_element(args)?.map_or(Ok(Value::Null), |(oid, bytes)| as_text(oid, bytes))
}

/// A value as text: a string without its quotes, and `null` as NULL.
pub(super) fn as_text(oid: u32, bytes: &[u8]) -> Result<Value> {
    if oid == JSON {
        let text = std::str::from_utf8(bytes).map_err(|_| wrong_arguments(1))?;
        return Ok(match text.trim_matches([' ', '\t', '\n', '\r']) {
            "null" => Value::Null,
            text if text.starts_with('"') => Value::Text(Reader::new(text).string()?.into_owned()),
            _ => Value::Text(text.to_owned()),
        });
    }
    Ok(match Json::from_bytes(bytes) {
        None | Some(Json::Null) => Value::Null,
        Some(Json::String(text)) => Value::Text(text.to_owned()),
        Some(value) => {
            let mut out = Vec::new();
            write(value, &mut out);
            Value::Text(String::from_utf8_lossy(&out).into_owned())
        }
    })
}

fn value<'a>(args: &[Datum<'a>]) -> Result<Json<'a>> {
    match args {
        [Datum::Other(JSONB, bytes)] => Json::from_bytes(bytes),
        _ => None,
    }
    .ok_or_else(|| wrong_arguments(args.len()))
}

fn type_of(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    Ok(Value::Text(type_name(value(args)?).to_owned()))
}

/// What `jsonb_typeof` and the method `.type()` call a value.
pub(super) fn type_name(value: Json<'_>) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn array_length(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let what = match value(args)? {
        Json::Array(array) => {
            return Ok(Value::Int4(i32::try_from(array.len()).unwrap_or(i32::MAX)));
        }
        Json::Object(_) => "a non-array",
        _ => "a scalar",
    };
    Err(invalid(format!("cannot get array length of {what}")))
}

fn json_type_of(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    let text = super::json(of)?.trim_start();
    let name = match text.chars().next() {
        Some('{') => "object",
        Some('[') => "array",
        Some('"') => "string",
        Some('t' | 'f') => "boolean",
        Some('n') => "null",
        _ => "number",
    };
    Ok(Value::Text(name.to_owned()))
}

fn json_array_length(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    let text = super::json(of)?.trim_start();
    let mut reader = Reader::of_escapes(text);
    if !reader.eat('[') {
        let what = if text.starts_with('{') { "a non-array" } else { "a scalar" };
        return Err(invalid(format!("cannot get array length of {what}")));
    }
    let mut count = 0;
    reader.skip_spaces();
    while !reader.eat(']') {
        reader.value(1, None)?;
        count += 1;
        reader.skip_spaces();
        reader.eat(',');
        reader.skip_spaces();
    }
    Ok(Value::Int4(count))
}
