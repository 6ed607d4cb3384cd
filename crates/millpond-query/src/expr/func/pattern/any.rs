//! `LIKE ANY (array)` and the like: a text beside several patterns.

use super::is_match;
use crate::error::{Result, SqlError};
use crate::expr::func::Body;
use crate::expr::func::catalog::{ANY as ANY_TYPE, BOOL, Proc, proc};
use crate::expr::func::value::wrong_arguments;
use crate::expr::letter::{LetterCase, mapped};
use crate::expr::{Env, Expr, Func, like};
use crate::types::array::array_of;
use crate::{Datum, Value};

/// `text op ANY (patterns)`: text, patterns, and the operator's code.
pub(in crate::expr) static ANY: Proc = proc(
    0,
    "matches_any",
    &[ANY_TYPE, ANY_TYPE, ANY_TYPE],
    BOOL,
    Body::Datums(|args, env| matched(args, false, env)),
)
.called_on_null();

/// `text op ALL (patterns)`
pub(in crate::expr) static ALL: Proc = proc(
    0,
    "matches_all",
    &[ANY_TYPE, ANY_TYPE, ANY_TYPE],
    BOOL,
    Body::Datums(|args, env| matched(args, true, env)),
)
.called_on_null();

/// An operator of a text and a pattern.
struct Operator {
    symbol: &'static str,
    /// As it is shown.
    any: &'static str,
    all: &'static str,
    is_regex: bool,
    ignore_case: bool,
    negated: bool,
}

macro_rules! op {
    ($symbol:literal, $is_regex:literal, $ignore_case:literal, $negated:literal) => {
        Operator {
            symbol: $symbol,
            any: concat!($symbol, " ANY"),
            all: concat!($symbol, " ALL"),
            is_regex: $is_regex,
            ignore_case: $ignore_case,
            negated: $negated,
        }
    };
}

const OPERATORS: [Operator; 8] = [
    op!("~~", false, false, false),
    op!("!~~", false, false, true),
    op!("~~*", false, true, false),
    op!("!~~*", false, true, true),
    op!("~", true, false, false),
    op!("!~", true, false, true),
    op!("~*", true, true, false),
    op!("!~*", true, true, true),
];

/// How the functions are told an operator; `None` if it takes no pattern.
pub(in crate::expr) fn operator_code(symbol: &str) -> Option<i32> {
    OPERATORS.iter().position(|op| op.symbol == symbol).map(|place| place as i32)
}

/// What a call of the functions compares, with the operator and ANY or ALL; `None` for other calls.
pub(in crate::expr) fn comparison(
    func: Func,
    args: &[Expr],
) -> Option<(&Expr, &'static str, &Expr)> {
    let [text, patterns, Expr::Const(Value::Int4(code))] = args else { return None };
    let operator = usize::try_from(*code).ok().and_then(|code| OPERATORS.get(code))?;
    if func == Func::new(&ANY) {
        Some((text, operator.any, patterns))
    } else if func == Func::new(&ALL) {
        Some((text, operator.all, patterns))
    } else {
        None
    }
}

fn holds(op: &Operator, text: &str, pattern: &str, env: &Env<'_>) -> Result<bool> {
    let found = if op.is_regex {
        is_match(text, pattern, op.ignore_case, env)?
    } else if op.ignore_case {
        let lower = |text: &str| mapped(text, LetterCase::Lower);
        like::matches(&lower(text), &lower(pattern), Some('\\'))?
    } else {
        like::matches(text, pattern, Some('\\'))?
    };
    Ok(found != op.negated)
}

fn matched(args: &[Datum<'_>], all: bool, env: &Env<'_>) -> Result<Value> {
    let [text, patterns, Datum::Int4(code)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let op = usize::try_from(*code).ok().and_then(|code| OPERATORS.get(code));
    let op = op.ok_or_else(|| SqlError::internal("no operator of patterns"))?;
    if patterns.is_null() {
        return Ok(Value::Null);
    }
    let patterns = array_of(patterns).ok_or_else(|| wrong_arguments(args.len()))?;
    let mut result = Value::Bool(all);
    for pattern in patterns.iter() {
        match (text, pattern) {
            (Datum::Text(text), Datum::Text(pattern)) => {
                if holds(op, text, pattern, env)? != all {
                    return Ok(Value::Bool(!all));
                }
            }
            _ => result = Value::Null,
        }
    }
    Ok(result)
}
