//! Arrays made of other arrays.

use millpond_types::array::{ArrayRef, Dimension};
use millpond_types::other::array_of as array_type_of;

use super::super::value::wrong_arguments;
use super::{array, built, is_same, type_of};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, cast};
use crate::types::array::{Elements, too_large};
use crate::{Datum, Value};

/// An array's type, itself, and the dimension that it has with one element more. NULL is like an
/// empty array whose elements are like `other`.
fn or_empty<'a>(
    of: &Datum<'a>,
    other: &Datum<'_>,
) -> Result<(u32, Option<ArrayRef<'a>>, Dimension)> {
    if of.is_null() {
        let element = cast::type_of(other).and_then(|ty| array_type_of(ty.oid()));
        // Where both are NULL the binder casts to the type that it knows.
        let one = Dimension { length: 1, lower: 1 };
        return Ok((element.map_or(1009, |ty| ty.oid), None, one));
    }
    let array = array(of)?;
    let grown = match array.dimensions() {
        [] => Dimension { length: 1, lower: 1 },
        [one] => Dimension { length: one.length.checked_add(1).ok_or_else(too_large)?, ..*one },
        _ => {
            return Err(SqlError::new(
                SqlState::DATA_EXCEPTION,
                "argument must be empty or one-dimensional array",
            ));
        }
    };
    Ok((type_of(of)?, Some(array), grown))
}

pub(super) fn append(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [of, element] = args else { return Err(wrong_arguments(args.len())) };
    let (oid, array, grown) = or_empty(of, element)?;
    let before = array.map(Elements::AllOf);
    built(oid, &[grown], before.into_iter().chain([Elements::One(*element)]), env)
}

pub(super) fn prepend(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [element, of] = args else { return Err(wrong_arguments(args.len())) };
    let (oid, array, grown) = or_empty(of, element)?;
    if grown.lower == i32::MIN {
        // The element's own subscript, before the array gets back its lower bound.
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"));
    }
    let behind = array.map(Elements::AllOf);
    built(oid, &[grown], [Elements::One(*element)].into_iter().chain(behind), env)
}

pub(super) fn concatenate(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [a, b] = args else { return Err(wrong_arguments(args.len())) };
    if a.is_null() || b.is_null() {
        return Ok(if a.is_null() { b.to_value() } else { a.to_value() });
    }
    let (left, right) = (array(a)?, array(b)?);
    let dimensions = match (left.dimensions(), right.dimensions()) {
        ([], _) => return Ok(b.to_value()),
        (_, []) => return Ok(a.to_value()),
        (x, y) => joined(x, y)?,
    };
    built(type_of(a)?, &dimensions, [left, right].map(Elements::AllOf), env)
}

/// The dimensions of two arrays one behind the other. One may be an element of what the other is.
fn joined(x: &[Dimension], y: &[Dimension]) -> Result<Vec<Dimension>> {
    let incompatible = |detail: String| {
        SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "cannot concatenate incompatible arrays")
            .detail(detail)
    };
    let grown = |whole: &[Dimension], by: u32| {
        let mut dimensions = whole.to_vec();
        if let Some(first) = dimensions.first_mut() {
            first.length = first.length.checked_add(by).ok_or_else(too_large)?;
        }
        Ok(dimensions)
    };
    let shown = "Arrays with differing element dimensions are not compatible for concatenation.";
    fn inner(whole: &[Dimension]) -> &[Dimension] {
        whole.get(1..).unwrap_or_default()
    }
    if x.len() == y.len() {
        if inner(x) != inner(y) {
            return Err(incompatible(shown.to_owned()));
        }
        return grown(x, y.first().map_or(0, |first| first.length));
    }
    let shown = "Arrays with differing dimensions are not compatible for concatenation.";
    if x.len() == y.len() + 1 {
        return if inner(x) == y { grown(x, 1) } else { Err(incompatible(shown.into())) };
    }
    if y.len() == x.len() + 1 {
        return if inner(y) == x { grown(y, 1) } else { Err(incompatible(shown.into())) };
    }
    Err(incompatible(format!(
        "Arrays of {} and {} dimensions are not compatible for concatenation.",
        x.len(),
        y.len()
    )))
}

/// An array of one dimension at most.
fn flat<'a>(of: &Datum<'a>) -> Result<ArrayRef<'a>> {
    let array = array(of)?;
    if array.dimensions().len() > 1 {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "removing elements from multidimensional arrays is not supported",
        ));
    }
    Ok(array)
}

pub(super) fn remove(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [of, unwanted] = args else { return Err(wrong_arguments(args.len())) };
    if of.is_null() {
        return Ok(Value::Null);
    }
    let array = flat(of)?;
    let kept: Vec<_> = array.iter().filter(|element| !is_same(element, unwanted)).collect();
    match array.dimensions() {
        [one] if kept.len() < one.length as usize => {
            let length = u32::try_from(kept.len()).map_err(|_| too_large())?;
            built(type_of(of)?, &[Dimension { length, ..*one }], kept, env)
        }
        _ => Ok(of.to_value()),
    }
}

pub(super) fn replace(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [of, old, new] = args else { return Err(wrong_arguments(args.len())) };
    if of.is_null() {
        return Ok(Value::Null);
    }
    let array = array(of)?;
    let replaced = array.iter().map(|element| if is_same(&element, old) { *new } else { element });
    built(type_of(of)?, array.dimensions(), replaced, env)
}

/// Without its last elements, counted along the first dimension.
pub(super) fn trim(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [of, Datum::Int4(count)] = args else { return Err(wrong_arguments(args.len())) };
    let array = array(of)?;
    let mut dimensions = array.dimensions().to_vec();
    let length = dimensions.first().map_or(0, |first| first.length);
    let Some(rest) = u32::try_from(*count).ok().and_then(|count| length.checked_sub(count)) else {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!("number of elements to trim must be between 0 and {length}"),
        ));
    };
    // It is a slice, and bounds of slices begin with 1.
    dimensions.iter_mut().for_each(|dimension| dimension.lower = 1);
    if let Some(first) = dimensions.first_mut() {
        first.length = rest;
    }
    let count = crate::types::array::count_of(&dimensions)?;
    built(type_of(of)?, &dimensions, array.iter().take(count), env)
}
