//! Evaluation.

use super::letter::{LetterCase, mapped};
use super::{Env, Expr, Like, Row, Val, arith, cast, func, like, stored};
use crate::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::exec::damaged;
use crate::types::FormatOptions;

impl Expr {
    /// The expression's value.
    #[inline]
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Val<'a>> {
        // Most expressions are these, and to call the rest takes as long as to evaluate them.
        match self {
            Expr::Column(_) | Expr::Param(_) | Expr::Const(_) => {
                Ok(Val::Borrowed(self.given(env)?))
            }
            _ => self.eval_any(env),
        }
    }

    /// The value, borrowed. One that is computed is put into `held`: most are not, and to make a
    /// [`Val`] of those and take it apart costs more than to find them.
    #[inline]
    pub(crate) fn operand<'h, 'a: 'h>(
        &'a self,
        env: &Env<'a>,
        held: &'h mut Val<'a>,
    ) -> Result<Datum<'h>> {
        match self {
            Expr::Column(_) | Expr::Param(_) | Expr::Const(_) => self.given(env),
            _ => {
                *held = self.eval_any(env)?;
                Ok(held.datum())
            }
        }
    }

    /// Whether it is a column, a parameter or a constant.
    #[inline]
    pub(crate) fn is_given(&self) -> bool {
        matches!(self, Expr::Column(_) | Expr::Param(_) | Expr::Const(_))
    }

    /// The value of a column, a parameter or a constant.
    #[inline]
    pub(crate) fn given<'a>(&'a self, env: &Env<'a>) -> Result<Datum<'a>> {
        match self {
            Expr::Column(column) => self::column(&env.row, *column),
            Expr::Const(value) => Ok(value.as_datum()),
            Expr::Param(number) => match env.params.get(*number) {
                Some(value) => Ok(value.as_datum()),
                None => Err(missing_param(*number)),
            },
            _ => Err(SqlError::internal("an expression that is computed")),
        }
    }

    fn eval_any<'a>(&'a self, env: &Env<'a>) -> Result<Val<'a>> {
        Ok(match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) => return self.eval(env),
            Expr::Compare(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(..)
            | Expr::IsBool(..)
            | Expr::Distinct(..)
            | Expr::In(..)
            | Expr::Among(_)
            | Expr::Like(_) => Val::Borrowed(self.truth(env)?.map_or(Datum::Null, Datum::Bool)),
            Expr::Neg(e) => arith::negate(e.operand(env, &mut Val::null())?)?.into(),
            Expr::Arith(op, pair) => {
                let (mut a, mut b) = (Val::null(), Val::null());
                let (a, b) = (pair.0.operand(env, &mut a)?, pair.1.operand(env, &mut b)?);
                arith::apply(*op, a, b)?.into()
            }
            Expr::Case(whens, otherwise) => {
                for (when, then) in whens {
                    if when.holds(env)? {
                        return then.eval(env);
                    }
                }
                match otherwise {
                    Some(e) => e.eval(env)?,
                    None => Val::Borrowed(Datum::Null),
                }
            }
            Expr::Coalesce(list) => {
                for e in list {
                    let value = e.eval(env)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Val::Borrowed(Datum::Null)
            }
            Expr::Cast(e, ty, explicit) => {
                let value = e.eval(env)?;
                let options = env.facts.settings.format_options();
                match value.datum() {
                    // It may say `now`.
                    Datum::Text(_) if !ty.is_string() => {
                        let options = FormatOptions { now: Some(env.facts.now), ..*options };
                        cast::cast(value, *ty, *explicit, &options)?
                    }
                    _ => cast::cast(value, *ty, *explicit, options)?,
                }
            }
            Expr::Concat(_) => self.joined(env)?.into(),
            Expr::Func(func, args) => func::call(*func, args, env)?,
            Expr::SubPlan(call) => match env.subplans {
                Some(subplans) => subplans.call(call, env)?.into(),
                None => return Err(SqlError::internal("a subplan without a plan")),
            },
            Expr::Subquery(_) => return Err(SqlError::internal("a subquery that was not planned")),
        })
    }

    /// The value of a condition; `None` is unknown.
    pub(crate) fn truth(&self, env: &Env<'_>) -> Result<Option<bool>> {
        // Most conditions are such ones, and this function needs few registers.
        if let Expr::Compare(op, pair) = self
            && let Some(order) = stored::compare(env, &pair.0, &pair.1)
        {
            return Ok(Some(op.holds(order)));
        }
        self.truth_of_any(env)
    }

    #[inline(never)]
    fn truth_of_any(&self, env: &Env<'_>) -> Result<Option<bool>> {
        Ok(match self {
            Expr::Compare(op, pair) => {
                if let Some(a) = pair.0.int(env)
                    && let Some(b) = pair.1.int(env)
                {
                    return Ok(Some(op.holds(a.value.cmp(&b.value))));
                }
                let (mut a, mut b) = (Val::null(), Val::null());
                let (a, b) = (pair.0.operand(env, &mut a)?, pair.1.operand(env, &mut b)?);
                a.sql_cmp(&b).map(|order| op.holds(order))
            }
            Expr::And(list) => all(list, env)?,
            Expr::Or(list) => any(list, env)?,
            Expr::Not(e) => e.truth(env)?.map(|truth| !truth),
            Expr::IsNull(e, not) => Some(e.operand(env, &mut Val::null())?.is_null() != *not),
            Expr::IsBool(e, what, not) => Some((e.truth(env)? == *what) != *not),
            Expr::Distinct(pair, not) => {
                let (mut a, mut b) = (Val::null(), Val::null());
                let (a, b) = (pair.0.operand(env, &mut a)?, pair.1.operand(env, &mut b)?);
                Some(is_distinct(&a, &b) != *not)
            }
            Expr::In(e, list, not) => is_in(e, list, env)?.map(|found| found != *not),
            Expr::Among(among) => among.truth(env)?,
            Expr::Like(like) => self::like(like, env)?,
            _ => truth(&self.operand(env, &mut Val::null())?),
        })
    }

    /// Whether it is true (not false, not NULL).
    pub fn holds(&self, env: &Env<'_>) -> Result<bool> {
        Ok(self.truth(env)? == Some(true))
    }
}

/// A boolean's truth; `None` is unknown.
pub(crate) fn truth(datum: &Datum<'_>) -> Option<bool> {
    match datum {
        Datum::Bool(value) => Some(*value),
        _ => None,
    }
}

#[inline]
pub(super) fn column<'a>(row: &Row<'a>, column: usize) -> Result<Datum<'a>> {
    match row {
        Row::Stored(layout, bytes) => layout.column(bytes, column).map_err(damaged),
        Row::Scanned(layout, bytes, offsets) => {
            layout.column_noting(bytes, offsets, column).map_err(damaged)
        }
        Row::Datums(datums) => match datums.get(column) {
            Some(datum) => Ok(*datum),
            None => Err(SqlError::internal("column out of range")),
        },
        Row::Slots(slots) => slots.column(column),
        Row::None => Err(SqlError::internal("there is no row here")),
    }
}

#[cold]
fn missing_param(number: usize) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${}", number + 1))
}

fn all(list: &[Expr], env: &Env<'_>) -> Result<Option<bool>> {
    let mut result = Some(true);
    for e in list {
        match e.truth(env)? {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
}

fn any(list: &[Expr], env: &Env<'_>) -> Result<Option<bool>> {
    let mut result = Some(false);
    for e in list {
        match e.truth(env)? {
            Some(false) => {}
            Some(true) => return Ok(Some(true)),
            None => result = None,
        }
    }
    Ok(result)
}

fn is_distinct(a: &Datum<'_>, b: &Datum<'_>) -> bool {
    match (a.is_null(), b.is_null()) {
        (true, true) => false,
        (false, false) => a.sql_cmp(b).is_none_or(|order| order.is_ne()),
        _ => true,
    }
}

fn is_in(e: &Expr, list: &[Expr], env: &Env<'_>) -> Result<Option<bool>> {
    if let Expr::Column(column) = e
        && let Some(found) = stored::is_among(env.row, *column, list)
    {
        return Ok(Some(found));
    }
    let mut held = Val::null();
    let value = e.operand(env, &mut held)?;
    let mut result = Some(false);
    for candidate in list {
        match value.sql_cmp(&candidate.operand(env, &mut Val::null())?) {
            Some(order) if order.is_eq() => return Ok(Some(true)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn like(parts: &Like, env: &Env<'_>) -> Result<Option<bool>> {
    let (mut value, mut pattern) = (Val::null(), Val::null());
    let value = parts.value.operand(env, &mut value)?;
    let pattern = parts.pattern.operand(env, &mut pattern)?;
    let escape = parts.escape.as_ref().map(|e| e.eval(env)).transpose()?;
    let (Datum::Text(text), Datum::Text(pattern)) = (value, pattern) else {
        return Ok(None);
    };
    let escaped = match escape.as_ref().map(Val::datum) {
        None => None,
        Some(Datum::Text(escape)) => Some(like::with_backslashes(pattern, escape)?),
        Some(_) => return Ok(None),
    };
    let pattern = escaped.as_deref().unwrap_or(pattern);
    let found = if parts.ignore_case {
        let lower = |s: &str| mapped(s, LetterCase::Lower);
        like::matches(&lower(text), &lower(pattern), Some('\\'))?
    } else {
        like::matches(text, pattern, Some('\\'))?
    };
    Ok(Some(found != parts.negated))
}
