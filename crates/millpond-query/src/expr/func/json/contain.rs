//! Whether a `jsonb` contains another, or has names.

use std::cell::Cell;

use millpond_types::jsonb::Json;

use super::super::catalog::{BOOL, Proc, TEXT, proc};
use super::super::operators::{Operator, Work, op};
use super::super::value::body;
use super::{JSONB_TYPE, TEXT_ARRAY, jsonb, texts};
use crate::Datum;
use crate::error::Result;
use crate::expr::Env;

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        4046,
        "jsonb_contains",
        &[JSONB_TYPE, JSONB_TYPE],
        BOOL,
        body!(env, |a: Datum<'_>, b: Datum<'_>| contains_whole(&a, &b, env)),
    ),
    proc(
        4050,
        "jsonb_contained",
        &[JSONB_TYPE, JSONB_TYPE],
        BOOL,
        body!(env, |a: Datum<'_>, b: Datum<'_>| contains_whole(&b, &a, env)),
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

fn contains_whole(a: &Datum<'_>, b: &Datum<'_>, env: &Env<'_>) -> Result<bool> {
    let (a, b) = (jsonb(a)?.0, jsonb(b)?.0);
    let search = Search { env, steps: Cell::new(0) };
    match (a, b) {
        // At the top an array contains a scalar that is one of its elements.
        (Json::Array(array), Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => {
            search.any(array.iter().map(|(element, _)| (element, b)))
        }
        (a, b) => search.contains(a, b),
    }
}

/// A search for values within another. It may take long: each element of an array is looked for
/// among all elements of another.
struct Search<'e> {
    env: &'e Env<'e>,
    steps: Cell<u32>,
}

/// After how many comparisons a search asks whether it may go on.
const CHECKED_STEPS: u32 = 1 << 14;

impl Search<'_> {
    /// Whether the first of a pair contains the second, of any pair.
    fn any<'j>(&self, mut pairs: impl Iterator<Item = (Json<'j>, Json<'j>)>) -> Result<bool> {
        pairs
            .find_map(|(own, wanted)| {
                self.contains(own, wanted)
                    .map_or_else(|error| Some(Err(error)), |found| found.then_some(Ok(true)))
            })
            .unwrap_or(Ok(false))
    }

    /// Containment below the top: values nest no deeper than they are read.
    fn contains(&self, a: Json<'_>, b: Json<'_>) -> Result<bool> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() == CHECKED_STEPS {
            self.steps.set(0);
            self.env.check_long_work()?;
        }
        Ok(match (a, b) {
            (Json::Null, Json::Null) => true,
            (Json::Bool(a), Json::Bool(b)) => a == b,
            (Json::Number(a), Json::Number(b)) => a == b,
            (Json::String(a), Json::String(b)) => a == b,
            (Json::Array(a), Json::Array(b)) => {
                for (wanted, _) in b.iter() {
                    if !self.any(a.iter().map(|(own, _)| (own, wanted)))? {
                        return Ok(false);
                    }
                }
                true
            }
            (Json::Object(a), Json::Object(b)) => {
                for (name, wanted, _) in b.iter() {
                    let Some((own, _)) = a.get(name) else { return Ok(false) };
                    if !self.contains(own, wanted)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        })
    }
}
