//! RANGE with an offset: which values are within the offset of the current row's value.

use std::cmp::Ordering;
use std::ops::Range;

use millpond_types::Interval;
use millpond_types::numeric::Parts;
use millpond_types::other::{INTERVAL, TIME, TIMETZ, timetz_parts};

use super::partition::Partition;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Arith, arith, interval_math, timestamp_plus, timestamptz_plus};
use crate::types::time::{time_usecs, timetz_value};
use crate::types::{USECS_PER_DAY, Zone};
use crate::{Datum, Value};

/// An end of a frame.
pub(super) struct Edge<'e> {
    pub(super) offset: &'e Value,
    pub(super) preceding: bool,
    pub(super) is_start: bool,
    pub(super) descending: bool,
    pub(super) zone: Zone,
}

/// What a value plus (or minus) an offset is, where that is computed once.
pub enum Limit {
    /// A time stamp or a time of a day, in microseconds.
    Usecs(i64),
    /// A value of the column's type.
    Value(Value),
}

impl Edge<'_> {
    /// The first row of a frame that starts here, or the first one behind a frame that ends here.
    pub(super) fn find(&self, partition: &Partition, row: usize) -> Result<usize> {
        let offset = self.offset.as_datum();
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
        check_offset(offset, current)?;
        let Range { start: mut low, end: mut high } = without_nulls(partition, &value);
        // In descending order what precedes is greater.
        let minus = self.preceding != self.descending;
        let limit = self.limit(current, minus)?;
        while low < high {
            let middle = low + (high - low) / 2;
            let order = match &limit {
                Some(limit) => limit.compare(value(middle))?,
                None => compare_shifted(value(middle), current, offset, minus)?,
            };
            let order = if self.descending { order.reverse() } else { order };
            // Rows before the edge.
            let is_before = if self.is_start { order.is_lt() } else { order.is_le() };
            if is_before { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// Where the frame ends, if the offset is an interval.
    fn limit(&self, current: Datum<'_>, minus: bool) -> Result<Option<Limit>> {
        let Some(offset) = interval_of(self.offset.as_datum()) else { return Ok(None) };
        let signed = match minus {
            true => interval_math::subtract(Interval::default(), offset)?,
            false => offset,
        };
        let usecs = |base: i64| base.saturating_add(signed.usecs);
        Ok(Some(match current {
            Datum::Timestamptz(base) => Limit::Usecs(timestamptz_plus(base, signed, self.zone)?),
            Datum::Date(_) | Datum::Timestamp(_) => {
                let base = usecs_of(current).ok_or_else(other_type)?;
                Limit::Usecs(timestamp_plus(base, signed)?)
            }
            Datum::Other(TIME, bytes) => {
                Limit::Usecs(usecs(time_usecs(bytes).ok_or_else(other_type)?))
            }
            Datum::Other(TIMETZ, bytes) => {
                let (base, west) = timetz_parts(bytes).ok_or_else(other_type)?;
                Limit::Value(timetz_value(usecs(base), west))
            }
            _ => {
                let base = interval_of(current).ok_or_else(other_type)?;
                Limit::Value(interval_math::add(base, signed)?.into())
            }
        }))
    }
}

impl Limit {
    fn compare(&self, value: Datum<'_>) -> Result<Ordering> {
        match self {
            Limit::Usecs(limit) => Ok(usecs_of(value).ok_or_else(other_type)?.cmp(limit)),
            Limit::Value(limit) => Ok(value.sort_cmp(&limit.as_datum())),
        }
    }
}

/// Whether a value is at most (`less`, or else at least) another one minus (or plus) an offset.
pub(crate) fn in_range(
    value: Datum<'_>,
    base: Datum<'_>,
    offset: Datum<'_>,
    (minus, less): (bool, bool),
    zone: Zone,
) -> Result<bool> {
    check_offset(offset, base)?;
    let owned = offset.to_value();
    let edge = Edge { offset: &owned, preceding: minus, is_start: !less, descending: false, zone };
    let order = match edge.limit(base, minus)? {
        Some(limit) => limit.compare(value)?,
        None => compare_shifted(value, base, offset, minus)?,
    };
    Ok(if less { order.is_le() } else { order.is_ge() })
}

fn interval_of(datum: Datum<'_>) -> Option<Interval> {
    match datum {
        Datum::Other(INTERVAL, bytes) => Interval::from_bytes(bytes),
        _ => None,
    }
}

/// A date or a time stamp as a time stamp, and a time of a day, in microseconds.
fn usecs_of(datum: Datum<'_>) -> Option<i64> {
    match datum {
        Datum::Timestamp(usecs) | Datum::Timestamptz(usecs) => Some(usecs),
        Datum::Date(i32::MAX) => Some(i64::MAX),
        Datum::Date(i32::MIN) => Some(i64::MIN),
        Datum::Date(days) => i64::from(days).checked_mul(USECS_PER_DAY),
        Datum::Other(TIME, bytes) => time_usecs(bytes),
        _ => None,
    }
}

#[cold]
fn other_type() -> SqlError {
    SqlError::unsupported("RANGE with an offset for this type")
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

fn check_offset(offset: Datum<'_>, current: Datum<'_>) -> Result<()> {
    let is_bad = match offset {
        Datum::Other(INTERVAL, _) => {
            let offset = interval_of(offset).ok_or_else(other_type)?;
            match current {
                // Months and days are nothing to a time of a day.
                Datum::Other(TIME | TIMETZ, _) => offset.usecs < 0,
                _ => {
                    let (offset, zero) = (Value::from(offset), Value::from(Interval::default()));
                    offset.as_datum().sort_cmp(&zero.as_datum()).is_lt()
                }
            }
        }
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
    Err(other_type())
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
