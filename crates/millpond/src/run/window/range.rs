//! RANGE with an offset: which values are within the offset of the current row's value.

use std::cmp::Ordering;
use std::ops::Range;

use millpond_engine::types::numeric::Parts;

use super::partition::Partition;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Arith, arith};
use crate::{Datum, Value};

/// An end of a frame.
pub(super) struct Edge<'e> {
    pub(super) offset: &'e Value,
    pub(super) preceding: bool,
    pub(super) is_start: bool,
    pub(super) descending: bool,
}

impl Edge<'_> {
    /// The first row of a frame that starts here, or the first one behind a frame that ends here.
    pub(super) fn find(&self, partition: &Partition, row: usize) -> Result<usize> {
        check_offset(self.offset.as_datum())?;
        let value = |row: usize| {
            let order = partition.order.row(row).first();
            order.map_or(Datum::Null, Value::as_datum)
        };
        let current = value(row);
        if current.is_null() {
            // NULL is near nothing but NULL.
            let peers = partition.peers(row);
            return Ok(if self.is_start { peers.start } else { peers.end });
        }
        let Range { start: mut low, end: mut high } = without_nulls(partition, &value);
        // In descending order what precedes is greater.
        let minus = self.preceding != self.descending;
        while low < high {
            let middle = low + (high - low) / 2;
            let order = compare_shifted(value(middle), current, self.offset.as_datum(), minus)?;
            let order = if self.descending { order.reverse() } else { order };
            // Rows before the edge.
            let is_before = if self.is_start { order.is_lt() } else { order.is_le() };
            if is_before { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}

/// The rows that have a value. Those without are all at one end.
fn without_nulls<'v>(partition: &Partition, value: &dyn Fn(usize) -> Datum<'v>) -> Range<usize> {
    let whole = 0..partition.len();
    let is_null =
        |group: Option<&Range<usize>>| group.filter(|group| value(group.start).is_null()).cloned();
    if let Some(nulls) = is_null(partition.groups.first()) {
        return nulls.end..whole.end;
    }
    match is_null(partition.groups.last()) {
        Some(nulls) => 0..nulls.start,
        None => whole,
    }
}

fn check_offset(offset: Datum<'_>) -> Result<()> {
    let is_bad = match offset {
        Datum::Float8(offset) => offset.is_nan() || offset < 0.0,
        Datum::Float4(offset) => offset.is_nan() || offset < 0.0,
        Datum::Numeric(offset) => match offset.parts() {
            Parts::Finite(decimal) => decimal.negative,
            Parts::NaN | Parts::NegInfinity => true,
            Parts::Infinity => false,
        },
        other => other.as_i64().is_some_and(|offset| offset < 0),
    };
    if is_bad {
        return Err(SqlError::new(
            SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
            "invalid preceding or following size in window function",
        ));
    }
    Ok(())
}

/// Compares a value with another one plus (or minus) an offset.
fn compare_shifted(
    value: Datum<'_>,
    base: Datum<'_>,
    offset: Datum<'_>,
    minus: bool,
) -> Result<Ordering> {
    if let (Some(value), Some(base), Some(offset)) =
        (value.as_i64(), base.as_i64(), offset.as_i64())
    {
        let (base, offset) = (i128::from(base), i128::from(offset));
        return Ok(i128::from(value).cmp(&if minus { base - offset } else { base + offset }));
    }
    if let (Some(value), Some(base), Some(offset)) = (float(value), float(base), float(offset)) {
        return Ok(compare_floats(value, base, offset, minus));
    }
    if let (Datum::Numeric(value), Datum::Numeric(near), Datum::Numeric(_)) = (value, base, offset)
    {
        if value.is_nan() || near.is_nan() {
            return Ok(value.is_nan().cmp(&near.is_nan()));
        }
        let op = if minus { Arith::Sub } else { Arith::Add };
        return match arith::apply(op, base, offset)? {
            // An infinity less an infinity: it is within.
            Value::Numeric(sum) if sum.as_ref().is_nan() => Ok(Ordering::Equal),
            Value::Numeric(sum) => Ok(value.cmp(&sum.as_ref())),
            _ => Err(SqlError::internal("a sum of another type")),
        };
    }
    Err(SqlError::unsupported("RANGE with an offset for this type"))
}

fn float(datum: Datum<'_>) -> Option<f64> {
    match datum {
        Datum::Float8(value) => Some(value),
        Datum::Float4(value) => Some(value.into()),
        _ => None,
    }
}

/// NaN is above all other values and equal to itself.
fn compare_floats(value: f64, base: f64, offset: f64, minus: bool) -> Ordering {
    if value.is_nan() || base.is_nan() {
        return value.is_nan().cmp(&base.is_nan());
    }
    let sum = if minus { base - offset } else { base + offset };
    // An infinity less an infinity: it is within.
    value.partial_cmp(&sum).unwrap_or(Ordering::Equal)
}
