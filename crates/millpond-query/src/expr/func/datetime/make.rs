//! Dates, times and intervals put together from numbers.

use millpond_types::Interval;

use super::super::catalog::{Proc, proc};
use super::super::value::body;
use super::arith::zone;
use super::value::{Date, Stamp, StampTz, Time};
use super::zone::zone_to_make;
use super::{
    DATE, FLOAT8, INT4, INTERVAL, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, checked,
    timestamp_out_of_range,
};
use crate::error::{Result, SqlError, SqlState};
use crate::types::datetime::UNIX_EPOCH_SHIFT;
use crate::types::interval::out_of_range;
use crate::types::{USECS_PER_DAY, date_of_civil, in_date_range};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        3846,
        "make_date",
        &[INT4, INT4, INT4],
        DATE,
        body!(|year: i32, month: i32, day: i32| date(year, month, day, astronomical(year))
            .map(|days| Date(days as i32))),
    ),
    proc(
        3847,
        "make_time",
        &[INT4, INT4, FLOAT8],
        TIME,
        body!(|hour: i32, minute: i32, second: f64| time(hour, minute, second).map(Time)),
    ),
    proc(
        3461,
        "make_timestamp",
        &[INT4, INT4, INT4, INT4, INT4, FLOAT8],
        TIMESTAMP,
        body!(|y: i32, mo: i32, d: i32, h: i32, mi: i32, s: f64| timestamp((y, mo, d), (h, mi, s))
            .map(Stamp)),
    ),
    proc(
        3462,
        "make_timestamptz",
        &[INT4, INT4, INT4, INT4, INT4, FLOAT8],
        TIMESTAMPTZ,
        body!(env, |y: i32, mo: i32, d: i32, h: i32, mi: i32, s: f64| timestamp(
            (y, mo, d),
            (h, mi, s)
        )
        .and_then(|local| checked(zone(env).utc(local)))
        .map(StampTz)),
    )
    .stable(),
    proc(
        3463,
        "make_timestamptz",
        &[INT4, INT4, INT4, INT4, INT4, FLOAT8, TEXT],
        TIMESTAMPTZ,
        body!(|y: i32, mo: i32, d: i32, h: i32, mi: i32, s: f64, name: &str| {
            let local = timestamp((y, mo, d), (h, mi, s))?;
            checked(zone_to_make(name)?.utc(local)).map(StampTz)
        }),
    )
    .stable(),
    proc(
        3464,
        "make_interval",
        &[INT4, INT4, INT4, INT4, INT4, INT4, FLOAT8],
        INTERVAL,
        body!(|y: i32, mo: i32, w: i32, d: i32, h: i32, mi: i32, s: f64| interval(
            [y, mo, w, d, h, mi],
            s
        )),
    ),
    proc(
        1158,
        "to_timestamp",
        &[FLOAT8],
        TIMESTAMPTZ,
        body!(|seconds: f64| of_unix(seconds).map(StampTz)),
    ),
];

fn field_out_of_range(message: String) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

/// A year as astronomers count them, whose year 0 is 1 BC: PostgreSQL counts so in a message.
fn astronomical(year: i32) -> i32 {
    if year < 0 && year != i32::MIN { year + 1 } else { year }
}

/// Days since 2000. Negative years are BC. A message shows the year as `shown`.
fn date(year: i32, month: i32, day: i32, shown: i32) -> Result<i64> {
    let known = !matches!(year, 0 | i32::MIN);
    let parts = u32::try_from(month).ok().zip(u32::try_from(day).ok());
    let days = parts
        .filter(|_| known)
        .and_then(|(month, day)| date_of_civil(astronomical(year).into(), month, day))
        .ok_or_else(|| {
            let message = format!("date field value out of range: {shown}-{month:02}-{day:02}");
            field_out_of_range(message)
        })?;
    if in_date_range(days) {
        return Ok(days);
    }
    Err(field_out_of_range(format!("date out of range: {year}-{month:02}-{day:02}")))
}

/// Microseconds since midnight.
fn time(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let whole = i64::from(hour) * 3600 + i64::from(minute) * 60;
    let fits =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let usecs = (whole * 1_000_000).saturating_add((second * 1e6).round_ties_even() as i64);
    if fits && usecs <= USECS_PER_DAY {
        return Ok(usecs);
    }
    let second = match second {
        second if second.is_infinite() && second < 0.0 => "-Infinity".to_owned(),
        second if second.is_infinite() => "Infinity".to_owned(),
        second => short(second, 2),
    };
    Err(field_out_of_range(format!("time field value out of range: {hour}:{minute:02}:{second}")))
}

/// A number with six significant digits, as C's `%g` prints it, filled up with zeros.
fn short(number: f64, width: usize) -> String {
    let rounded = format!("{number:.5e}");
    let exponent = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    let text = match exponent {
        Some(exponent) if (-4..6).contains(&exponent) => {
            let digits = format!("{number:.*}", (5 - exponent).max(0) as usize);
            without_zeros(&digits).to_owned()
        }
        Some(exponent) => {
            let digits = rounded.split('e').next().unwrap_or("");
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
        }
        None => number.to_string(),
    };
    format!("{text:0>width$}")
}

fn without_zeros(digits: &str) -> &str {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    }
}

fn timestamp(
    (year, month, day): (i32, i32, i32),
    (hour, minute, second): (i32, i32, f64),
) -> Result<i64> {
    let (days, usecs) = (date(year, month, day, year)?, time(hour, minute, second)?);
    let midnight = days.checked_mul(USECS_PER_DAY).ok_or_else(timestamp_out_of_range)?;
    checked(midnight.checked_add(usecs).ok_or_else(timestamp_out_of_range)?)
}

fn interval(
    [years, months, weeks, days, hours, minutes]: [i32; 6],
    seconds: f64,
) -> Result<Interval> {
    // Only seconds can be too large in a way that needs a look first.
    if !seconds.is_finite() {
        return Err(out_of_range().into());
    }
    let whole = || {
        let months = years.checked_mul(12)?.checked_add(months)?;
        let days = weeks.checked_mul(7)?.checked_add(days)?;
        let minutes = i64::from(hours) * 60 + i64::from(minutes);
        let seconds = (seconds * 1e6).round_ties_even();
        if seconds.abs() >= 9.2e18 {
            return None;
        }
        let usecs = minutes.checked_mul(60_000_000)?.checked_add(seconds as i64)?;
        Some(Interval { months, days, usecs })
    };
    whole().ok_or_else(|| out_of_range().into())
}

/// Seconds since 1970.
fn of_unix(seconds: f64) -> Result<i64> {
    if seconds.is_nan() {
        return Err(field_out_of_range("timestamp cannot be NaN".to_owned()));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { i64::MAX } else { i64::MIN });
    }
    let too_large =
        || field_out_of_range(format!("timestamp out of range: \"{}\"", short(seconds, 0)));
    // The difference comes first, as in PostgreSQL. A float has too few digits for it, so the last
    // microsecond may be another one.
    let usecs = ((seconds - UNIX_EPOCH_SHIFT as f64 / 1e6) * 1e6).round_ties_even();
    if usecs.abs() >= 9.22e18 {
        return Err(too_large());
    }
    checked(usecs as i64).map_err(|_| too_large())
}
