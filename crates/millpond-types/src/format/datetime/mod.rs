//! Dates and time stamps as text, in PostgreSQL's styles. `DateStyle` decides how they are written.
//! It also decides the order of numbers that don't tell what they are.

mod civil_fields;
mod decode;
mod numbers;
mod style;
mod token;
mod words;
mod write;

use crate::{DATE_INFINITY, DATE_NEG_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY};

use super::calendar::{USECS_PER_DAY, in_date_range, in_timestamp_range};
use super::{FormatOptions, Zone};
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

pub(super) use civil_fields::CivilFields;
use decode::{EPOCH_DAY, Special, date_and_time};
pub(super) use decode::{Session, time_of_day};
pub use style::{DateFormat, DateOrder, DateStyle};
pub use words::abbreviations_at;
pub(super) use write::{write_clock, write_date, write_offset, write_timestamp};

/// Microseconds from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_SHIFT: i64 = 10_957 * USECS_PER_DAY;
const USECS_PER_SECOND: i64 = 1_000_000;

/// Why a text is no date or time.
#[derive(Debug)]
pub(in crate::format) enum Bad {
    Syntax,
    /// A field is out of its range.
    Field,
    /// A day that no calendar has, where another order of the fields might have been meant.
    Order,
    /// An offset is too far from UTC.
    Displacement,
    /// There is no zone of that name.
    Zone(String),
    /// The type has no such value.
    Value,
}

/// The zone of an abbreviation or a name.
pub fn zone_named(name: &str) -> Option<Zone> {
    let abbreviated = words::abbreviated(&name.to_ascii_lowercase());
    abbreviated.or_else(|| Zone::named(name).map(|(zone, _)| zone))
}

/// The zone of an offset as it stands behind a time, which must have a sign: `+2`, `-03:30`. `None`
/// if the text is no offset; `Some(None)` if it is too far from UTC.
pub fn zone_of_offset(text: &str) -> Option<Option<Zone>> {
    match civil_fields::offset(text) {
        Ok(seconds) => Some(Some(Zone::Fixed(seconds))),
        Err(Bad::Displacement) => Some(None),
        Err(_) => None,
    }
}

impl Session {
    pub(super) fn of(options: &FormatOptions) -> Self {
        Session { zone: options.zone, order: options.date_style.order, now: options.now }
    }
}

pub(super) fn parse_date(text: &str, options: &FormatOptions) -> Result<i32> {
    let read = || {
        let (fields, special) = date_and_time(text, Session::of(options))?;
        let day = match special {
            Some(Special::Infinity) => return Ok(DATE_INFINITY),
            Some(Special::NegInfinity) => return Ok(DATE_NEG_INFINITY),
            Some(Special::Epoch) => EPOCH_DAY,
            None => fields.days()?,
        };
        if in_date_range(day) { Ok(day as i32) } else { Err(Bad::Value) }
    };
    read().map_err(|bad| error(bad, "date", "date", text))
}

/// The zone in the text is read and ignored, as in PostgreSQL.
pub(super) fn parse_timestamp(text: &str, options: &FormatOptions) -> Result<i64> {
    timestamp(text, options, |_| Zone::UTC)
        .map_err(|bad| error(bad, "timestamp", "timestamp", text))
}

pub(super) fn parse_timestamptz(text: &str, options: &FormatOptions) -> Result<i64> {
    timestamp(text, options, |given| given.unwrap_or(options.zone))
        .map_err(|bad| error(bad, "timestamp with time zone", "timestamp", text))
}

fn timestamp(
    text: &str,
    options: &FormatOptions,
    zone: impl Fn(Option<Zone>) -> Zone,
) -> Result<i64, Bad> {
    let (fields, special) = date_and_time(text, Session::of(options))?;
    match special {
        Some(Special::Infinity) => return Ok(TIMESTAMP_INFINITY),
        Some(Special::NegInfinity) => return Ok(TIMESTAMP_NEG_INFINITY),
        Some(Special::Epoch) => return Ok(-UNIX_EPOCH_SHIFT),
        None => {}
    }
    let day = fields.days()?;
    // The month with the first day may have more of them: a zone can move one into the range.
    if !in_date_range(day) && !in_date_range(day + 31) {
        return Err(Bad::Value);
    }
    let start = day.checked_mul(USECS_PER_DAY).ok_or(Bad::Value)?;
    let local = start.checked_add(fields.usecs()?).ok_or(Bad::Value)?;
    let utc = zone(fields.zone()).utc(local);
    if in_timestamp_range(utc) { Ok(utc) } else { Err(Bad::Value) }
}

/// The error of a text; `kind` is what is out of range.
#[cold]
pub(super) fn error(bad: Bad, ty: &str, kind: &str, text: &str) -> DataException {
    let (state, message) = match &bad {
        Bad::Syntax => (
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type {ty}: \"{text}\""),
        ),
        Bad::Zone(zone) => {
            (SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{zone}\" not recognized"))
        }
        Bad::Displacement => (
            SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
            format!("time zone displacement out of range: \"{text}\""),
        ),
        Bad::Value => {
            (SqlState::DATETIME_FIELD_OVERFLOW, format!("{kind} out of range: \"{text}\""))
        }
        Bad::Field | Bad::Order => (
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date/time field value out of range: \"{text}\""),
        ),
    };
    let error = DataException::new(state, message);
    match bad {
        Bad::Order => error.hint("Perhaps you need a different \"datestyle\" setting."),
        _ => error,
    }
}
