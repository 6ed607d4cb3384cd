//! JSON made of SQL's values.

use millpond_types::other::{JSON, JSONB, RECORD};

use super::super::Body;
use super::super::catalog::{ANY, BOOL, Param, Proc, RECORD_TYPE, proc};
use super::super::value::{body, wrong_arguments};
use super::encode::{jsonb_array_of, name_text, write_jsonb, write_list, write_record, write_text};
use super::{
    JSON_TYPE, JSONB_TYPE, TEXT_ARRAY, invalid, json_value, made_value, object_bytes, texts,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::types::FormatOptions;
use crate::types::array::array_of;
use crate::types::json::write_string;
use crate::{DataType, Datum, Value};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(3176, "to_json", &[Param::AnyElement], JSON_TYPE, Body::Datums(to_json)).stable(),
    proc(3787, "to_jsonb", &[Param::AnyElement], JSONB_TYPE, Body::Datums(to_jsonb)).stable(),
    proc(3153, "array_to_json", &[Param::AnyArray], JSON_TYPE, Body::Datums(array_to_json))
        .stable(),
    proc(3154, "array_to_json", &[Param::AnyArray, BOOL], JSON_TYPE, Body::Datums(array_to_json))
        .stable(),
    proc(3155, "row_to_json", &[RECORD_TYPE], JSON_TYPE, Body::Datums(row_to_json)).stable(),
    proc(3156, "row_to_json", &[RECORD_TYPE, BOOL], JSON_TYPE, Body::Datums(row_to_json)).stable(),
    proc(3198, "json_build_array", &[ANY], JSON_TYPE, Body::Datums(json_array))
        .variadic()
        .called_on_null()
        .stable(),
    proc(3199, "json_build_array", &[], JSON_TYPE, Body::Datums(json_array))
        .called_on_null()
        .stable(),
    proc(3200, "json_build_object", &[ANY], JSON_TYPE, Body::Datums(json_object))
        .variadic()
        .called_on_null()
        .stable(),
    proc(3201, "json_build_object", &[], JSON_TYPE, Body::Datums(json_object))
        .called_on_null()
        .stable(),
    proc(3271, "jsonb_build_array", &[ANY], JSONB_TYPE, Body::Datums(jsonb_array))
        .variadic()
        .called_on_null()
        .stable(),
    proc(3272, "jsonb_build_array", &[], JSONB_TYPE, Body::Datums(jsonb_array))
        .called_on_null()
        .stable(),
    proc(3273, "jsonb_build_object", &[ANY], JSONB_TYPE, Body::Datums(jsonb_object))
        .variadic()
        .called_on_null()
        .stable(),
    proc(3274, "jsonb_build_object", &[], JSONB_TYPE, Body::Datums(jsonb_object))
        .called_on_null()
        .stable(),
    proc(
        3202,
        "json_object",
        &[TEXT_ARRAY],
        JSON_TYPE,
        body!(|all: Datum<'_>| pairs(&all).and_then(json_of_pairs)),
    ),
    proc(
        3203,
        "json_object",
        &[TEXT_ARRAY, TEXT_ARRAY],
        JSON_TYPE,
        body!(|names: Datum<'_>, values: Datum<'_>| {
            zipped(&names, &values).and_then(json_of_pairs)
        }),
    ),
    proc(
        3263,
        "jsonb_object",
        &[TEXT_ARRAY],
        JSONB_TYPE,
        body!(|all: Datum<'_>| pairs(&all).and_then(jsonb_of_pairs)),
    ),
    proc(
        3264,
        "jsonb_object",
        &[TEXT_ARRAY, TEXT_ARRAY],
        JSONB_TYPE,
        body!(
            |names: Datum<'_>, values: Datum<'_>| zipped(&names, &values).and_then(jsonb_of_pairs)
        ),
    ),
];

fn options<'a>(env: &'a Env<'_>) -> &'a FormatOptions {
    env.facts.settings.format_options()
}

pub(super) fn text_value(bytes: Vec<u8>) -> Value {
    Value::Other(JSON, bytes.into())
}

fn to_json(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [value] = args else { return Err(wrong_arguments(args.len())) };
    let mut out = Vec::new();
    write_text(value, options(env), &mut out)?;
    Ok(text_value(out))
}

fn to_jsonb(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [value] = args else { return Err(wrong_arguments(args.len())) };
    let mut out = Vec::new();
    write_jsonb(value, options(env), &mut out)?;
    made_value(out)
}

/// With a second argument that is true, each element of the outermost dimension has a line.
fn array_to_json(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let array = args.first().and_then(array_of).ok_or_else(|| wrong_arguments(args.len()))?;
    let lengths: Vec<usize> = array.dimensions().iter().map(|one| one.length as usize).collect();
    let separator = if matches!(args.get(1), Some(Datum::Bool(true))) { ",\n " } else { "," };
    let mut out = Vec::new();
    let type_oid = array.element();
    write_list(&lengths, &mut array.iter(), type_oid, options(env), separator, &mut out)?;
    Ok(text_value(out))
}

/// With a second argument that is true, each field has a line.
fn row_to_json(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let Some(Datum::Other(RECORD, bytes)) = args.first() else {
        return Err(wrong_arguments(args.len()));
    };
    let separator = if matches!(args.get(1), Some(Datum::Bool(true))) { ",\n " } else { "," };
    let mut out = Vec::new();
    write_record(bytes, options(env), separator, &mut out)?;
    Ok(text_value(out))
}

fn json_array(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let mut out = Vec::new();
    let type_oid = DataType::Text.oid();
    write_list(&[args.len()], &mut args.iter().copied(), type_oid, options(env), ", ", &mut out)?;
    Ok(text_value(out))
}

fn jsonb_array(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    jsonb_array_of(args.iter().copied(), options(env))
}

fn is_even(args: &[Datum<'_>], function: &str) -> Result<()> {
    if args.len().is_multiple_of(2) {
        return Ok(());
    }
    Err(invalid("argument list must have even number of elements")
        .hint(format!("The arguments of {function} must consist of alternating keys and values.")))
}

/// A value as a name; only scalars can be.
pub(super) fn key_text(value: &Datum<'_>, options: &FormatOptions) -> Result<String> {
    if matches!(value, Datum::Other(JSON | JSONB | RECORD, _)) || array_of(value).is_some() {
        return Err(invalid("key value must be scalar, not array, composite, or json"));
    }
    Ok(name_text(value, options))
}

fn json_object(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    is_even(args, "json_build_object()")?;
    let mut out = vec![b'{'];
    for (place, pair) in args.chunks_exact(2).enumerate() {
        let [key, value] = pair else { return Err(wrong_arguments(args.len())) };
        if place > 0 {
            out.extend_from_slice(b", ");
        }
        if key.is_null() {
            return Err(invalid(format!("argument {} cannot be null", 2 * place + 1))
                .hint("Object keys should be text."));
        }
        write_string(&key_text(key, options(env))?, &mut out);
        out.extend_from_slice(b" : ");
        write_text(value, options(env), &mut out)?;
    }
    out.push(b'}');
    Ok(text_value(out))
}

fn jsonb_object(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    is_even(args, "jsonb_build_object()")?;
    for (place, pair) in args.chunks_exact(2).enumerate() {
        if pair.first().is_none_or(Datum::is_null) {
            return Err(invalid(format!("argument {}: key must not be null", 2 * place + 1)));
        }
    }
    members_of(args, options(env))
}

/// An object of names and values in turn. Of equal names the last value counts.
pub(super) fn members_of(pairs: &[Datum<'_>], options: &FormatOptions) -> Result<Value> {
    let mut members = Vec::new();
    for pair in pairs.chunks_exact(2) {
        let [key, value] = pair else { return Err(wrong_arguments(pairs.len())) };
        let mut bytes = Vec::new();
        write_jsonb(value, options, &mut bytes)?;
        members.push((key_text(key, options)?, bytes));
    }
    let members = members.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    object_bytes(members).and_then(made_value)
}

type Pairs<'a> = Vec<(Option<&'a str>, Option<&'a str>)>;

fn subscripts(message: &str) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

/// The names and values that stand in turn in one array, or in rows of two.
fn pairs<'a>(all: &Datum<'a>) -> Result<Pairs<'a>> {
    let array = array_of(all).ok_or_else(|| wrong_arguments(1))?;
    match array.dimensions() {
        [] => {}
        [one] if one.length % 2 == 1 => {
            return Err(subscripts("array must have even number of elements"));
        }
        [_] => {}
        [_, two] if two.length != 2 => {
            return Err(subscripts("array must have two columns"));
        }
        [_, _] => {}
        _ => return Err(subscripts("wrong number of array subscripts")),
    }
    let texts = texts(all)?;
    Ok(texts
        .chunks_exact(2)
        .filter_map(|pair| match pair {
            [name, value] => Some((*name, *value)),
            _ => None,
        })
        .collect())
}

fn zipped<'a>(names: &Datum<'a>, values: &Datum<'a>) -> Result<Pairs<'a>> {
    let dimensions = |of: &Datum<'_>| array_of(of).map_or(0, |array| array.dimensions().len());
    if dimensions(names) > 1 || dimensions(names) != dimensions(values) {
        return Err(subscripts("wrong number of array subscripts"));
    }
    let (names, values) = (texts(names)?, texts(values)?);
    if names.len() != values.len() {
        return Err(subscripts("mismatched array dimensions"));
    }
    Ok(names.into_iter().zip(values).collect())
}

fn no_name() -> SqlError {
    SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key")
}

fn json_of_pairs(pairs: Pairs<'_>) -> Result<Value> {
    let mut out = vec![b'{'];
    for (place, (name, value)) in pairs.iter().enumerate() {
        if place > 0 {
            out.extend_from_slice(b", ");
        }
        write_string(name.ok_or_else(no_name)?, &mut out);
        out.extend_from_slice(b" : ");
        match value {
            Some(value) => write_string(value, &mut out),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    String::from_utf8(out).map(json_value).map_err(|_| wrong_arguments(1))
}

fn jsonb_of_pairs(pairs: Pairs<'_>) -> Result<Value> {
    let mut members = Vec::new();
    for (name, value) in pairs {
        let mut bytes = Vec::new();
        let value = value.map_or(Datum::Null, Datum::Text);
        write_jsonb(&value, &FormatOptions::default(), &mut bytes)?;
        members.push((name.ok_or_else(no_name)?, bytes));
    }
    object_bytes(members.iter().map(|(name, bytes)| (*name, bytes.as_slice()))).and_then(made_value)
}
