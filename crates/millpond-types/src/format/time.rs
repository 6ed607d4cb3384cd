//! `time` and `time with time zone` as text.

use crate::other::{TIME, TIMETZ};

use super::datetime::{self, CivilFields, Session};
use super::interval::round_usecs;
use super::{FormatOptions, USECS_PER_DAY};
use crate::Value;
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

/// A time of day as a value.
pub fn time_value(usecs: i64) -> Value {
    Value::Other(TIME, usecs.to_le_bytes().into())
}

/// A time of day with a zone, in seconds west of UTC, as a value.
pub fn timetz_value(usecs: i64, west: i32) -> Value {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&usecs.to_le_bytes());
    bytes[8..].copy_from_slice(&west.to_le_bytes());
    Value::Other(TIMETZ, bytes.into())
}

/// Microseconds of a `time`.
pub fn time_usecs(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(bytes.try_into().ok()?))
}

/// Rounds to the precision of a type.
pub fn with_precision(usecs: i64, precision: i32) -> i64 {
    round_usecs(usecs, precision).unwrap_or(usecs)
}

pub(super) fn write(usecs: i64, west: Option<i32>, out: &mut Vec<u8>) {
    datetime::write_clock(usecs, out);
    if let Some(west) = west {
        datetime::write_offset(west.saturating_neg(), out);
    }
}

pub(super) fn parse_time(text: &str, precision: i32, options: &FormatOptions) -> Result<Value> {
    let (_, usecs) = clock(text, "time", options)?;
    Ok(time_value(with_precision(usecs, precision)))
}

pub(super) fn parse_timetz(text: &str, precision: i32, options: &FormatOptions) -> Result<Value> {
    let (fields, usecs) = clock(text, "time with time zone", options)?;
    let zone = fields.zone().unwrap_or(options.zone);
    let day = match fields.has_day() {
        true => fields.days().unwrap_or(0),
        false => Session::of(options).today(),
    };
    let local = day.saturating_mul(USECS_PER_DAY).saturating_add(usecs);
    Ok(timetz_value(with_precision(usecs, precision), -zone.offset_of_local(local)))
}

/// The fields of a time of day, and the microseconds since midnight.
fn clock(text: &str, ty: &str, options: &FormatOptions) -> Result<(CivilFields, i64)> {
    let read = || {
        let fields = datetime::time_of_day(text, Session::of(options))?;
        let usecs = fields.usecs()?;
        Ok((fields, usecs))
    };
    read().map_err(|bad| datetime::error(bad, ty, "time", text))
}

/// A time of day that a client has sent.
pub(super) fn checked(usecs: i64) -> Result<i64> {
    if (0..=USECS_PER_DAY).contains(&usecs) {
        return Ok(usecs);
    }
    Err(DataException::new(SqlState::DATETIME_FIELD_OVERFLOW, "time out of range"))
}

/// A zone, in seconds west of UTC, that a client has sent.
pub(super) fn checked_zone(west: i32) -> Result<i32> {
    const LIMIT: i32 = 16 * 3600;
    if west > -LIMIT && west < LIMIT {
        return Ok(west);
    }
    let state = SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE;
    Err(DataException::new(state, "time zone displacement out of range"))
}
