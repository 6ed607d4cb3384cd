//! Functions that stop sessions, others or the own one, and that wait.

use std::thread::park_timeout;
use std::time::{Duration, Instant};

use millpond_types::other::INTERVAL as INTERVAL_OID;
use millpond_types::{Interval, current_timestamp};

use super::Body;
use super::catalog::{BOOL, FLOAT8, INT4, INT8, Proc, TIMESTAMPTZ, VOID, proc};
use super::datetime::{INTERVAL, Later};
use super::value::{Outcome, body, wrong_arguments};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::query::Signal;
use crate::{Datum, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(
        2171,
        "pg_cancel_backend",
        &[INT4],
        BOOL,
        body!(env, |pid: i32| signal(pid, Signal::Cancel, env)),
    )
    .volatile(),
    proc(
        0,
        "pg_terminate_backend",
        &[INT4],
        BOOL,
        body!(env, |pid: i32| signal(pid, Signal::Terminate, env)),
    )
    .volatile(),
    proc(2096, "pg_terminate_backend", &[INT4, INT8], BOOL, Body::Sleep(terminate)).volatile(),
    proc(2626, "pg_sleep", &[FLOAT8], VOID, Body::Sleep(pg_sleep)).volatile(),
    proc(3935, "pg_sleep_for", &[INTERVAL], VOID, Body::Sleep(pg_sleep)).volatile(),
    proc(3936, "pg_sleep_until", &[TIMESTAMPTZ], VOID, Body::Sleep(pg_sleep)).volatile(),
];

/// Tells a session to stop. False, with a warning, if there is none with this process id.
fn signal(pid: i32, signal: Signal, env: &Env<'_>) -> bool {
    let told = env.facts.server.is_some_and(|server| server.signal(pid, signal));
    if !told {
        warn(format!("PID {pid} is not a PostgreSQL backend process"), env);
    }
    told
}

fn warn(message: String, env: &Env<'_>) {
    env.facts.notices.borrow_mut().push(SqlError::warning(SqlState::WARNING, message));
}

/// Ends a session. With a time in milliseconds it waits that long for the end.
fn terminate(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [Datum::Int4(pid), Datum::Int8(timeout_ms)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let Ok(timeout) = u64::try_from(*timeout_ms) else {
        let message = "\"timeout\" must not be negative";
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    };
    if timeout > 0 {
        may_sleep(env)?;
    }
    if !signal(*pid, Signal::Terminate, env) {
        return false.outcome();
    }
    let is_there = || env.facts.server.is_some_and(|server| server.has_backend(*pid));
    if timeout > 0 && !sleep(Duration::from_millis(timeout), || !is_there(), env)? {
        let plural = if timeout == 1 { "" } else { "s" };
        let message = format!(
            "backend with PID {pid} did not terminate within {timeout} millisecond{plural}"
        );
        warn(message, env);
        return false.outcome();
    }
    true.outcome()
}

/// `pg_sleep` and its kin: for seconds, for an interval, until a time.
fn pg_sleep(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    may_sleep(env)?;
    let now = current_timestamp();
    let seconds = match args {
        [Datum::Float8(seconds)] => *seconds,
        [Datum::Other(INTERVAL_OID, bytes)] => {
            let interval = Interval::from_bytes(bytes).ok_or_else(|| wrong_arguments(1))?;
            seconds_between(now, Later::in_zone_of(env).add(now, interval)?)
        }
        [Datum::Timestamptz(time)] => seconds_between(now, *time),
        _ => return Err(wrong_arguments(args.len())),
    };
    let seconds = if seconds.is_finite() { seconds.clamp(0.0, 1e9) } else { 0.0 };
    sleep(Duration::from_secs_f64(seconds), || false, env)?;
    ().outcome()
}

#[expect(clippy::cast_precision_loss, reason = "far from now it does not matter")]
fn seconds_between(now: i64, time: i64) -> f64 {
    time.saturating_sub(now) as f64 / 1e6
}

/// An event loop does not sleep, wherever in a statement the call stands.
fn may_sleep(env: &Env<'_>) -> Result<()> {
    match env.facts.session {
        Some(session) if session.wait() == crate::Wait::Never => Err(crate::convert::would_block()),
        _ => Ok(()),
    }
}

/// Waits until something is `over`, and answers whether it was in time. It listens for a request
/// to stop.
fn sleep(duration: Duration, over: impl Fn() -> bool, env: &Env<'_>) -> Result<bool> {
    let end = Instant::now() + duration;
    loop {
        if over() {
            return Ok(true);
        }
        if let Some(session) = env.facts.session {
            session.check_cancel()?;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        park_timeout(left.min(Duration::from_millis(10)));
    }
}
