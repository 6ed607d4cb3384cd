//! Functions of text.

use super::Func;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::cast;
use crate::{Datum, Value};

pub(super) fn call(func: Func, args: &[Datum<'_>]) -> Result<Value> {
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
            Value::Text(trimmed(func, s, set).to_owned())
        }
        (Func::Substr, [Datum::Text(s), Datum::Int4(start), rest @ ..]) => {
            let len = match rest {
                [Datum::Int4(len)] => Some(*len),
                _ => None,
            };
            Value::Text(substring(s, *start, len)?)
        }
        (Func::Strpos, [Datum::Text(s), Datum::Text(part)]) => {
            Value::Int4(s.find(part).map_or(0, |at| s[..at].chars().count() as i32 + 1))
        }
        (Func::Replace, [Datum::Text(s), Datum::Text(from), Datum::Text(to)]) => {
            Value::Text(replaced(s, from, to)?)
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
        (Func::Concat, args) => Value::Text(joined(args)?),
        _ => return Err(SqlError::internal(format!("{func:?} got arguments of other types"))),
    })
}

/// Without the characters of a set at its ends, or at one of them.
fn trimmed<'a>(func: Func, s: &'a str, set: &str) -> &'a str {
    let in_set = |c: char| set.contains(c);
    match func {
        Func::TrimBoth => s.trim_matches(in_set),
        Func::TrimLeft => s.trim_start_matches(in_set),
        _ => s.trim_end_matches(in_set),
    }
}

/// Characters from the one of that number on, which may lie before the first; so many of them, or all.
fn substring(s: &str, start: i32, len: Option<i32>) -> Result<String> {
    let start = i64::from(start) - 1;
    let end = match len {
        Some(len) if len < 0 => {
            return Err(SqlError::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        Some(len) => start + i64::from(len),
        None => i64::MAX,
    };
    let skip = start.max(0) as usize;
    let take = usize::try_from(end - start.max(0)).unwrap_or(0);
    Ok(s.chars().skip(skip).take(take).collect())
}

fn replaced(s: &str, from: &str, to: &str) -> Result<String> {
    if from.is_empty() {
        return Ok(s.to_owned());
    }
    if to.len() > from.len() {
        let more = s.matches(from).count().saturating_mul(to.len() - from.len());
        check_length(s.len().saturating_add(more))?;
    }
    Ok(s.replace(from, to))
}

/// The values that are not NULL, as text, one after the other.
fn joined(values: &[Datum<'_>]) -> Result<String> {
    let mut out = String::new();
    for value in values {
        match value {
            Datum::Null => {}
            Datum::Text(text) => out.push_str(text),
            Datum::Bool(b) => out.push(if *b { 't' } else { 'f' }),
            datum => out.push_str(&cast::to_text(datum)),
        }
        check_length(out.len())?;
    }
    Ok(out)
}

/// Refuses values larger than PostgreSQL's: computing them could take all memory.
pub(crate) fn check_length(bytes: usize) -> Result<()> {
    if bytes >= 1 << 30 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    Ok(())
}
