//! Whether a `jsonb` contains another, or has names.

use millpond_types::jsonb::Json;

use super::super::catalog::{BOOL, Proc, TEXT, proc};
use super::super::operators::{Operator, Work, op};
use super::super::value::body;
use super::{JSONB_TYPE, TEXT_ARRAY, jsonb, texts};
use crate::Datum;
use crate::error::Result;

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        4046,
        "jsonb_contains",
        &[JSONB_TYPE, JSONB_TYPE],
        BOOL,
        body!(|a: Datum<'_>, b: Datum<'_>| contains_whole(&a, &b)),
    ),
    proc(
        4050,
        "jsonb_contained",
        &[JSONB_TYPE, JSONB_TYPE],
        BOOL,
        body!(|a: Datum<'_>, b: Datum<'_>| contains_whole(&b, &a)),
    ),
    proc(
        4047,
        "jsonb_exists",
        &[JSONB_TYPE, TEXT],
        BOOL,
        body!(|of: Datum<'_>, name: &str| jsonb(&of).map(|(value, _)| has(value, name))),
    ),
    proc(
        4048,
        "jsonb_exists_any",
        &[JSONB_TYPE, TEXT_ARRAY],
        BOOL,
        body!(|of: Datum<'_>, names: Datum<'_>| which(&of, &names)
            .map(|found| found.iter().any(|found| *found))),
    ),
    proc(
        4049,
        "jsonb_exists_all",
        &[JSONB_TYPE, TEXT_ARRAY],
        BOOL,
        body!(|of: Datum<'_>, names: Datum<'_>| which(&of, &names)
            .map(|found| found.iter().all(|found| *found))),
    ),
];

pub(in super::super) static OPERATORS: &[Operator] = &[
    op("@>", &[JSONB_TYPE, JSONB_TYPE], BOOL, Work::Call("jsonb_contains")),
    op("<@", &[JSONB_TYPE, JSONB_TYPE], BOOL, Work::Call("jsonb_contained")),
    op("?", &[JSONB_TYPE, TEXT], BOOL, Work::Call("jsonb_exists")),
    op("?|", &[JSONB_TYPE, TEXT_ARRAY], BOOL, Work::Call("jsonb_exists_any")),
    op("?&", &[JSONB_TYPE, TEXT_ARRAY], BOOL, Work::Call("jsonb_exists_all")),
];

/// For each name whether it is there. A name that is NULL does not count.
fn which(of: &Datum<'_>, names: &Datum<'_>) -> Result<Vec<bool>> {
    let value = jsonb(of)?.0;
    Ok(texts(names)?.into_iter().flatten().map(|name| has(value, name)).collect())
}

/// Whether a name or a string is there, at the top.
fn has(value: Json<'_>, name: &str) -> bool {
    match value {
        Json::Object(object) => object.get(name).is_some(),
        Json::Array(array) => {
            array.iter().any(|(element, _)| matches!(element, Json::String(own) if own == name))
        }
        Json::String(own) => own == name,
        _ => false,
    }
}

fn contains_whole(a: &Datum<'_>, b: &Datum<'_>) -> Result<bool> {
    let (a, b) = (jsonb(a)?.0, jsonb(b)?.0);
    Ok(match (a, b) {
        // At the top an array contains a scalar that is one of its elements.
        (Json::Array(array), Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => {
            array.iter().any(|(element, _)| contains(element, b))
        }
        (a, b) => contains(a, b),
    })
}

/// Containment below the top: values nest no deeper than they are read.
fn contains(a: Json<'_>, b: Json<'_>) -> bool {
    match (a, b) {
        (Json::Null, Json::Null) => true,
        (Json::Bool(a), Json::Bool(b)) => a == b,
        (Json::Number(a), Json::Number(b)) => a == b,
        (Json::String(a), Json::String(b)) => a == b,
        (Json::Array(a), Json::Array(b)) => {
            b.iter().all(|(wanted, _)| a.iter().any(|(own, _)| contains(own, wanted)))
        }
        (Json::Object(a), Json::Object(b)) => b
            .iter()
            .all(|(name, wanted, _)| a.get(name).is_some_and(|(own, _)| contains(own, wanted))),
        _ => false,
    }
}
