//! Sums and differences of dates, times and intervals.

use millpond_types::Interval;

use super::super::catalog::{Proc, proc};
use super::super::operators::{Operator, Work, op};
use super::super::value::body;
use super::interval;
use super::value::{Date, Stamp, StampTz, Time, TimeTz};
use super::{
    DATE, FLOAT8, INT4, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, checked, is_infinite,
    timestamp_out_of_range,
};
use crate::Value;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::types::interval::round_usecs;
use crate::types::{
    USECS_PER_DAY, Zone, civil_of_timestamp, date_of_civil, days_in_month, in_timestamp_range,
};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        2032,
        "timestamp_pl_interval",
        &[TIMESTAMP, INTERVAL],
        TIMESTAMP,
        body!(|t: Stamp, i: Interval| add(t.0, i).map(Stamp)),
    ),
    proc(
        2033,
        "timestamp_mi_interval",
        &[TIMESTAMP, INTERVAL],
        TIMESTAMP,
        body!(|t: Stamp, i: Interval| add(t.0, interval::negate(i)?).map(Stamp)),
    ),
    proc(
        2548,
        "interval_pl_timestamp",
        &[INTERVAL, TIMESTAMP],
        TIMESTAMP,
        body!(|i: Interval, t: Stamp| add(t.0, i).map(Stamp)),
    ),
    proc(
        1189,
        "timestamptz_pl_interval",
        &[TIMESTAMPTZ, INTERVAL],
        TIMESTAMPTZ,
        body!(env, |t: StampTz, i: Interval| add_in_zone(t.0, i, zone(env)).map(StampTz)),
    )
    .stable(),
    proc(
        1190,
        "timestamptz_mi_interval",
        &[TIMESTAMPTZ, INTERVAL],
        TIMESTAMPTZ,
        body!(env, |t: StampTz, i: Interval| add_in_zone(t.0, interval::negate(i)?, zone(env))
            .map(StampTz)),
    )
    .stable(),
    proc(
        2549,
        "interval_pl_timestamptz",
        &[INTERVAL, TIMESTAMPTZ],
        TIMESTAMPTZ,
        body!(env, |i: Interval, t: StampTz| add_in_zone(t.0, i, zone(env)).map(StampTz)),
    )
    .stable(),
    proc(
        2031,
        "timestamp_mi",
        &[TIMESTAMP, TIMESTAMP],
        INTERVAL,
        body!(|a: Stamp, b: Stamp| difference(a.0, b.0)),
    ),
    proc(
        1188,
        "timestamptz_mi",
        &[TIMESTAMPTZ, TIMESTAMPTZ],
        INTERVAL,
        body!(|a: StampTz, b: StampTz| difference(a.0, b.0)),
    ),
    proc(
        2071,
        "date_pl_interval",
        &[DATE, INTERVAL],
        TIMESTAMP,
        body!(|d: Date, i: Interval| add(midnight(d)?, i).map(Stamp)),
    ),
    proc(
        2072,
        "date_mi_interval",
        &[DATE, INTERVAL],
        TIMESTAMP,
        body!(|d: Date, i: Interval| add(midnight(d)?, interval::negate(i)?).map(Stamp)),
    ),
    proc(
        2546,
        "interval_pl_date",
        &[INTERVAL, DATE],
        TIMESTAMP,
        body!(|i: Interval, d: Date| add(midnight(d)?, i).map(Stamp)),
    ),
    proc(
        1272,
        "datetime_pl",
        &[DATE, TIME],
        TIMESTAMP,
        body!(|d: Date, t: Time| at(d, t.0).map(Stamp)),
    ),
    proc(
        1296,
        "timedate_pl",
        &[TIME, DATE],
        TIMESTAMP,
        body!(|t: Time, d: Date| at(d, t.0).map(Stamp)),
    ),
    proc(
        1297,
        "datetimetz_pl",
        &[DATE, TIMETZ],
        TIMESTAMPTZ,
        body!(|d: Date, t: TimeTz| at_in_zone(d, t).map(StampTz)),
    ),
    proc(
        1298,
        "timetzdate_pl",
        &[TIMETZ, DATE],
        TIMESTAMPTZ,
        body!(|t: TimeTz, d: Date| at_in_zone(d, t).map(StampTz)),
    ),
    proc(
        2025,
        "timestamp",
        &[DATE, TIME],
        TIMESTAMP,
        body!(|d: Date, t: Time| at(d, t.0).map(Stamp)),
    ),
    proc(
        1176,
        "timestamptz",
        &[DATE, TIME],
        TIMESTAMPTZ,
        body!(env, |d: Date, t: Time| in_zone(at(d, t.0)?, zone(env)).map(StampTz)),
    )
    .stable(),
    proc(
        1359,
        "timestamptz",
        &[DATE, TIMETZ],
        TIMESTAMPTZ,
        body!(|d: Date, t: TimeTz| at_in_zone(d, t).map(StampTz)),
    ),
    proc(
        1961,
        "timestamp",
        &[TIMESTAMP, INT4],
        TIMESTAMP,
        body!(|t: Stamp, precision: i32| rounded(t.0, precision).map(Stamp)),
    ),
    proc(
        1967,
        "timestamptz",
        &[TIMESTAMPTZ, INT4],
        TIMESTAMPTZ,
        body!(|t: StampTz, precision: i32| rounded(t.0, precision).map(StampTz)),
    ),
    proc(
        1747,
        "time_pl_interval",
        &[TIME, INTERVAL],
        TIME,
        body!(|t: Time, i: Interval| Time(turn(t.0, i.usecs))),
    ),
    proc(
        1748,
        "time_mi_interval",
        &[TIME, INTERVAL],
        TIME,
        body!(|t: Time, i: Interval| Time(turn(t.0, i.usecs.wrapping_neg()))),
    ),
    proc(
        1848,
        "interval_pl_time",
        &[INTERVAL, TIME],
        TIME,
        body!(|i: Interval, t: Time| Time(turn(t.0, i.usecs))),
    ),
    proc(
        1690,
        "time_mi_time",
        &[TIME, TIME],
        INTERVAL,
        body!(|a: Time, b: Time| Interval { usecs: a.0 - b.0, ..Interval::default() }),
    ),
    proc(
        1749,
        "timetz_pl_interval",
        &[TIMETZ, INTERVAL],
        TIMETZ,
        body!(|t: TimeTz, i: Interval| TimeTz(turn(t.0, i.usecs), t.1)),
    ),
    proc(
        1750,
        "timetz_mi_interval",
        &[TIMETZ, INTERVAL],
        TIMETZ,
        body!(|t: TimeTz, i: Interval| TimeTz(turn(t.0, i.usecs.wrapping_neg()), t.1)),
    ),
    proc(
        2547,
        "interval_pl_timetz",
        &[INTERVAL, TIMETZ],
        TIMETZ,
        body!(|i: Interval, t: TimeTz| TimeTz(turn(t.0, i.usecs), t.1)),
    ),
];

/// An operator that is a function.
const fn call(
    symbol: &'static str,
    args: &'static [super::Param],
    result: super::Param,
    function: &'static str,
) -> Operator {
    op(symbol, args, result, Work::Call(function))
}

pub(in super::super) static OPERATORS: &[Operator] = &[
    call("+", &[TIMESTAMP, INTERVAL], TIMESTAMP, "timestamp_pl_interval"),
    call("-", &[TIMESTAMP, INTERVAL], TIMESTAMP, "timestamp_mi_interval"),
    call("+", &[INTERVAL, TIMESTAMP], TIMESTAMP, "interval_pl_timestamp"),
    call("+", &[TIMESTAMPTZ, INTERVAL], TIMESTAMPTZ, "timestamptz_pl_interval"),
    call("-", &[TIMESTAMPTZ, INTERVAL], TIMESTAMPTZ, "timestamptz_mi_interval"),
    call("+", &[INTERVAL, TIMESTAMPTZ], TIMESTAMPTZ, "interval_pl_timestamptz"),
    call("-", &[TIMESTAMP, TIMESTAMP], INTERVAL, "timestamp_mi"),
    call("-", &[TIMESTAMPTZ, TIMESTAMPTZ], INTERVAL, "timestamptz_mi"),
    call("+", &[DATE, INTERVAL], TIMESTAMP, "date_pl_interval"),
    call("-", &[DATE, INTERVAL], TIMESTAMP, "date_mi_interval"),
    call("+", &[INTERVAL, DATE], TIMESTAMP, "interval_pl_date"),
    call("+", &[DATE, TIME], TIMESTAMP, "datetime_pl"),
    call("+", &[TIME, DATE], TIMESTAMP, "timedate_pl"),
    call("+", &[DATE, TIMETZ], TIMESTAMPTZ, "datetimetz_pl"),
    call("+", &[TIMETZ, DATE], TIMESTAMPTZ, "timetzdate_pl"),
    call("+", &[TIME, INTERVAL], TIME, "time_pl_interval"),
    call("-", &[TIME, INTERVAL], TIME, "time_mi_interval"),
    call("+", &[INTERVAL, TIME], TIME, "interval_pl_time"),
    call("-", &[TIME, TIME], INTERVAL, "time_mi_time"),
    call("+", &[TIMETZ, INTERVAL], TIMETZ, "timetz_pl_interval"),
    call("-", &[TIMETZ, INTERVAL], TIMETZ, "timetz_mi_interval"),
    call("+", &[INTERVAL, TIMETZ], TIMETZ, "interval_pl_timetz"),
    call("+", &[INTERVAL, INTERVAL], INTERVAL, "interval_pl"),
    call("-", &[INTERVAL, INTERVAL], INTERVAL, "interval_mi"),
    call("*", &[INTERVAL, FLOAT8], INTERVAL, "interval_mul"),
    call("*", &[FLOAT8, INTERVAL], INTERVAL, "mul_d_interval"),
    call("/", &[INTERVAL, FLOAT8], INTERVAL, "interval_div"),
];

pub(super) fn zone(env: &Env<'_>) -> Zone {
    env.facts.settings.format_options().zone
}

/// A time stamp some months, days and microseconds later. The day of a shorter month is its last.
pub(crate) fn add(timestamp: i64, interval: Interval) -> Result<i64> {
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    let mut timestamp = timestamp;
    if interval.months != 0 {
        timestamp = add_months(timestamp, interval.months).ok_or_else(timestamp_out_of_range)?;
    }
    // The days alone may be more than there are between the first time stamp and 2000.
    let days = i128::from(interval.days) * i128::from(USECS_PER_DAY);
    timestamp = i64::try_from(i128::from(timestamp) + days)
        .ok()
        .filter(|timestamp| interval.days == 0 || in_timestamp_range(*timestamp))
        .ok_or_else(timestamp_out_of_range)?;
    checked(timestamp.checked_add(interval.usecs).ok_or_else(timestamp_out_of_range)?)
}

fn add_months(timestamp: i64, months: i32) -> Option<i64> {
    let civil = civil_of_timestamp(timestamp);
    let months = i64::from(civil.year) * 12 + i64::from(civil.month) - 1 + i64::from(months);
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) as u32 + 1);
    let day = civil.day.min(days_in_month(year, month));
    let days = date_of_civil(year, month, day)?;
    days.checked_mul(USECS_PER_DAY)?.checked_add(civil.usecs).filter(|t| in_timestamp_range(*t))
}

/// The same for a time stamp with time zone: months and days are those of the zone's clock.
pub(crate) fn add_in_zone(timestamp: i64, interval: Interval, zone: Zone) -> Result<i64> {
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    let mut timestamp = timestamp;
    if interval.months != 0 || interval.days != 0 {
        let calendar = Interval { usecs: 0, ..interval };
        timestamp = zone.utc(add(zone.local(timestamp), calendar)?);
    }
    checked(timestamp.checked_add(interval.usecs).ok_or_else(timestamp_out_of_range)?)
}

/// What comes some time after a time stamp, with or without a time zone.
#[derive(Clone, Copy)]
pub struct Later(Option<Zone>);

impl Later {
    pub(in crate::expr::func) fn plain() -> Self {
        Later(None)
    }

    pub(in crate::expr::func) fn in_zone_of(env: &Env<'_>) -> Self {
        Later(Some(zone(env)))
    }

    pub(in crate::expr::func) fn add(self, timestamp: i64, interval: Interval) -> Result<i64> {
        match self.0 {
            None => add(timestamp, interval),
            Some(zone) => add_in_zone(timestamp, interval, zone),
        }
    }

    pub(in crate::expr::func) fn value(self, timestamp: i64) -> Value {
        match self.0 {
            None => Value::Timestamp(timestamp),
            Some(_) => Value::Timestamptz(timestamp),
        }
    }
}

/// The time between two time stamps, in days and less.
fn difference(a: i64, b: i64) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        return Err(SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "cannot subtract infinite timestamps",
        ));
    }
    let usecs = a.checked_sub(b).ok_or_else(crate::types::interval::out_of_range)?;
    let days =
        i32::try_from(usecs / USECS_PER_DAY).map_err(|_| crate::types::interval::out_of_range())?;
    Ok(Interval { months: 0, days, usecs: usecs % USECS_PER_DAY })
}

/// When the zone's clock shows that time.
fn in_zone(local: i64, zone: Zone) -> Result<i64> {
    if is_infinite(local) { Ok(local) } else { checked(zone.utc(local)) }
}

/// A time stamp with this number of digits after the second's point.
fn rounded(timestamp: i64, precision: i32) -> Result<i64> {
    if is_infinite(timestamp) || precision == -1 {
        return Ok(timestamp);
    }
    if !(0..=6).contains(&precision) {
        let message = format!("timestamp({precision}) precision must be between 0 and 6");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(round_usecs(timestamp, precision).unwrap_or(timestamp))
}

/// The beginning of a day.
pub(super) fn midnight(date: Date) -> Result<i64> {
    match date.0 {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        days => i64::from(days)
            .checked_mul(USECS_PER_DAY)
            .filter(|usecs| in_timestamp_range(*usecs))
            .ok_or_else(date_out_of_range),
    }
}

#[cold]
fn date_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
}

fn at(date: Date, usecs: i64) -> Result<i64> {
    match midnight(date)? {
        infinite if is_infinite(infinite) => Ok(infinite),
        midnight => checked(midnight.checked_add(usecs).ok_or_else(timestamp_out_of_range)?),
    }
}

fn at_in_zone(date: Date, time: TimeTz) -> Result<i64> {
    let usecs = time.0.saturating_add(i64::from(time.1) * 1_000_000);
    at(date, usecs).map_err(|_| date_out_of_range())
}

/// A time of day that has moved around the clock.
pub(super) fn turn(time: i64, by: i64) -> i64 {
    (time + by % USECS_PER_DAY).rem_euclid(USECS_PER_DAY)
}
