//! Functions of intervals.

use millpond_types::Interval;

use super::super::catalog::{Proc, proc};
use super::super::value::body;
use super::value::{Date, Stamp, StampTz};
use super::{BOOL, DATE, FLOAT8, INTERVAL, TIMESTAMP, TIMESTAMPTZ, is_infinite};
use crate::error::{Result, SqlError, SqlState};
use crate::types::USECS_PER_DAY;
use crate::types::interval::out_of_range;

pub(in super::super) static PROCS: &[Proc] = &[
    proc(1168, "interval_um", &[INTERVAL], INTERVAL, body!(|i: Interval| negate(i))),
    proc(
        1169,
        "interval_pl",
        &[INTERVAL, INTERVAL],
        INTERVAL,
        body!(|a: Interval, b: Interval| add(a, b)),
    ),
    proc(
        1170,
        "interval_mi",
        &[INTERVAL, INTERVAL],
        INTERVAL,
        body!(|a: Interval, b: Interval| subtract(a, b)),
    ),
    proc(
        1618,
        "interval_mul",
        &[INTERVAL, FLOAT8],
        INTERVAL,
        body!(|i: Interval, factor: f64| multiply(i, factor)),
    ),
    proc(
        1624,
        "mul_d_interval",
        &[FLOAT8, INTERVAL],
        INTERVAL,
        body!(|factor: f64, i: Interval| multiply(i, factor)),
    ),
    proc(
        1326,
        "interval_div",
        &[INTERVAL, FLOAT8],
        INTERVAL,
        body!(|i: Interval, divisor: f64| divide(i, divisor)),
    ),
    proc(1175, "justify_hours", &[INTERVAL], INTERVAL, body!(|i: Interval| justify_hours(i))),
    proc(1295, "justify_days", &[INTERVAL], INTERVAL, body!(|i: Interval| justify_days(i))),
    proc(2711, "justify_interval", &[INTERVAL], INTERVAL, body!(|i: Interval| justify(i))),
    proc(1373, "isfinite", &[DATE], BOOL, body!(|d: Date| !matches!(d.0, i32::MAX | i32::MIN))),
    proc(2048, "isfinite", &[TIMESTAMP], BOOL, body!(|t: Stamp| !is_infinite(t.0))),
    proc(1389, "isfinite", &[TIMESTAMPTZ], BOOL, body!(|t: StampTz| !is_infinite(t.0))),
    proc(1390, "isfinite", &[INTERVAL], BOOL, body!(|_i: Interval| true)),
];

pub(super) fn negate(i: Interval) -> Result<Interval> {
    let negated = || {
        Some(Interval {
            months: i.months.checked_neg()?,
            days: i.days.checked_neg()?,
            usecs: i.usecs.checked_neg()?,
        })
    };
    negated().ok_or_else(|| out_of_range().into())
}

pub(crate) fn add(a: Interval, b: Interval) -> Result<Interval> {
    let sum = || {
        Some(Interval {
            months: a.months.checked_add(b.months)?,
            days: a.days.checked_add(b.days)?,
            usecs: a.usecs.checked_add(b.usecs)?,
        })
    };
    sum().ok_or_else(|| out_of_range().into())
}

pub(crate) fn subtract(a: Interval, b: Interval) -> Result<Interval> {
    add(a, negate(b)?)
}

pub(crate) fn multiply(i: Interval, factor: f64) -> Result<Interval> {
    scale(i, |part| part * factor)
}

pub(crate) fn divide(i: Interval, divisor: f64) -> Result<Interval> {
    if divisor == 0.0 {
        return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    scale(i, |part| part / divisor)
}

fn to_i32(value: f64) -> Result<i32> {
    let whole = value.trunc();
    if whole >= f64::from(i32::MIN) && whole <= f64::from(i32::MAX) {
        return Ok(whole as i32);
    }
    Err(out_of_range().into())
}

/// Rounds to microseconds, so that what is no more than an error of a float's last digit is gone.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round_ties_even() / 1e6
}

/// Multiplies each part. A fraction of a month becomes days, one of a day becomes seconds.
fn scale(i: Interval, times: impl Fn(f64) -> f64) -> Result<Interval> {
    const SECS_PER_DAY: f64 = 86_400.0;
    let (exact_months, exact_days) = (times(i.months.into()), times(i.days.into()));
    let (months, mut days) = (to_i32(exact_months)?, to_i32(exact_days)?);
    let more_days = rounded((exact_months - f64::from(months)) * 30.0);
    let rest = exact_days - f64::from(days) + more_days - more_days.trunc();
    let mut seconds = rounded(rest * SECS_PER_DAY);
    if seconds.abs() >= SECS_PER_DAY {
        let whole = (seconds / SECS_PER_DAY).trunc();
        days = days.checked_add(to_i32(whole)?).ok_or_else(out_of_range)?;
        seconds -= whole * SECS_PER_DAY;
    }
    days = days.checked_add(to_i32(more_days)?).ok_or_else(out_of_range)?;
    let usecs = (times(i.usecs as f64) + seconds * 1e6).round_ties_even();
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&usecs) {
        return Err(out_of_range().into());
    }
    Ok(Interval { months, days, usecs: usecs as i64 })
}

/// Makes days of hours, and both of one sign.
fn justify_hours(i: Interval) -> Result<Interval> {
    let days = i64::from(i.days) + i.usecs / USECS_PER_DAY;
    let usecs = i.usecs % USECS_PER_DAY;
    let (days, usecs) = same_sign(days, usecs, USECS_PER_DAY);
    let days = i32::try_from(days).map_err(|_| out_of_range())?;
    Ok(Interval { days, usecs, ..i })
}

/// Makes months of days, and both of one sign.
fn justify_days(i: Interval) -> Result<Interval> {
    let months = i64::from(i.months) + i64::from(i.days / 30);
    let (months, days) = same_sign(months, i64::from(i.days % 30), 30);
    let months = i32::try_from(months).map_err(|_| out_of_range())?;
    Ok(Interval { months, days: days as i32, ..i })
}

/// Both, with one sign for all.
fn justify(i: Interval) -> Result<Interval> {
    let mut days = i64::from(i.days) + i.usecs / USECS_PER_DAY;
    let mut usecs = i.usecs % USECS_PER_DAY;
    let mut months = i64::from(i.months) + days / 30;
    days %= 30;
    if months > 0 && (days < 0 || days == 0 && usecs < 0) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || days == 0 && usecs > 0) {
        (months, days) = (months + 1, days - 30);
    }
    (days, usecs) = same_sign(days, usecs, USECS_PER_DAY);
    let months = i32::try_from(months).map_err(|_| out_of_range())?;
    Ok(Interval { months, days: days as i32, usecs })
}

/// Moves one of the larger unit, so that both have one sign.
fn same_sign(large: i64, small: i64, unit: i64) -> (i64, i64) {
    if large > 0 && small < 0 {
        (large - 1, small + unit)
    } else if large < 0 && small > 0 {
        (large + 1, small - unit)
    } else {
        (large, small)
    }
}
