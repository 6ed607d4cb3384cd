//! `time` and `time with time zone` as text.

use millpond_engine::types::current_timestamp;
use millpond_engine::types::other::{TIME, TIMETZ};

use super::interval::round_usecs;
use super::{USECS_PER_DAY, Zone, datetime};
use crate::Value;
use crate::error::{Result, SqlError, SqlState};

/// A time of day as a value.
pub(crate) fn time_value(usecs: i64) -> Value {
    Value::Other(TIME, usecs.to_le_bytes().into())
}

/// A time of day with a zone, in seconds west of UTC, as a value.
pub(crate) fn timetz_value(usecs: i64, west: i32) -> Value {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&usecs.to_le_bytes());
    bytes[8..].copy_from_slice(&west.to_le_bytes());
    Value::Other(TIMETZ, bytes.into())
}

/// Microseconds of a `time`.
pub(crate) fn time_usecs(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(bytes.try_into().ok()?))
}

/// Rounds to the precision of a type.
pub(crate) fn with_precision(usecs: i64, precision: i32) -> i64 {
    round_usecs(usecs, precision).unwrap_or(usecs)
}

pub(super) fn write(usecs: i64, west: Option<i32>, out: &mut Vec<u8>) {
    datetime::write_clock(usecs, out);
    if let Some(west) = west {
        datetime::write_offset(west.saturating_neg(), out);
    }
}

pub(super) fn parse_time(text: &str, precision: i32, zone: Zone) -> Result<Value> {
    let clock = clock(text, "time", zone)?;
    Ok(time_value(with_precision(clock.usecs, precision)))
}

pub(super) fn parse_timetz(text: &str, precision: i32, zone: Zone) -> Result<Value> {
    let clock = clock(text, "time with time zone", zone)?;
    let day_start = |local: i64| local.div_euclid(USECS_PER_DAY) * USECS_PER_DAY;
    let today = || day_start(zone.local(current_timestamp()));
    let east = match (clock.zone, clock.day) {
        (Some(zone), Some(day)) => zone.offset_of_local(day.saturating_add(clock.usecs)),
        (Some(zone), None) => match zone {
            Zone::Fixed(seconds) => seconds,
            // A zone with rules needs a day.
            #[cfg(feature = "time-zones")]
            Zone::Named(_) => return Err(syntax("time with time zone", text)),
        },
        (None, day) => zone.offset_of_local(day.unwrap_or_else(today).saturating_add(clock.usecs)),
    };
    Ok(timetz_value(with_precision(clock.usecs, precision), -east))
}

/// What a text says of a time of day.
struct Clock {
    usecs: i64,
    zone: Option<Zone>,
    /// The start of the day, if there is one in the text.
    day: Option<i64>,
}

fn clock(text: &str, ty: &str, zone: Zone) -> Result<Clock> {
    let bare = text.trim();
    let bare = bare.strip_prefix(['T', 't']).unwrap_or(bare);
    // "040506.789" would be a number elsewhere.
    let digits = bare.find(|c: char| !c.is_ascii_digit()).unwrap_or(bare.len());
    let (head, tail) = bare.split_at(digits);
    let fits = (digits == 6 || digits == 4) && !tail.starts_with([':', '-', '/']);
    let spelled;
    let text_read = if fits && !(digits == 4 && tail.starts_with('.')) {
        let seconds = if digits == 6 { &head[4..] } else { "00" };
        spelled = format!("{}:{}:{seconds}{tail}", &head[..2], &head[2..4]);
        &spelled
    } else {
        bare
    };
    datetime::read_clock(text_read, zone)
        .map(|(usecs, zone, day)| Clock { usecs, zone, day })
        .map_err(|bad| datetime::error(bad, ty, text))
}

/// A time of day that a client has sent.
pub(super) fn checked(usecs: i64) -> Result<i64> {
    if (0..=USECS_PER_DAY).contains(&usecs) {
        return Ok(usecs);
    }
    Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "time out of range"))
}

/// A zone, in seconds west of UTC, that a client has sent.
pub(super) fn checked_zone(west: i32) -> Result<i32> {
    const LIMIT: i32 = 16 * 3600;
    if west > -LIMIT && west < LIMIT {
        return Ok(west);
    }
    let state = SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE;
    Err(SqlError::new(state, "time zone displacement out of range"))
}

#[cfg(feature = "time-zones")]
#[cold]
fn syntax(ty: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        format!("invalid input syntax for type {ty}: \"{text}\""),
    )
}
