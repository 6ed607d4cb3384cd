//! Aggregates over sorted values: percentiles and the most frequent value.

use millpond_types::other::INTERVAL;

use super::accumulator::as_f64;
use super::sum::interval;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::interval_math::{add, multiply, subtract};
use crate::types::array;
use crate::{DataType, Datum, Value};

/// The most frequent value, the first of several.
pub(super) fn mode(sorted: &[Value]) -> Value {
    let (mut best, mut best_count, mut start) = (0, 0, 0);
    for i in 1..=sorted.len() {
        let goes_on = match (sorted.get(start), sorted.get(i)) {
            (Some(a), Some(b)) => a.sql_cmp(b).is_some_and(|order| order.is_eq()),
            _ => false,
        };
        if !goes_on {
            if i - start > best_count {
                (best, best_count) = (start, i - start);
            }
            start = i;
        }
    }
    sorted.get(best).cloned().unwrap_or_default()
}

/// The first value at or behind a fraction of the values. Of an array of fractions, it is the array
/// of type `ty` with the value at each.
pub(super) fn discrete(sorted: &[Value], fraction: Datum<'_>, ty: DataType) -> Result<Value> {
    at_each(sorted, fraction, ty, discrete_at)
}

/// The value at a fraction, between two values if need be; of an array of fractions as above.
pub(super) fn continuous(sorted: &[Value], fraction: Datum<'_>, ty: DataType) -> Result<Value> {
    at_each(sorted, fraction, ty, continuous_at)
}

fn at_each(
    sorted: &[Value],
    fraction: Datum<'_>,
    ty: DataType,
    at: impl Fn(&[Value], Datum<'_>) -> Result<Value>,
) -> Result<Value> {
    match array::array_of(&fraction) {
        Some(_) if sorted.is_empty() => Ok(Value::Null),
        Some(fractions) => array::map(&fractions, ty, |fraction| at(sorted, fraction)),
        None => at(sorted, fraction),
    }
}

fn discrete_at(sorted: &[Value], fraction: Datum<'_>) -> Result<Value> {
    let Some(fraction) = checked(fraction)? else { return Ok(Value::Null) };
    let place = (fraction * sorted.len() as f64).ceil() as usize;
    Ok(sorted.get(place.saturating_sub(1)).cloned().unwrap_or_default())
}

fn continuous_at(sorted: &[Value], fraction: Datum<'_>) -> Result<Value> {
    let Some(fraction) = checked(fraction)? else { return Ok(Value::Null) };
    let Some(last) = sorted.len().checked_sub(1) else { return Ok(Value::Null) };
    let place = fraction * last as f64;
    let part = place - place.floor();
    let value = |place: f64| sorted.get(place as usize).map_or(Datum::Null, Value::as_datum);
    let (low, high) = (value(place.floor()), value(place.ceil()));
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
