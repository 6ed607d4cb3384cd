//! `age`: the time between two time stamps in years, months and days of the calendar.

use millpond_types::Interval;

use super::super::catalog::{Proc, proc};
use super::super::value::body;
use super::arith::zone;
use super::value::{Stamp, StampTz};
use super::{INTERVAL, TIMESTAMP, TIMESTAMPTZ, is_infinite, timestamp_out_of_range};
use crate::error::Result;
use crate::expr::Env;
use crate::types::{USECS_PER_DAY, civil_of_timestamp, days_in_month};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(2058, "age", &[TIMESTAMP, TIMESTAMP], INTERVAL, body!(|a: Stamp, b: Stamp| age(a.0, b.0))),
    proc(
        1199,
        "age",
        &[TIMESTAMPTZ, TIMESTAMPTZ],
        INTERVAL,
        body!(env, |a: StampTz, b: StampTz| age(zone(env).local(a.0), zone(env).local(b.0))),
    ),
    proc(2059, "age", &[TIMESTAMP], INTERVAL, body!(env, |t: Stamp| age(today(env), t.0))).stable(),
    proc(
        1386,
        "age",
        &[TIMESTAMPTZ],
        INTERVAL,
        body!(env, |t: StampTz| age(today(env), zone(env).local(t.0))),
    )
    .stable(),
];

/// The beginning of the day in which the transaction began.
fn today(env: &Env<'_>) -> i64 {
    zone(env).local(env.facts.now).div_euclid(USECS_PER_DAY) * USECS_PER_DAY
}

fn age(a: i64, b: i64) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        return Err(timestamp_out_of_range());
    }
    if a < b {
        return super::interval::negate(between(b, a));
    }
    Ok(between(a, b))
}

/// The time from the earlier to the later, field by field. What a field lacks is borrowed from the
/// next larger one; a month has as many days as the earlier time stamp's month.
fn between(later: i64, earlier: i64) -> Interval {
    let (a, b) = (civil_of_timestamp(later), civil_of_timestamp(earlier));
    let mut months = (a.year - b.year) * 12 + a.month as i32 - b.month as i32;
    let mut days = a.day as i32 - b.day as i32;
    let mut usecs = a.usecs - b.usecs;
    if usecs < 0 {
        usecs += USECS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        days += days_in_month(b.year.into(), b.month) as i32;
        months -= 1;
    }
    Interval { months, days, usecs }
}
