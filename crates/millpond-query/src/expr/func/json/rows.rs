//! The elements and the members of a value, as rows.

use std::borrow::Cow;

use millpond_types::jsonb::Json;
use millpond_types::other::{JSON, JSONB};

use super::super::catalog::{Proc, RECORD_TYPE, TEXT, proc};
use super::super::row_list::RowList;
use super::super::value::wrong_arguments;
use super::super::{Columns, rows};
use super::member::as_text;
use super::{JSON_TYPE, JSONB_TYPE, invalid, json, jsonb};
use crate::error::Result;
use crate::types::json::Reader;
use crate::{Datum, Value};

const JSON_VALUE: Columns = &[(Some("value"), JSON_TYPE)];
const JSONB_VALUE: Columns = &[(Some("value"), JSONB_TYPE)];
const TEXT_VALUE: Columns = &[(Some("value"), TEXT)];
const KEY: Columns = &[(None, TEXT)];
const JSON_MEMBER: Columns = &[(Some("key"), TEXT), (Some("value"), JSON_TYPE)];
const JSONB_MEMBER: Columns = &[(Some("key"), TEXT), (Some("value"), JSONB_TYPE)];
const TEXT_MEMBER: Columns = &[(Some("key"), TEXT), (Some("value"), TEXT)];

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        3955,
        "json_array_elements",
        &[JSON_TYPE],
        JSON_TYPE,
        rows(JSON_VALUE, |args, list| elements(args, "json_array_elements", part, list)),
    ),
    proc(
        3969,
        "json_array_elements_text",
        &[JSON_TYPE],
        TEXT,
        rows(TEXT_VALUE, |args, list| elements(args, "json_array_elements_text", as_text, list)),
    ),
    proc(
        3219,
        "jsonb_array_elements",
        &[JSONB_TYPE],
        JSONB_TYPE,
        rows(JSONB_VALUE, |args, list| elements(args, "jsonb_array_elements", part, list)),
    ),
    proc(
        3465,
        "jsonb_array_elements_text",
        &[JSONB_TYPE],
        TEXT,
        rows(TEXT_VALUE, |args, list| elements(args, "jsonb_array_elements_text", as_text, list)),
    ),
    proc(3957, "json_object_keys", &[JSON_TYPE], TEXT, rows(KEY, keys)),
    proc(3931, "jsonb_object_keys", &[JSONB_TYPE], TEXT, rows(KEY, keys)),
    proc(
        3958,
        "json_each",
        &[JSON_TYPE],
        RECORD_TYPE,
        rows(JSON_MEMBER, |args, list| members(args, "json_each", part, list)),
    ),
    proc(
        3959,
        "json_each_text",
        &[JSON_TYPE],
        RECORD_TYPE,
        rows(TEXT_MEMBER, |args, list| members(args, "json_each_text", as_text, list)),
    ),
    proc(
        3208,
        "jsonb_each",
        &[JSONB_TYPE],
        RECORD_TYPE,
        rows(JSONB_MEMBER, |args, list| members(args, "jsonb_each", part, list)),
    ),
    proc(
        3932,
        "jsonb_each_text",
        &[JSONB_TYPE],
        RECORD_TYPE,
        rows(TEXT_MEMBER, |args, list| members(args, "jsonb_each_text", as_text, list)),
    ),
];

/// Makes a value of an element, of `json` or `jsonb`.
type Make = fn(u32, &[u8]) -> Result<Value>;

fn part(oid: u32, bytes: &[u8]) -> Result<Value> {
    Ok(Value::Other(oid, bytes.into()))
}

/// Calls a function for the elements of a `json` array, or for the members of an object, with their
/// names. False if the text is of another kind. `decodes`: see [`Reader::of_escapes`].
pub(super) fn each_part<'a>(
    text: &'a str,
    decodes: bool,
    open: char,
    close: char,
    each: &mut dyn FnMut(Cow<'a, str>, &'a str) -> Result<()>,
) -> Result<bool> {
    let mut reader = if decodes { Reader::new(text) } else { Reader::of_escapes(text) };
    reader.skip_spaces();
    if !reader.eat(open) {
        return Ok(false);
    }
    reader.skip_spaces();
    while !reader.eat(close) {
        let name = if open == '{' { reader.name()? } else { Cow::Borrowed("") };
        reader.skip_spaces();
        let start = reader.rest();
        reader.value(0, None)?;
        each(name, start.get(..start.len() - reader.rest().len()).unwrap_or(start))?;
        reader.skip_spaces();
        reader.eat(',');
        reader.skip_spaces();
    }
    Ok(true)
}

fn is_json_array(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

fn elements(args: &[Datum<'_>], function: &str, make: Make, list: &mut RowList<'_>) -> Result<()> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    if let Datum::Other(JSON, _) = of {
        let text = json(of)?;
        let each = &mut |_, value: &str| list.push([make(JSON, value.as_bytes())?]);
        // Elements stay as they are written, unless they become text.
        let decodes = function.ends_with("_text");
        if each_part(text, decodes, '[', ']', each)? {
            return Ok(());
        }
        let is_object = text.trim_start().starts_with('{');
        let what = if is_object { "a non-array" } else { "a scalar" };
        return Err(invalid(format!("cannot call {function} on {what}")));
    }
    match jsonb(of)?.0 {
        Json::Array(array) => {
            array.iter().try_for_each(|(_, bytes)| list.push([make(JSONB, bytes)?]))
        }
        Json::Object(_) => Err(invalid("cannot extract elements from an object")),
        _ => Err(invalid("cannot extract elements from a scalar")),
    }
}

fn keys(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    let (function, is_array) = match of {
        Datum::Other(JSON, _) => {
            let text = json(of)?;
            if each_part(text, true, '{', '}', &mut |name, _| {
                list.push([Value::Text(name.into_owned())])
            })? {
                return Ok(());
            }
            ("json_object_keys", is_json_array(text))
        }
        _ => match jsonb(of)?.0 {
            Json::Object(object) => {
                let mut names = object.iter();
                return names.try_for_each(|(name, ..)| list.push([Value::Text(name.to_owned())]));
            }
            value => ("jsonb_object_keys", matches!(value, Json::Array(_))),
        },
    };
    let what = if is_array { "an array" } else { "a scalar" };
    Err(invalid(format!("cannot call {function} on {what}")))
}

fn members(args: &[Datum<'_>], function: &str, make: Make, list: &mut RowList<'_>) -> Result<()> {
    let [of] = args else { return Err(wrong_arguments(args.len())) };
    if let Datum::Other(JSON, _) = of {
        let text = json(of)?;
        let each = &mut |name: Cow<'_, str>, value: &str| {
            list.push([Value::Text(name.into_owned()), make(JSON, value.as_bytes())?])
        };
        if each_part(text, true, '{', '}', each)? {
            return Ok(());
        }
        return Err(invalid(if is_json_array(text) {
            "cannot deconstruct an array as an object"
        } else {
            "cannot deconstruct a scalar"
        }));
    }
    let Json::Object(object) = jsonb(of)?.0 else {
        return Err(invalid(format!("cannot call {function} on a non-object")));
    };
    object.iter().try_for_each(|(name, _, bytes)| {
        list.push([Value::Text(name.to_owned()), make(JSONB, bytes)?])
    })
}
