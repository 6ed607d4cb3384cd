//! Values at the end of a path of names and places.

use millpond_types::other::{JSON, JSONB};

use super::super::Body;
use super::super::catalog::{Proc, TEXT, proc};
use super::super::operators::{Operator, Work, op};
use super::super::value::wrong_arguments;
use super::member::{as_text, find};
use super::{JSON_TYPE, JSONB_TYPE, TEXT_ARRAY, texts};
use crate::error::Result;
use crate::expr::Env;
use crate::{Datum, Value};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(3951, "json_extract_path", &[JSON_TYPE, TEXT], JSON_TYPE, Body::Datums(part)).variadic(),
    proc(3953, "json_extract_path_text", &[JSON_TYPE, TEXT], TEXT, Body::Datums(part_text))
        .variadic(),
    proc(3217, "jsonb_extract_path", &[JSONB_TYPE, TEXT], JSONB_TYPE, Body::Datums(part))
        .variadic(),
    proc(3940, "jsonb_extract_path_text", &[JSONB_TYPE, TEXT], TEXT, Body::Datums(part_text))
        .variadic(),
    // What the operators call, with the path as an array.
    proc(0, "json_extract_path", &[JSON_TYPE, TEXT_ARRAY], JSON_TYPE, Body::Datums(part)),
    proc(0, "json_extract_path_text", &[JSON_TYPE, TEXT_ARRAY], TEXT, Body::Datums(part_text)),
    proc(0, "jsonb_extract_path", &[JSONB_TYPE, TEXT_ARRAY], JSONB_TYPE, Body::Datums(part)),
    proc(0, "jsonb_extract_path_text", &[JSONB_TYPE, TEXT_ARRAY], TEXT, Body::Datums(part_text)),
];

pub(in super::super) static OPERATORS: &[Operator] = &[
    op("#>", &[JSON_TYPE, TEXT_ARRAY], JSON_TYPE, Work::Call("json_extract_path")),
    op("#>>", &[JSON_TYPE, TEXT_ARRAY], TEXT, Work::Call("json_extract_path_text")),
    op("#>", &[JSONB_TYPE, TEXT_ARRAY], JSONB_TYPE, Work::Call("jsonb_extract_path")),
    op("#>>", &[JSONB_TYPE, TEXT_ARRAY], TEXT, Work::Call("jsonb_extract_path_text")),
];

fn follow<'a>(args: &[Datum<'a>]) -> Result<Option<(u32, &'a [u8])>> {
    let Some((Datum::Other(oid, bytes), rest)) = args.split_first() else {
        return Err(wrong_arguments(args.len()));
    };
    let steps = match rest {
        [of @ Datum::Other(..)] => texts(of)?,
        rest => rest
            .iter()
            .map(|step| match step {
                Datum::Text(text) => Some(*text),
                _ => None,
            })
            .collect(),
    };
    if steps.is_empty() && *oid == JSON {
        return Ok(Some((*oid, whole(bytes))));
    }
    let mut at = *bytes;
    for step in steps {
        let Some(step) = step else { return Ok(None) };
        let here = Datum::Other(*oid, at);
        let named = find(&[here, Datum::Text(step)])?;
        let found = match (named, step.trim_start().parse::<i32>()) {
            (None, Ok(place)) => find(&[here, Datum::Int4(place)])?,
            (named, _) => named,
        };
        let Some((_, next)) = found else { return Ok(None) };
        at = next;
    }
    Ok(Some((*oid, at)))
}

/// A text of JSON without the blanks around it. Those before a scalar stay, as in PostgreSQL.
fn whole(bytes: &[u8]) -> &[u8] {
    match bytes.trim_ascii_start() {
        trimmed @ [b'{' | b'[', ..] => trimmed.trim_ascii_end(),
        _ => bytes.trim_ascii_end(),
    }
}

fn part(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    Ok(follow(args)?.map_or(Value::Null, |(oid, bytes)| Value::Other(oid, bytes.into())))
}

fn part_text(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    debug_assert!(matches!(args.first(), None | Some(Datum::Other(JSON | JSONB, _))));
    follow(args)?.map_or(Ok(Value::Null), |(oid, bytes)| as_text(oid, bytes))
}
