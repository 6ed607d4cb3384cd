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

/// Refuses values larger than PostgreSQL's: computing them could take all memory.
pub(in crate::expr) fn check_length(bytes: usize) -> Result<()> {
    if bytes >= 1 << 30 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    Ok(())
}
