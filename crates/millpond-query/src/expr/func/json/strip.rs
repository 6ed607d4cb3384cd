//! Values without members that are `null`, and values on several lines.

use millpond_types::jsonb::Json;

use super::super::catalog::{Proc, TEXT, proc};
use super::super::value::{body, wrong_arguments};
use super::{
    JSON_TYPE, JSONB_TYPE, array_bytes, json, json_value, jsonb, jsonb_value, object_bytes,
};
use crate::Datum;
use crate::error::Result;
use crate::types::json::{Reader, write, write_string};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        3261,
        "json_strip_nulls",
        &[JSON_TYPE],
        JSON_TYPE,
        body!(|of: Datum<'_>| {
            let mut out = String::new();
            strip_text(&mut Reader::new(json(&of)?), &mut out).map(|()| json_value(out))
        }),
    ),
    proc(
        3262,
        "jsonb_strip_nulls",
        &[JSONB_TYPE],
        JSONB_TYPE,
        body!(|of: Datum<'_>| {
            let (value, bytes) = jsonb(&of)?;
            strip(value, bytes).map(jsonb_value)
        }),
    ),
    proc(
        3306,
        "jsonb_pretty",
        &[JSONB_TYPE],
        TEXT,
        body!(|of: Datum<'_>| {
            let mut out = Vec::new();
            pretty(jsonb(&of)?.0, 0, &mut out);
            String::from_utf8(out).map_err(|_| wrong_arguments(1))
        }),
    ),
];

fn strip(value: Json<'_>, bytes: &[u8]) -> Result<Vec<u8>> {
    match value {
        Json::Array(array) => {
            let parts: Result<Vec<Vec<u8>>> =
                array.iter().map(|(value, bytes)| strip(value, bytes)).collect();
            array_bytes(parts?.iter().map(Vec::as_slice))
        }
        Json::Object(object) => {
            let mut members = Vec::new();
            for (name, value, bytes) in object.iter() {
                if !matches!(value, Json::Null) {
                    members.push((name, strip(value, bytes)?));
                }
            }
            object_bytes(members.iter().map(|(name, bytes)| (*name, bytes.as_slice())))
        }
        _ => Ok(bytes.to_owned()),
    }
}

/// Copies a value of text without spaces. The text has been checked when it became a `json`.
fn strip_text(reader: &mut Reader<'_>, out: &mut String) -> Result<()> {
    reader.skip_spaces();
    let (open, close) = match reader.rest().chars().next() {
        Some('{') => ('{', '}'),
        Some('[') => ('[', ']'),
        Some('"') => {
            let text = reader.string()?;
            return quote(&text, out);
        }
        _ => {
            let start = reader.rest();
            reader.value(0, None)?;
            out.push_str(start.get(..start.len() - reader.rest().len()).unwrap_or(start));
            return Ok(());
        }
    };
    reader.eat(open);
    out.push(open);
    let empty = out.len();
    reader.skip_spaces();
    while !reader.eat(close) {
        let before = out.len();
        if before > empty {
            out.push(',');
        }
        if open == '{' {
            quote(&reader.name()?, out)?;
            out.push(':');
        }
        let value = out.len();
        strip_text(reader, out)?;
        if open == '{' && out.get(value..) == Some("null") {
            out.truncate(before);
        }
        reader.skip_spaces();
        reader.eat(',');
        reader.skip_spaces();
    }
    out.push(close);
    Ok(())
}

fn quote(text: &str, out: &mut String) -> Result<()> {
    let mut bytes = Vec::new();
    write_string(text, &mut bytes);
    out.push_str(std::str::from_utf8(&bytes).map_err(|_| wrong_arguments(1))?);
    Ok(())
}

fn indent(depth: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 4 * depth, b' ');
}

fn pretty(value: Json<'_>, depth: usize, out: &mut Vec<u8>) {
    match value {
        Json::Array(array) => {
            out.push(b'[');
            for (place, (element, _)) in array.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                indent(depth + 1, out);
                pretty(element, depth + 1, out);
            }
            indent(depth, out);
            out.push(b']');
        }
        Json::Object(object) => {
            out.push(b'{');
            for (place, (name, member, _)) in object.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                indent(depth + 1, out);
                write_string(name, out);
                out.extend_from_slice(b": ");
                pretty(member, depth + 1, out);
            }
            indent(depth, out);
            out.push(b'}');
        }
        scalar => write(scalar, out),
    }
}
