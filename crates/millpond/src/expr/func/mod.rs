//! Scalar functions: what they are, and what they compute.

mod number;
mod string;
mod table;

use millpond_engine::types::current_timestamp;

use super::{Env, Expr, Val, cast};
use crate::advisory::{self, Advisory, Key};
use crate::error::{Result, SqlError, SqlState};
use crate::settings::SettingId;
use crate::types::USECS_PER_DAY;
use crate::{Datum, Value};

pub(crate) use string::check_length;
pub(super) use table::{Args, Returns, find, names};

/// A function that the binder has chosen, with arguments of the right types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Func {
    Now,
    ClockTimestamp,
    CurrentDate,
    Version,
    CurrentDatabase,
    CurrentSchema,
    CurrentUser,
    BackendPid,
    CurrentSetting,
    PgTypeof,
    Abs,
    Ceil,
    Floor,
    Round,
    RoundTo,
    Trunc,
    Sign,
    Sqrt,
    Exp,
    Ln,
    Random,
    Length,
    OctetLength,
    Lower,
    Upper,
    TrimBoth,
    TrimLeft,
    TrimRight,
    Substr,
    Strpos,
    Replace,
    Left,
    Right,
    Repeat,
    Reverse,
    Concat,
    Greatest,
    Least,
    NullIf,
    PgSleep,
    /// `pg_advisory_lock` and its kin.
    Advisory(Advisory),
    BlockingPids,
    IsBlocked,
}

impl Func {
    /// Whether it can give another value at each call.
    pub(crate) fn is_volatile(self) -> bool {
        matches!(
            self,
            Func::ClockTimestamp
                | Func::Random
                | Func::PgSleep
                | Func::Advisory(_)
                | Func::BlockingPids
                | Func::IsBlocked
        )
    }

    /// Whether it returns nothing, which shows as an empty text of type `void`.
    pub(crate) fn is_void(self) -> bool {
        match self {
            Func::PgSleep => true,
            Func::Advisory(function) => function.is_void(),
            _ => false,
        }
    }

    /// Whether NULL arguments are its own business (of all others the result is NULL).
    fn takes_null(self) -> bool {
        matches!(self, Func::PgTypeof | Func::Concat | Func::Greatest | Func::Least | Func::NullIf)
    }
}

/// Calls a function.
pub(super) fn call<'a>(func: Func, args: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    let facts = env.facts;
    match func {
        Func::Now => return Ok(Val::Borrowed(Datum::Timestamptz(facts.now))),
        Func::ClockTimestamp => return Ok(Val::Borrowed(Datum::Timestamptz(current_timestamp()))),
        Func::CurrentDate => {
            let zone = facts.settings.format_options().zone;
            let days = zone.local(facts.now).div_euclid(USECS_PER_DAY);
            return Ok(Val::Borrowed(Datum::Date(i32::try_from(days).unwrap_or(i32::MAX))));
        }
        Func::Version => {
            return Ok(Val::Borrowed(Datum::Text(crate::VERSION_STRING)));
        }
        Func::CurrentDatabase => return Ok(Val::Borrowed(Datum::Text(facts.database))),
        Func::CurrentSchema => return Ok(Val::Borrowed(Datum::Text("public"))),
        Func::CurrentUser => return Ok(Val::Borrowed(Datum::Text(facts.user))),
        Func::BackendPid => return Ok(Val::Borrowed(Datum::Int4(facts.process_id))),
        Func::Random => return Ok(Val::Borrowed(Datum::Float8(random()))),
        _ => {}
    }
    let mut values = smallvec::SmallVec::<[Val<'a>; 3]>::new();
    for arg in args {
        let value = arg.eval(env)?;
        if value.is_null() && !func.takes_null() {
            return Ok(Val::Borrowed(Datum::Null));
        }
        values.push(value);
    }
    match func {
        Func::Greatest | Func::Least => return Ok(extreme(func, values)),
        Func::NullIf => {
            let equal = values[0].datum().sql_cmp(&values[1].datum()).is_some_and(|o| o.is_eq());
            return Ok(if equal { Val::Borrowed(Datum::Null) } else { values.swap_remove(0) });
        }
        _ => {}
    }
    let datums: smallvec::SmallVec<[Datum<'_>; 3]> = values.iter().map(Val::datum).collect();
    apply(func, &datums, env).map(Val::Owned)
}

/// The greatest or least of the values that are not NULL.
fn extreme<'a>(func: Func, values: smallvec::SmallVec<[Val<'a>; 3]>) -> Val<'a> {
    let mut best: Option<Val<'a>> = None;
    for value in values {
        if value.is_null() {
            continue;
        }
        let better = best.as_ref().is_none_or(|best| {
            let order = value.datum().sort_cmp(&best.datum());
            if func == Func::Greatest { order.is_gt() } else { order.is_lt() }
        });
        if better {
            best = Some(value);
        }
    }
    best.unwrap_or(Val::Borrowed(Datum::Null))
}

/// A number in [0, 1) that nobody should rely on.
fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn apply(func: Func, args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let result = match (func, args) {
        (Func::CurrentSetting, [Datum::Text(name), rest @ ..]) => {
            match (SettingId::find(name), rest) {
                (None, [Datum::Bool(true)]) => Value::Null,
                _ => Value::Text(env.facts.settings.show(SettingId::named(name)?)),
            }
        }
        (Func::PgTypeof, [datum]) => {
            Value::Text(cast::type_of(datum).map_or("unknown".to_owned(), |ty| ty.to_string()))
        }
        (
            Func::Abs | Func::Ceil | Func::Floor | Func::Round | Func::Trunc | Func::Sign,
            [number],
        ) => number::rounding(func, *number)?,
        (Func::RoundTo, [Datum::Numeric(number), Datum::Int4(scale)]) => {
            let scale = (*scale).clamp(-2000, 2000) as i16;
            Value::Numeric(number.round(scale)?)
        }
        (Func::Sqrt, [Datum::Float8(x)]) if *x < 0.0 => {
            return Err(SqlError::new(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "cannot take square root of a negative number",
            ));
        }
        (Func::Sqrt, [Datum::Float8(x)]) => Value::Float8(x.sqrt()),
        (Func::Exp, [Datum::Float8(x)]) => Value::Float8(x.exp()),
        (Func::Ln, [Datum::Float8(x)]) if *x <= 0.0 => {
            return Err(SqlError::new(
                SqlState::INVALID_ARGUMENT_FOR_LOGARITHM,
                "cannot take logarithm of a number below or at zero",
            ));
        }
        (Func::Ln, [Datum::Float8(x)]) => Value::Float8(x.ln()),
        (Func::PgSleep, [Datum::Float8(seconds)]) => {
            // Wherever in a statement it stands: an event loop does not sleep.
            if env.facts.session.is_some_and(|session| session.wait() == crate::Wait::Never) {
                return Err(crate::convert::would_block());
            }
            let seconds = if seconds.is_finite() { seconds.clamp(0.0, 86_400.0) } else { 0.0 };
            sleep(std::time::Duration::from_secs_f64(seconds), env)?;
            Value::Text(String::new())
        }
        (Func::Advisory(function), args) => lock(function, args, env)?,
        (Func::BlockingPids, [Datum::Int4(pid)]) => {
            let blocking = blocking_pids(*pid, env);
            let blocking: Vec<String> = blocking.iter().map(u32::to_string).collect();
            Value::Text(format!("{{{}}}", blocking.join(",")))
        }
        (Func::IsBlocked, [Datum::Int4(pid), Datum::Text(others)]) => {
            let others = advisory::pids(others)?;
            Value::Bool(blocking_pids(*pid, env).iter().any(|pid| others.contains(pid)))
        }
        _ => string::call(func, args)?,
    };
    Ok(result)
}

fn lock(function: Advisory, args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let Some(session) = env.facts.session else {
        return Err(SqlError::internal("a lock without a session"));
    };
    // Wherever in a statement it stands: what has been locked would be locked again when the statement is repeated.
    if session.wait() == crate::Wait::Never && !env.facts.only_locks {
        return Err(crate::convert::would_block());
    }
    let key = match args {
        [Datum::Int8(key)] => Key::One(*key),
        [Datum::Int4(high), Datum::Int4(low)] => Key::Two(*high, *low),
        _ => Key::None,
    };
    function.call(session, key, env.facts.notices)
}

/// The process ids of the sessions that a session waits for.
fn blocking_pids(pid: i32, env: &Env<'_>) -> Vec<u32> {
    let locks = env.facts.session.map(|session| session.engine().locks());
    let pid = u32::try_from(pid).unwrap_or(0);
    locks.map(|locks| locks.blocking_processes(pid)).unwrap_or_default()
}

/// Waits, but listens for a request to stop.
fn sleep(duration: std::time::Duration, env: &Env<'_>) -> Result<()> {
    let end = std::time::Instant::now() + duration;
    loop {
        if let Some(session) = env.facts.session {
            session.check_cancel()?;
        }
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::park_timeout(left.min(std::time::Duration::from_millis(10)));
    }
}
