//! Aggregates over sorted values: percentiles and the most frequent value. Values stay
//! encoded. Only those that are asked for are decoded.

use millpond_types::other::INTERVAL;

use super::accumulator::as_f64;
use super::sum::interval;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::interval_math::{add, multiply, subtract};
use crate::memory::{Collected, row_bytes};
use crate::types::array;
use crate::{DataType, Datum, Value};

/// The most frequent value, the first of several. Looks at each value whether to stop.
pub(super) fn mode(sorted: &Collected, look: impl Fn() -> Result<()>) -> Result<Value> {
    let (mut best, mut best_count, mut start) = (0, 0, 0);
    let mut before = None;
    let ends = sorted.keys().map(Some).chain([None]);
    for (i, key) in ends.enumerate() {
        look()?;
        if i > 0 && before != key {
            if i - start > best_count {
                (best, best_count) = (start, i - start);
            }
            start = i;
        }
        before = key;
    }
    Ok(value_at(sorted, best)?.to_value())
}

/// NULL if there is no such row.
fn value_at(sorted: &Collected, place: usize) -> Result<Datum<'_>> {
    let Some(row) = sorted.row_at(place) else { return Ok(Datum::Null) };
    row_bytes::read(row)?.first().copied().ok_or_else(row_bytes::damaged)
}

/// The first value at or behind a fraction of the values. Of an array of fractions, it is the array
/// of type `ty` with the value at each.
pub(super) fn discrete(sorted: &Collected, fraction: Datum<'_>, ty: DataType) -> Result<Value> {
    at_each(sorted, fraction, ty, discrete_at)
}

/// The value at a fraction, between two values if need be; of an array of fractions as above.
pub(super) fn continuous(sorted: &Collected, fraction: Datum<'_>, ty: DataType) -> Result<Value> {
    at_each(sorted, fraction, ty, continuous_at)
}

fn at_each(
    sorted: &Collected,
    fraction: Datum<'_>,
    ty: DataType,
    at: impl Fn(&Collected, Datum<'_>) -> Result<Value>,
) -> Result<Value> {
    match array::array_of(&fraction) {
        Some(_) if sorted.len() == 0 => Ok(Value::Null),
        Some(fractions) => array::map(&fractions, ty, |fraction| at(sorted, fraction)),
        None => at(sorted, fraction),
    }
}

fn discrete_at(sorted: &Collected, fraction: Datum<'_>) -> Result<Value> {
    let Some(fraction) = checked(fraction)? else { return Ok(Value::Null) };
    let place = (fraction * sorted.len() as f64).ceil() as usize;
    Ok(value_at(sorted, place.saturating_sub(1))?.to_value())
}

fn continuous_at(sorted: &Collected, fraction: Datum<'_>) -> Result<Value> {
    let Some(fraction) = checked(fraction)? else { return Ok(Value::Null) };
    let Some(last) = sorted.len().checked_sub(1) else { return Ok(Value::Null) };
    let place = fraction * last as f64;
    let part = place - place.floor();
    let value = |place: f64| value_at(sorted, place as usize);
    let (low, high) = (value(place.floor())?, value(place.ceil())?);
    if part == 0.0 {
        return Ok(low.to_value());
    }
    if let (Datum::Other(INTERVAL, low), Datum::Other(INTERVAL, high)) = (low, high) {
        let (low, high) = (interval(low)?, interval(high)?);
        return Ok(add(low, multiply(subtract(high, low)?, part)?)?.into());
    }
    match (as_f64(low), as_f64(high)) {
        (Some(low), Some(high)) => Ok(Value::Float8(low + part * (high - low))),
        _ => Err(SqlError::internal("percentile_cont of another type")),
    }
}

fn checked(fraction: Datum<'_>) -> Result<Option<f64>> {
    let Some(value) = as_f64(fraction) else { return Ok(None) };
    if (0.0..=1.0).contains(&value) {
        return Ok(Some(value));
    }
    Err(SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("percentile value {value} is not between 0 and 1"),
    ))
}
