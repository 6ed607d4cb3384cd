//! `AT TIME ZONE`, and the time of the day now.

use millpond_types::Interval;

use super::super::Body;
use super::super::catalog::{Proc, proc};
use super::super::value::body;
use super::arith::zone;
use super::value::{Stamp, StampTz, TimeTz};
use super::{INTERVAL, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, checked, is_infinite};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Expr, Val};
use crate::types::datetime;
use crate::types::time::{time_value, timetz_value};
use crate::types::{USECS_PER_DAY, Zone};

pub(in super::super) static PROCS: &[Proc] = &[
    proc(
        2069,
        "timezone",
        &[TEXT, TIMESTAMP],
        TIMESTAMPTZ,
        body!(|name: &str, t: Stamp| utc(t.0, || zone_named(name)).map(StampTz)),
    ),
    proc(
        1159,
        "timezone",
        &[TEXT, TIMESTAMPTZ],
        TIMESTAMP,
        body!(|name: &str, t: StampTz| local(t.0, || zone_named(name)).map(Stamp)),
    ),
    proc(
        2037,
        "timezone",
        &[TEXT, TIMETZ],
        TIMETZ,
        body!(env, |name: &str, t: TimeTz| shifted(t, zone_named(name)?.offset_at(env.facts.now))),
    )
    .stable(),
    proc(
        2070,
        "timezone",
        &[INTERVAL, TIMESTAMP],
        TIMESTAMPTZ,
        body!(|i: Interval, t: Stamp| utc(t.0, || offset(i).map(Zone::Fixed)).map(StampTz)),
    ),
    proc(
        1026,
        "timezone",
        &[INTERVAL, TIMESTAMPTZ],
        TIMESTAMP,
        body!(|i: Interval, t: StampTz| local(t.0, || offset(i).map(Zone::Fixed)).map(Stamp)),
    ),
    proc(
        2038,
        "timezone",
        &[INTERVAL, TIMETZ],
        TIMETZ,
        body!(|i: Interval, t: TimeTz| shifted(t, offset(i)?)),
    ),
    proc(0, "localtime", &[], TIME, Body::Exprs(local_time)).stable(),
    proc(0, "current_time", &[], TIMETZ, Body::Exprs(current_time)).stable(),
];

fn utc(timestamp: i64, zone: impl Fn() -> Result<Zone>) -> Result<i64> {
    if is_infinite(timestamp) { Ok(timestamp) } else { checked(zone()?.utc(timestamp)) }
}

fn local(timestamp: i64, zone: impl Fn() -> Result<Zone>) -> Result<i64> {
    if is_infinite(timestamp) { Ok(timestamp) } else { checked(zone()?.local(timestamp)) }
}

/// The same moment on the clock of another zone.
fn shifted(time: TimeTz, east: i32) -> TimeTz {
    let moved = time.0 + (i64::from(time.1) + i64::from(east)) * 1_000_000;
    TimeTz(moved.rem_euclid(USECS_PER_DAY), -east)
}

/// Seconds east of UTC that an interval says.
fn offset(interval: Interval) -> Result<i32> {
    if interval.months != 0 || interval.days != 0 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("interval time zone \"{}\" must not include months or days", shown(interval)),
        ));
    }
    let seconds = interval.usecs / 1_000_000;
    i32::try_from(seconds).ok().filter(|seconds| seconds.abs() <= 168 * 3600).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
            "time zone displacement out of range",
        )
    })
}

fn shown(interval: Interval) -> String {
    crate::expr::cast::to_text(&crate::Value::from(interval).as_datum())
}

/// The zone of that name: an abbreviation, a zone of the database, or an offset in POSIX's form.
pub(super) fn zone_named(name: &str) -> Result<Zone> {
    datetime::zone_named(name)
        .ok_or_else(|| invalid(format!("time zone \"{name}\" not recognized")))
}

/// The zone that `make_timestamptz` is given: a name, or an offset with a sign, counted to the
/// east.
pub(super) fn zone_to_make(name: &str) -> Result<Zone> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let what = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
        return Err(invalid(what).hint(hint));
    }
    match datetime::zone_of_offset(name) {
        Some(Some(zone)) => Ok(zone),
        Some(None) => Err(invalid(format!("numeric time zone \"{name}\" out of range"))),
        None => zone_named(name),
    }
}

#[cold]
fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn now(env: &Env<'_>) -> (i64, i32) {
    let offset = zone(env).offset_at(env.facts.now);
    let local = env.facts.now.saturating_add(i64::from(offset) * 1_000_000);
    (local.rem_euclid(USECS_PER_DAY), offset)
}

fn local_time<'a>(_: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    Ok(time_value(now(env).0).into())
}

fn current_time<'a>(_: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    let (usecs, offset) = now(env);
    Ok(timetz_value(usecs, -offset).into())
}
