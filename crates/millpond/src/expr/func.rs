//! Scalar functions.

use super::types::NUMERIC;
use super::{DAY_MICROS, Env, Expr, Val, cast, clock};
use crate::convert::numeric_error;
use crate::error::{Result, SqlError, SqlState};
use crate::settings::SettingId;
use crate::{DataType, Datum, Value};

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
}

/// How a function is found by its name and the number of its arguments.
pub(crate) struct Signature {
    pub(crate) func: Func,
    pub(crate) args: Args,
    pub(crate) result: Returns,
}

/// What a function takes.
#[derive(Clone, Copy)]
pub(crate) enum Args {
    /// These types.
    Exactly(&'static [DataType]),
    /// One number of any type, kept.
    Number,
    /// Any one value.
    Any,
    /// Any number of values of one type (at least one).
    Alike,
    /// Any number of values, each turned into text.
    Texts,
}

/// What a function gives.
#[derive(Clone, Copy)]
pub(crate) enum Returns {
    Type(DataType),
    /// The type of its arguments.
    Same,
    /// Double precision for floats and integers, numeric for numeric.
    Rounded,
}

/// Finds a function.
pub(crate) fn find(name: &str, args: usize) -> Option<Signature> {
    use Args::{Alike, Any, Exactly, Number, Texts};
    use DataType::{Date, Float8, Int4, Text, Timestamptz};
    use Returns::{Rounded, Same, Type};
    let (func, args, result) = match (name, args) {
        ("now" | "transaction_timestamp" | "statement_timestamp", 0) => {
            (Func::Now, Exactly(&[]), Type(Timestamptz))
        }
        ("clock_timestamp", 0) => (Func::ClockTimestamp, Exactly(&[]), Type(Timestamptz)),
        ("current_date", 0) => (Func::CurrentDate, Exactly(&[]), Type(Date)),
        ("version", 0) => (Func::Version, Exactly(&[]), Type(Text)),
        ("current_database" | "current_catalog", 0) => {
            (Func::CurrentDatabase, Exactly(&[]), Type(Text))
        }
        ("current_schema", 0) => (Func::CurrentSchema, Exactly(&[]), Type(Text)),
        ("current_user" | "session_user" | "user" | "current_role", 0) => {
            (Func::CurrentUser, Exactly(&[]), Type(Text))
        }
        ("pg_backend_pid", 0) => (Func::BackendPid, Exactly(&[]), Type(Int4)),
        ("current_setting", 1) => (Func::CurrentSetting, Exactly(&[Text]), Type(Text)),
        ("current_setting", 2) => {
            (Func::CurrentSetting, Exactly(&[Text, DataType::Bool]), Type(Text))
        }
        ("pg_typeof", 1) => (Func::PgTypeof, Any, Type(Text)),
        ("abs", 1) => (Func::Abs, Number, Same),
        ("ceil" | "ceiling", 1) => (Func::Ceil, Number, Rounded),
        ("floor", 1) => (Func::Floor, Number, Rounded),
        ("round", 1) => (Func::Round, Number, Rounded),
        ("round", 2) => (Func::RoundTo, Exactly(&[NUMERIC, Int4]), Type(NUMERIC)),
        ("trunc", 1) => (Func::Trunc, Number, Rounded),
        ("sign", 1) => (Func::Sign, Number, Rounded),
        ("sqrt", 1) => (Func::Sqrt, Exactly(&[Float8]), Type(Float8)),
        ("exp", 1) => (Func::Exp, Exactly(&[Float8]), Type(Float8)),
        ("ln", 1) => (Func::Ln, Exactly(&[Float8]), Type(Float8)),
        ("random", 0) => (Func::Random, Exactly(&[]), Type(Float8)),
        ("length" | "char_length" | "character_length", 1) => {
            (Func::Length, Exactly(&[Text]), Type(Int4))
        }
        ("octet_length", 1) => (Func::OctetLength, Exactly(&[Text]), Type(Int4)),
        ("lower", 1) => (Func::Lower, Exactly(&[Text]), Type(Text)),
        ("upper", 1) => (Func::Upper, Exactly(&[Text]), Type(Text)),
        ("btrim" | "trim", 1) => (Func::TrimBoth, Exactly(&[Text]), Type(Text)),
        ("btrim" | "trim", 2) => (Func::TrimBoth, Exactly(&[Text, Text]), Type(Text)),
        ("ltrim", 1) => (Func::TrimLeft, Exactly(&[Text]), Type(Text)),
        ("ltrim", 2) => (Func::TrimLeft, Exactly(&[Text, Text]), Type(Text)),
        ("rtrim", 1) => (Func::TrimRight, Exactly(&[Text]), Type(Text)),
        ("rtrim", 2) => (Func::TrimRight, Exactly(&[Text, Text]), Type(Text)),
        ("substr" | "substring", 2) => (Func::Substr, Exactly(&[Text, Int4]), Type(Text)),
        ("substr" | "substring", 3) => (Func::Substr, Exactly(&[Text, Int4, Int4]), Type(Text)),
        ("strpos" | "position", 2) => (Func::Strpos, Exactly(&[Text, Text]), Type(Int4)),
        ("replace", 3) => (Func::Replace, Exactly(&[Text, Text, Text]), Type(Text)),
        ("left", 2) => (Func::Left, Exactly(&[Text, Int4]), Type(Text)),
        ("right", 2) => (Func::Right, Exactly(&[Text, Int4]), Type(Text)),
        ("repeat", 2) => (Func::Repeat, Exactly(&[Text, Int4]), Type(Text)),
        ("reverse", 1) => (Func::Reverse, Exactly(&[Text]), Type(Text)),
        ("concat", 1..) => (Func::Concat, Texts, Type(Text)),
        ("greatest", 1..) => (Func::Greatest, Alike, Same),
        ("least", 1..) => (Func::Least, Alike, Same),
        ("nullif", 2) => (Func::NullIf, Alike, Same),
        ("pg_sleep", 1) => (Func::PgSleep, Exactly(&[Float8]), Type(Text)),
        _ => return None,
    };
    Some(Signature { func, args, result })
}

/// Names of all functions, for hints.
pub(crate) const NAMES: &[&str] = &[
    "now",
    "transaction_timestamp",
    "statement_timestamp",
    "clock_timestamp",
    "version",
    "current_database",
    "current_schema",
    "pg_backend_pid",
    "current_setting",
    "pg_typeof",
    "abs",
    "ceil",
    "ceiling",
    "floor",
    "round",
    "trunc",
    "sign",
    "sqrt",
    "exp",
    "ln",
    "random",
    "length",
    "char_length",
    "character_length",
    "octet_length",
    "lower",
    "upper",
    "btrim",
    "ltrim",
    "rtrim",
    "substr",
    "substring",
    "strpos",
    "replace",
    "left",
    "right",
    "repeat",
    "reverse",
    "concat",
    "greatest",
    "least",
    "nullif",
    "pg_sleep",
    "coalesce",
];

impl Func {
    /// Whether it can give another value at each call.
    pub(crate) fn is_volatile(self) -> bool {
        matches!(self, Func::ClockTimestamp | Func::Random | Func::PgSleep)
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
        Func::ClockTimestamp => return Ok(Val::Borrowed(Datum::Timestamptz(clock()))),
        Func::CurrentDate => {
            let days = facts.now.div_euclid(DAY_MICROS);
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
        ) => rounding(func, *number)?,
        (Func::RoundTo, [Datum::Numeric(number), Datum::Int4(scale)]) => {
            let scale = (*scale).clamp(-2000, 2000) as i16;
            Value::Numeric(number.round(scale).map_err(numeric_error)?)
        }
        (Func::Sqrt, [Datum::Float8(x)]) if *x < 0.0 => {
            return Err(SqlError::new(
                SqlState(*b"2201F"),
                "cannot take square root of a negative number",
            ));
        }
        (Func::Sqrt, [Datum::Float8(x)]) => Value::Float8(x.sqrt()),
        (Func::Exp, [Datum::Float8(x)]) => Value::Float8(x.exp()),
        (Func::Ln, [Datum::Float8(x)]) if *x <= 0.0 => {
            return Err(SqlError::new(
                SqlState(*b"2201E"),
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
        _ => string(func, args)?,
    };
    Ok(result)
}

/// Refuses values larger than PostgreSQL's: computing them could take all memory.
pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes >= 1 << 30 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    Ok(())
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

fn rounding(func: Func, number: Datum<'_>) -> Result<Value> {
    Ok(match (func, number) {
        (Func::Abs, Datum::Int2(i)) => {
            Value::Int2(i.checked_abs().ok_or_else(|| range("smallint"))?)
        }
        (Func::Abs, Datum::Int4(i)) => {
            Value::Int4(i.checked_abs().ok_or_else(|| range("integer"))?)
        }
        (Func::Abs, Datum::Int8(i)) => Value::Int8(i.checked_abs().ok_or_else(|| range("bigint"))?),
        (Func::Abs, Datum::Float4(f)) => Value::Float4(f.abs()),
        (Func::Abs, Datum::Float8(f)) => Value::Float8(f.abs()),
        (Func::Abs, Datum::Numeric(n)) => Value::Numeric(n.abs()),
        (Func::Round, Datum::Numeric(n)) => Value::Numeric(n.round(0).map_err(numeric_error)?),
        (Func::Sign, Datum::Numeric(n)) => {
            Value::Numeric(crate::Numeric::from(i64::from(n.signum())))
        }
        (Func::Ceil | Func::Floor | Func::Trunc, Datum::Numeric(n)) => {
            let rounded = n.round(0).map_err(numeric_error)?;
            let one = crate::Numeric::from(1i64);
            let order = rounded.as_ref().cmp(&n);
            let up = match func {
                Func::Ceil => order.is_lt(),
                Func::Trunc => n.signum() < 0 && order.is_lt(),
                _ => false,
            };
            let down = match func {
                Func::Floor => order.is_gt(),
                Func::Trunc => n.signum() >= 0 && order.is_gt(),
                _ => false,
            };
            Value::Numeric(if up {
                rounded.as_ref().add(one.as_ref()).map_err(numeric_error)?
            } else if down {
                rounded.as_ref().sub(one.as_ref()).map_err(numeric_error)?
            } else {
                rounded
            })
        }
        (_, Datum::Float8(f)) => Value::Float8(match func {
            Func::Ceil => f.ceil(),
            Func::Floor => f.floor(),
            Func::Round => f.round_ties_even(),
            Func::Trunc => f.trunc(),
            _ if f == 0.0 || f.is_nan() => f,
            _ => f.signum(),
        }),
        _ => return Err(SqlError::internal("a number of the wrong type")),
    })
}

#[cold]
fn range(ty: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

fn string(func: Func, args: &[Datum<'_>]) -> Result<Value> {
    Ok(match (func, args) {
        (Func::Length, [Datum::Text(s)]) => Value::Int4(s.chars().count() as i32),
        (Func::OctetLength, [Datum::Text(s)]) => Value::Int4(s.len() as i32),
        (Func::Lower, [Datum::Text(s)]) => Value::Text(s.to_lowercase()),
        (Func::Upper, [Datum::Text(s)]) => Value::Text(s.to_uppercase()),
        (Func::TrimBoth | Func::TrimLeft | Func::TrimRight, [Datum::Text(s), rest @ ..]) => {
            let set = match rest {
                [Datum::Text(set)] => set,
                _ => " ",
            };
            let in_set = |c: char| set.contains(c);
            let trimmed = match func {
                Func::TrimBoth => s.trim_matches(in_set),
                Func::TrimLeft => s.trim_start_matches(in_set),
                _ => s.trim_end_matches(in_set),
            };
            Value::Text(trimmed.to_owned())
        }
        (Func::Substr, [Datum::Text(s), Datum::Int4(start), rest @ ..]) => {
            let start = i64::from(*start) - 1;
            let end = match rest {
                [Datum::Int4(len)] if *len < 0 => {
                    return Err(SqlError::new(
                        SqlState::SUBSTRING_ERROR,
                        "negative substring length not allowed",
                    ));
                }
                [Datum::Int4(len)] => start + i64::from(*len),
                _ => i64::MAX,
            };
            let skip = start.max(0) as usize;
            let take = usize::try_from(end - start.max(0)).unwrap_or(0);
            Value::Text(s.chars().skip(skip).take(take).collect())
        }
        (Func::Strpos, [Datum::Text(s), Datum::Text(part)]) => {
            Value::Int4(s.find(part).map_or(0, |at| s[..at].chars().count() as i32 + 1))
        }
        (Func::Replace, [Datum::Text(s), Datum::Text(from), Datum::Text(to)]) => {
            if from.is_empty() {
                return Ok(Value::Text((*s).to_owned()));
            }
            if to.len() > from.len() {
                let more = s.matches(from).count().saturating_mul(to.len() - from.len());
                check_length(s.len().saturating_add(more))?;
            }
            Value::Text(s.replace(from, to))
        }
        (Func::Left | Func::Right, [Datum::Text(s), Datum::Int4(n)]) => {
            let total = s.chars().count() as i64;
            let keep = if *n >= 0 { i64::from(*n) } else { total + i64::from(*n) }.clamp(0, total);
            let skip = if func == Func::Left { 0 } else { total - keep };
            Value::Text(s.chars().skip(skip as usize).take(keep as usize).collect())
        }
        (Func::Repeat, [Datum::Text(s), Datum::Int4(n)]) => {
            let times = usize::try_from(*n).unwrap_or(0);
            if s.len().saturating_mul(times) > 1 << 26 {
                return Err(SqlError::new(
                    SqlState::PROGRAM_LIMIT_EXCEEDED,
                    "requested length too large",
                ));
            }
            Value::Text(s.repeat(times))
        }
        (Func::Reverse, [Datum::Text(s)]) => Value::Text(s.chars().rev().collect()),
        (Func::Concat, args) => {
            let mut out = String::new();
            for arg in args {
                match arg {
                    Datum::Null => {}
                    Datum::Text(text) => out.push_str(text),
                    Datum::Bool(b) => out.push(if *b { 't' } else { 'f' }),
                    datum => out.push_str(&cast::to_text(datum)),
                }
                check_length(out.len())?;
            }
            Value::Text(out)
        }
        _ => return Err(SqlError::internal(format!("{func:?} got arguments of other types"))),
    })
}
