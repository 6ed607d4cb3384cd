//! `array[1]`, `array[1:2]`

use millpond_types::array::Dimension;

use super::super::Body;
use super::super::catalog::{ANY, Param, Proc, proc};
use super::super::value::wrong_arguments;
use super::{array, built, type_of};
use crate::error::Result;
use crate::expr::Env;
use crate::types::array::build;
use crate::{Datum, Value};

/// `array[i][j]`: the array, then a subscript for each dimension.
pub(in crate::expr) static ELEMENT: Proc =
    proc(0, "array_subscript", &[ANY], Param::AnyElement, Body::Datums(element)).variadic();

/// `array[a:b][c:d]`: the array, then two subscripts for each dimension. `true` stands for one that
/// is not written.
pub(in crate::expr) static SLICE: Proc =
    proc(0, "array_slice", &[ANY], Param::AnyArray, Body::Datums(slice)).variadic();

/// The place of an element in its array; `None` if there is no such element.
fn place(dimensions: &[Dimension], subscripts: &[Datum<'_>]) -> Option<usize> {
    if dimensions.len() != subscripts.len() {
        return None;
    }
    let mut place = 0usize;
    for (dimension, subscript) in dimensions.iter().zip(subscripts) {
        let offset = subscript.as_i64()? - i64::from(dimension.lower);
        let offset = u32::try_from(offset).ok().filter(|offset| *offset < dimension.length)?;
        place = place * dimension.length as usize + offset as usize;
    }
    Some(place)
}

fn element(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let Some((of, subscripts)) = args.split_first() else { return Err(wrong_arguments(0)) };
    let array = array(of)?;
    let place = place(array.dimensions(), subscripts);
    let found = place.and_then(|place| array.iter().nth(place));
    Ok(found.map_or(Value::Null, |datum| datum.to_value()))
}

fn slice(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let Some((of, bounds)) = args.split_first() else { return Err(wrong_arguments(0)) };
    let (oid, array) = (type_of(of)?, array(of)?);
    let dimensions = array.dimensions();
    if bounds.len() > dimensions.len() * 2 {
        return Ok(build(oid, &[], [])?);
    }
    // Per dimension: the first place and the number of places.
    let mut parts = Vec::with_capacity(dimensions.len());
    let mut bounds = bounds.iter();
    for dimension in dimensions {
        let first = i64::from(dimension.lower);
        let last = first + i64::from(dimension.length) - 1;
        let bound =
            |given: Option<&Datum<'_>>, or: i64| given.and_then(Datum::as_i64).unwrap_or(or);
        let from = bound(bounds.next(), first).max(first);
        let to = bound(bounds.next(), last).min(last);
        if from > to {
            return Ok(build(oid, &[], [])?);
        }
        parts.push(((from - first) as usize, (to - from + 1) as u32));
    }
    let wanted = |place: usize| {
        let mut rest = place;
        dimensions.iter().zip(&parts).rev().all(|(dimension, (start, count))| {
            let length = dimension.length as usize;
            let at = rest % length;
            rest /= length;
            at >= *start && at < start + *count as usize
        })
    };
    let lengths = parts.iter().map(|(_, length)| Dimension { length: *length, lower: 1 });
    let lengths: Vec<Dimension> = lengths.collect();
    let kept = array.iter().enumerate().filter(|(place, _)| wanted(*place)).map(|(_, datum)| datum);
    built(oid, &lengths, kept, env)
}
