//! Dates and time stamps as text. They are printed in ISO style, and read in the styles that
//! PostgreSQL reads with DateStyle "ISO, MDY". These are ISO 8601, numeric with `-` `/` `.`, and
//! names of months. `T`, am/pm, BC, offsets, names of time zones, `infinity`, `epoch`, `now`,
//! `today` and the like are read, too.

mod fields;

use millpond_engine::types::{
    DATE_INFINITY, DATE_NEG_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY, current_timestamp,
};

use super::Zone;
use super::calendar::{
    Civil, USECS_PER_DAY, civil_of_date, civil_of_timestamp, in_date_range, in_timestamp_range,
};
use super::integer::write_padded;
use crate::error::{Result, SqlError, SqlState};
use fields::{Bad, Special, USECS_PER_SECOND, read};

/// Microseconds from 1970-01-01 to 2000-01-01.
pub(crate) const UNIX_EPOCH_SHIFT: i64 = 10_957 * USECS_PER_DAY;

pub(super) fn write_date(date: i32, out: &mut Vec<u8>) {
    match date {
        DATE_INFINITY => out.extend_from_slice(b"infinity"),
        DATE_NEG_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => {
            let civil = civil_of_date(date);
            write_day(&civil, out);
            write_era(&civil, out);
        }
    }
}

/// Prints a time stamp; with an offset (seconds east of UTC), one with time zone.
pub(super) fn write_timestamp(timestamp: i64, offset: Option<i32>, out: &mut Vec<u8>) {
    match timestamp {
        TIMESTAMP_INFINITY => return out.extend_from_slice(b"infinity"),
        TIMESTAMP_NEG_INFINITY => return out.extend_from_slice(b"-infinity"),
        _ => {}
    }
    let shift = i64::from(offset.unwrap_or(0)) * USECS_PER_SECOND;
    let civil = civil_of_timestamp(timestamp.saturating_add(shift));
    write_day(&civil, out);
    out.push(b' ');
    write_clock(civil.usecs, out);
    if let Some(offset) = offset {
        write_offset(offset, out);
    }
    write_era(&civil, out);
}

/// Prints a time of day.
pub(super) fn write_clock(usecs: i64, out: &mut Vec<u8>) {
    let seconds = (usecs / USECS_PER_SECOND) as u32;
    for (i, part) in [seconds / 3600, seconds / 60 % 60, seconds % 60].into_iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        write_padded(part, 2, out);
    }
    let fraction = (usecs % USECS_PER_SECOND) as u32;
    if fraction > 0 {
        out.push(b'.');
        write_padded(fraction, 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

fn write_day(civil: &Civil, out: &mut Vec<u8>) {
    let year = if civil.year > 0 { civil.year } else { 1 - civil.year };
    write_padded(year.unsigned_abs(), 4, out);
    out.push(b'-');
    write_padded(civil.month, 2, out);
    out.push(b'-');
    write_padded(civil.day, 2, out);
}

fn write_era(civil: &Civil, out: &mut Vec<u8>) {
    if civil.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

pub(super) fn write_offset(offset: i32, out: &mut Vec<u8>) {
    out.push(if offset < 0 { b'-' } else { b'+' });
    let seconds = offset.unsigned_abs();
    write_padded(seconds / 3600, 2, out);
    if !seconds.is_multiple_of(3600) {
        out.push(b':');
        write_padded(seconds / 60 % 60, 2, out);
    }
    if !seconds.is_multiple_of(60) {
        out.push(b':');
        write_padded(seconds % 60, 2, out);
    }
}

pub(super) fn parse_date(text: &str, zone: Zone) -> Result<i32> {
    let today = || zone.local(current_timestamp()).div_euclid(USECS_PER_DAY);
    let of = |day: i64| {
        if in_date_range(day) { Ok(day as i32) } else { Err(Bad::Range) }
    };
    read(text)
        .and_then(|fields| match fields.special {
            Some(Special::Infinity) => Ok(DATE_INFINITY),
            Some(Special::NegInfinity) => Ok(DATE_NEG_INFINITY),
            Some(Special::Epoch) => of(-UNIX_EPOCH_SHIFT / USECS_PER_DAY),
            Some(Special::Now) => of(today()),
            Some(Special::Today(plus)) => of(today() + plus),
            None => of(fields.day()?),
        })
        .map_err(|bad| match bad {
            Bad::Range => SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date out of range: \"{text}\""),
            ),
            other => error(other, "date", text),
        })
}

pub(super) fn parse_timestamp(text: &str, zone: Zone) -> Result<i64> {
    // The zone is read and ignored, as in PostgreSQL.
    timestamp(text, "timestamp", zone, |_| Zone::UTC, || zone.local(current_timestamp()))
}

pub(super) fn parse_timestamptz(text: &str, zone: Zone) -> Result<i64> {
    let of = |given: Option<Zone>| given.unwrap_or(zone);
    timestamp(text, "timestamp with time zone", zone, of, current_timestamp)
}

fn timestamp(
    text: &str,
    ty: &str,
    session: Zone,
    zone: impl Fn(Option<Zone>) -> Zone,
    now: impl Fn() -> i64,
) -> Result<i64> {
    let local = |usecs: i64, given: Option<Zone>| {
        let utc = zone(given).utc(usecs);
        if in_timestamp_range(utc) { Ok(utc) } else { Err(Bad::Range) }
    };
    read(text)
        .and_then(|fields| match fields.special {
            Some(Special::Infinity) => Ok(TIMESTAMP_INFINITY),
            Some(Special::NegInfinity) => Ok(TIMESTAMP_NEG_INFINITY),
            Some(Special::Epoch) => Ok(-UNIX_EPOCH_SHIFT),
            Some(Special::Now) => Ok(now()),
            Some(Special::Today(plus)) => {
                let day = session.local(current_timestamp()).div_euclid(USECS_PER_DAY) + plus;
                local(day * USECS_PER_DAY + fields.time.unwrap_or(0), fields.zone)
            }
            None => {
                let day = fields.day()?;
                if !in_date_range(day) {
                    return Err(Bad::Range);
                }
                let usecs = day.checked_mul(USECS_PER_DAY).ok_or(Bad::Range)?;
                local(usecs.checked_add(fields.usecs()?).ok_or(Bad::Range)?, fields.zone)
            }
        })
        .map_err(|bad| match bad {
            Bad::Range => SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("timestamp out of range: \"{text}\""),
            ),
            other => error(other, ty, text),
        })
}

/// The time of day that a text says, with its zone and the start of its day, if it has them.
pub(super) fn read_clock(
    text: &str,
    session: Zone,
) -> Result<(i64, Option<Zone>, Option<i64>), Bad> {
    let fields = read(text)?;
    let day = |days: i64| days.checked_mul(USECS_PER_DAY).ok_or(Bad::Range);
    match fields.special {
        Some(Special::Now) => {
            let now = session.local(current_timestamp());
            let start = now.div_euclid(USECS_PER_DAY) * USECS_PER_DAY;
            Ok((now - start, None, Some(start)))
        }
        Some(Special::Today(plus)) if fields.time.is_some() => {
            let today = session.local(current_timestamp()).div_euclid(USECS_PER_DAY);
            Ok((fields.usecs()?, fields.zone, Some(day(today + plus)?)))
        }
        Some(_) => Err(Bad::Syntax),
        None if fields.time.is_none() => Err(Bad::Syntax),
        None if fields.has_day() => Ok((fields.usecs()?, fields.zone, Some(day(fields.day()?)?))),
        None => Ok((fields.usecs()?, fields.zone, None)),
    }
}

#[cold]
pub(super) fn error(bad: Bad, ty: &str, text: &str) -> SqlError {
    match bad {
        Bad::Syntax => SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type {ty}: \"{text}\""),
        ),
        Bad::Zone(zone) => SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("time zone \"{zone}\" not recognized"),
        ),
        Bad::Range | Bad::FieldRange => {
            let error = SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            );
            if matches!(bad, Bad::FieldRange) {
                error.hint("Perhaps you need a different \"datestyle\" setting.")
            } else {
                error
            }
        }
    }
}
