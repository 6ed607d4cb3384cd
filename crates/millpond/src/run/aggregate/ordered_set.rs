//! Aggregates over sorted values: percentiles and the most frequent value.

use super::accumulator::as_f64;
use crate::error::{Result, SqlError, SqlState};
use crate::{Datum, Value};

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

/// The first value at or behind a fraction of the values.
pub(super) fn discrete(sorted: &[Value], fraction: Datum<'_>) -> Result<Value> {
    let Some(fraction) = checked(fraction)? else { return Ok(Value::Null) };
    let place = (fraction * sorted.len() as f64).ceil() as usize;
    Ok(sorted.get(place.saturating_sub(1)).cloned().unwrap_or_default())
}

/// The value at a fraction, between two values if need be.
pub(super) fn continuous(sorted: &[Value], fraction: Datum<'_>) -> Result<Value> {
    let Some(fraction) = checked(fraction)? else { return Ok(Value::Null) };
    let Some(last) = sorted.len().checked_sub(1) else { return Ok(Value::Null) };
    let place = fraction * last as f64;
    let value = |place: f64| sorted.get(place as usize).and_then(|value| as_f64(value.as_datum()));
    let (Some(low), Some(high)) = (value(place.floor()), value(place.ceil())) else {
        return Err(SqlError::unsupported("percentile_cont of this type"));
    };
    let part = place - place.floor();
    let between = if part == 0.0 { low } else { low + part * (high - low) };
    Ok(Value::Float8(between))
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
