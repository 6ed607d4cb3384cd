//! A `jsonb` with another value at the end of a path.

use millpond_types::jsonb::{Json, JsonArray, JsonObject, write};

use super::super::Body;
use super::super::catalog::{BOOL, Proc, TEXT, proc};
use super::super::value::wrong_arguments;
use super::{
    JSONB_TYPE, TEXT_ARRAY, array_bytes, invalid, jsonb, list_of_texts, made_value, object_bytes,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::{Datum, Value};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        3305,
        "jsonb_set",
        &[JSONB_TYPE, TEXT_ARRAY, JSONB_TYPE, BOOL],
        JSONB_TYPE,
        Body::Datums(set_call),
    ),
    // The last argument has a default, here and below.
    proc(0, "jsonb_set", &[JSONB_TYPE, TEXT_ARRAY, JSONB_TYPE], JSONB_TYPE, Body::Datums(set_call)),
    proc(
        3579,
        "jsonb_insert",
        &[JSONB_TYPE, TEXT_ARRAY, JSONB_TYPE, BOOL],
        JSONB_TYPE,
        Body::Datums(insert),
    ),
    proc(
        0,
        "jsonb_insert",
        &[JSONB_TYPE, TEXT_ARRAY, JSONB_TYPE],
        JSONB_TYPE,
        Body::Datums(insert),
    ),
    proc(
        5054,
        "jsonb_set_lax",
        &[JSONB_TYPE, TEXT_ARRAY, JSONB_TYPE, BOOL, TEXT],
        JSONB_TYPE,
        Body::Datums(set_lax),
    )
    .called_on_null(),
    proc(
        0,
        "jsonb_set_lax",
        &[JSONB_TYPE, TEXT_ARRAY, JSONB_TYPE, BOOL],
        JSONB_TYPE,
        Body::Datums(set_lax),
    )
    .called_on_null(),
    proc(
        0,
        "jsonb_set_lax",
        &[JSONB_TYPE, TEXT_ARRAY, JSONB_TYPE],
        JSONB_TYPE,
        Body::Datums(set_lax),
    )
    .called_on_null(),
];

/// What happens at the end of the path.
pub(super) enum Change<'a> {
    /// The value there becomes another; if there is none, it may be made.
    Set {
        new: &'a [u8],
        create: bool,
    },
    /// Another value comes before or after the one there.
    Insert {
        new: &'a [u8],
        after: bool,
    },
    Delete,
}

/// Whether a last argument of `true` or `false` is true, which may be left out.
fn flag(rest: &[Datum<'_>], default: bool) -> bool {
    matches!(rest, [Datum::Bool(true), ..]) || rest.is_empty() && default
}

fn set_call(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of, path, new, rest @ ..] = args else { return Err(wrong_arguments(args.len())) };
    set(of, path, new, flag(rest, true))
}

fn set(of: &Datum<'_>, path: &Datum<'_>, new: &Datum<'_>, create: bool) -> Result<Value> {
    change(of, path, Change::Set { new: jsonb(new)?.1, create })
}

fn insert(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of, path, new, rest @ ..] = args else { return Err(wrong_arguments(args.len())) };
    change(of, path, Change::Insert { new: jsonb(new)?.1, after: flag(rest, false) })
}

/// Changes what is at the end of a path in an object or an array.
pub(super) fn change(of: &Datum<'_>, path: &Datum<'_>, change: Change<'_>) -> Result<Value> {
    let (value, bytes) = jsonb(of)?;
    let path = list_of_texts(path)?;
    if !matches!(value, Json::Array(_) | Json::Object(_)) {
        let verb = if matches!(change, Change::Delete) { "delete" } else { "set" };
        return Err(invalid(format!("cannot {verb} path in scalar")));
    }
    update(value, bytes, &path, &change).and_then(made_value)
}

/// `jsonb_set`, for which a new value of SQL's NULL has a meaning.
fn set_lax(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [of, path, new, rest @ ..] = args else { return Err(wrong_arguments(args.len())) };
    let create = match rest.first() {
        None => true,
        Some(Datum::Bool(create)) => *create,
        Some(_) => return Ok(Value::Null),
    };
    if of.is_null() || path.is_null() {
        return Ok(Value::Null);
    }
    let treatment = match rest.get(1) {
        None => "use_json_null",
        Some(Datum::Text(treatment)) => treatment,
        Some(_) => return Err(unknown_treatment()),
    };
    if !new.is_null() {
        return set(of, path, new, create);
    }
    match treatment {
        "raise_exception" => {
            let message = "JSON value must not be null";
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
                .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
                .hint(concat!(
                    "To avoid, either change the null_value_treatment argument ",
                    "or ensure that an SQL NULL is not passed."
                )))
        }
        "use_json_null" => {
            let mut null = Vec::new();
            write::null(&mut null);
            change(of, path, Change::Set { new: &null, create })
        }
        "delete_key" => change(of, path, Change::Delete),
        "return_target" => Ok(of.to_value()),
        _ => Err(unknown_treatment()),
    }
}

#[cold]
fn unknown_treatment() -> SqlError {
    let all = ["delete_key", "return_target", "use_json_null"].map(|word| format!("\"{word}\""));
    invalid(format!("null_value_treatment must be {}, or \"raise_exception\"", all.join(", ")))
}

/// Changes what is at the end of a path. A path that leads nowhere changes nothing.
fn update(
    value: Json<'_>,
    bytes: &[u8],
    path: &[Option<&str>],
    change: &Change<'_>,
) -> Result<Vec<u8>> {
    let is_empty = match value {
        Json::Array(array) => array.is_empty(),
        Json::Object(object) => object.is_empty(),
        _ => true,
    };
    let may_add = matches!(change, Change::Insert { .. } | Change::Set { create: true, .. });
    if path.is_empty() || is_empty && !may_add {
        return Ok(bytes.to_owned());
    }
    step(value, bytes, path, 0, change)
}

fn step(
    value: Json<'_>,
    bytes: &[u8],
    path: &[Option<&str>],
    level: usize,
    change: &Change<'_>,
) -> Result<Vec<u8>> {
    let Some(key) = path.get(level) else { return Ok(bytes.to_owned()) };
    let key = key.ok_or_else(|| {
        let message = format!("path element at position {} is null", level + 1);
        SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
    })?;
    match value {
        Json::Object(object) => in_object(object, key, path, level, change),
        Json::Array(array) => in_array(array, key, path, level, change),
        _ => Ok(bytes.to_owned()),
    }
}

fn in_object(
    object: JsonObject<'_>,
    key: &str,
    path: &[Option<&str>],
    level: usize,
    change: &Change<'_>,
) -> Result<Vec<u8>> {
    let is_last = level + 1 == path.len();
    let inner = match object.get(key) {
        Some((value, bytes)) if !is_last => Some(step(value, bytes, path, level + 1, change)?),
        _ => None,
    };
    let found = object.get(key).is_some();
    let mut members = Vec::with_capacity(object.len() + 1);
    for (name, _, bytes) in object.iter() {
        if name != key {
            members.push((name, bytes));
            continue;
        }
        match (&inner, change) {
            (Some(inner), _) => members.push((name, inner.as_slice())),
            (None, Change::Set { new, .. }) => members.push((name, new)),
            (None, Change::Delete) => {}
            (None, Change::Insert { .. }) => {
                return Err(invalid("cannot replace existing key")
                    .hint("Try using the function jsonb_set to replace key value."));
            }
        }
    }
    if is_last && !found {
        match change {
            Change::Set { new, create: true } | Change::Insert { new, .. } => {
                members.push((key, new));
            }
            _ => {}
        }
    }
    object_bytes(members)
}

fn in_array(
    array: JsonArray<'_>,
    key: &str,
    path: &[Option<&str>],
    level: usize,
    change: &Change<'_>,
) -> Result<Vec<u8>> {
    let is_last = level + 1 == path.len();
    let place: i32 = key.trim_start().parse().map_err(|_| {
        let message =
            format!("path element at position {} is not an integer: \"{key}\"", level + 1);
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })?;
    // A place before the first element is none.
    let place = match usize::try_from(place) {
        Ok(place) => Some(place.min(array.len())),
        Err(_) => array.len().checked_sub(place.unsigned_abs() as usize),
    };
    let added = match change {
        Change::Set { new, create: true } | Change::Insert { new, .. } if is_last => Some(*new),
        _ => None,
    };
    let mut parts: Vec<std::borrow::Cow<'_, [u8]>> = Vec::with_capacity(array.len() + 1);
    if place.is_none() {
        parts.extend(added.map(Into::into));
    }
    for (own, (value, bytes)) in array.iter().enumerate() {
        if place != Some(own) {
            parts.push(bytes.into());
        } else if !is_last {
            parts.push(step(value, bytes, path, level + 1, change)?.into());
        } else {
            match change {
                Change::Set { new, .. } => parts.push((*new).into()),
                Change::Insert { new, after: false } => {
                    parts.extend([(*new).into(), bytes.into()]);
                }
                Change::Insert { new, after: true } => parts.extend([bytes.into(), (*new).into()]),
                Change::Delete => {}
            }
        }
    }
    if place == Some(array.len()) {
        parts.extend(added.map(Into::into));
    }
    array_bytes(parts.iter().map(AsRef::as_ref))
}
