//! `interval` as text: all of PostgreSQL's styles.

mod iso;
mod parse;
mod sum;
mod write;

use crate::Interval;
use crate::other::INTERVAL_FIELDS;

use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

pub(super) use parse::parse;
pub use sum::{Unit, unit};
pub(super) use write::write;

/// `IntervalStyle`: how intervals are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntervalStyle {
    /// `1 day 02:00:00`
    #[default]
    Postgres,
    /// `@ 1 day 2 hours`
    PostgresVerbose,
    /// `1 2:00:00`
    SqlStandard,
    /// `P1DT2H`
    Iso8601,
}

impl IntervalStyle {
    /// The style with that name.
    pub fn named(name: &str) -> Self {
        match name {
            "postgres_verbose" => Self::PostgresVerbose,
            "sql_standard" => Self::SqlStandard,
            "iso_8601" => Self::Iso8601,
            _ => Self::Postgres,
        }
    }
}

pub(super) const USECS_PER_SECOND: i64 = 1_000_000;
pub(super) const USECS_PER_MINUTE: i64 = 60 * USECS_PER_SECOND;
pub(super) const USECS_PER_HOUR: i64 = 60 * USECS_PER_MINUTE;

/// The error of a result that no interval can hold.
#[cold]
pub fn out_of_range() -> DataException {
    DataException::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// Cuts an interval to the fields of a modifier, and rounds its seconds.
pub fn with_typmod(interval: Interval, typmod: i32) -> Result<Interval> {
    let Interval { mut months, mut days, mut usecs } = interval;
    if typmod < 0 {
        return Ok(interval);
    }
    // The last field that stays.
    let fields = INTERVAL_FIELDS.iter().find(|(bits, _)| *bits == typmod >> 16 & 0x7fff);
    let last = fields.map_or("second", |(_, name)| name.rsplit(' ').next().unwrap_or(name));
    match last {
        "year" => months -= months % 12,
        "hour" => usecs -= usecs % USECS_PER_HOUR,
        "minute" => usecs -= usecs % USECS_PER_MINUTE,
        _ => {}
    }
    if matches!(last, "year" | "month") {
        days = 0;
    }
    if matches!(last, "year" | "month" | "day") {
        usecs = 0;
    }
    let precision = typmod & 0xffff;
    if precision <= 5 {
        usecs = round_usecs(usecs, precision).ok_or_else(out_of_range)?;
    }
    Ok(Interval { months, days, usecs })
}

/// Rounds microseconds to a number of digits after the second's point, halves away from zero.
pub fn round_usecs(usecs: i64, precision: i32) -> Option<i64> {
    let Ok(digits @ 0..=5) = u32::try_from(precision) else { return Some(usecs) };
    let unit = 10i64.pow(6 - digits);
    let half = if usecs < 0 { -unit / 2 } else { unit / 2 };
    usecs.checked_add(half).map(|usecs| usecs - usecs % unit)
}

#[cfg(test)]
mod tests;
