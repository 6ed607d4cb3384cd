//! Arithmetic on two values of one type, with PostgreSQL's overflow rules.

use super::{Arith, func};
use crate::error::{Result, SqlError, SqlState};
use crate::types::in_date_range;
use crate::{Datum, Value};

#[cold]
fn out_of_range(what: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{what} out of range"))
}

#[cold]
fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[cold]
fn no_operator(op: Arith) -> SqlError {
    SqlError::internal(format!("{op:?} has no implementation for these types"))
}

macro_rules! integer {
    ($op:expr, $a:expr, $b:expr, $int:ty, $name:literal, $variant:ident) => {{
        let (a, b): ($int, $int) = ($a, $b);
        let result = match $op {
            Arith::Add => a.checked_add(b),
            Arith::Sub => a.checked_sub(b),
            Arith::Mul => a.checked_mul(b),
            Arith::Div | Arith::Rem if b == 0 => return Err(division_by_zero()),
            Arith::Div => a.checked_div(b),
            // The smallest integer modulo -1 is 0, not an overflow.
            Arith::Rem => Some(a.wrapping_rem(b)),
            Arith::BitAnd => Some(a & b),
            Arith::BitOr => Some(a | b),
            Arith::BitXor => Some(a ^ b),
            Arith::ShiftLeft => Some(a.wrapping_shl(b as u32)),
            Arith::ShiftRight => Some(a.wrapping_shr(b as u32)),
            Arith::Power => return Err(no_operator($op)),
        };
        Value::$variant(result.ok_or_else(|| out_of_range($name))?)
    }};
}

fn float(op: Arith, a: f64, b: f64) -> Result<f64> {
    Ok(match op {
        Arith::Add => a + b,
        Arith::Sub => a - b,
        Arith::Mul => a * b,
        Arith::Div if b == 0.0 && !a.is_nan() => return Err(division_by_zero()),
        Arith::Div => a / b,
        Arith::Power => func::power(a, b)?,
        _ => return Err(no_operator(op)),
    })
}

fn check_float(op: Arith, result: f64, a: f64, b: f64) -> Result<()> {
    if result.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(func::overflow());
    }
    if result == 0.0
        && matches!(op, Arith::Mul | Arith::Div)
        && a != 0.0
        && b != 0.0
        && b.is_finite()
    {
        return Err(func::underflow());
    }
    Ok(())
}

/// Applies an operator. NULL gives NULL.
pub(crate) fn apply(op: Arith, a: Datum<'_>, b: Datum<'_>) -> Result<Value> {
    Ok(match (a, b) {
        (Datum::Null, _) | (_, Datum::Null) => Value::Null,
        (Datum::Int4(a), Datum::Int4(b)) => integer!(op, a, b, i32, "integer", Int4),
        (Datum::Int8(a), Datum::Int8(b)) => integer!(op, a, b, i64, "bigint", Int8),
        (Datum::Int2(a), Datum::Int2(b)) => integer!(op, a, b, i16, "smallint", Int2),
        (Datum::Float8(a), Datum::Float8(b)) => {
            let result = float(op, a, b)?;
            check_float(op, result, a, b)?;
            Value::Float8(result)
        }
        (Datum::Float4(a), Datum::Float4(b)) => {
            let result = float(op, a.into(), b.into())? as f32;
            check_float(op, result.into(), a.into(), b.into())?;
            Value::Float4(result)
        }
        (Datum::Numeric(a), Datum::Numeric(b)) => Value::Numeric(match op {
            Arith::Add => a.add(b),
            Arith::Sub => a.sub(b),
            Arith::Mul => a.mul(b),
            Arith::Div => a.div(b),
            Arith::Rem => a.rem(b),
            _ => return Err(no_operator(op)),
        }?),
        // Dates count days; what the binder lets through is date + integer, date - integer, date -
        // date.
        (Datum::Date(a), Datum::Int4(b)) => date(op, a, b)?,
        (Datum::Int4(a), Datum::Date(b)) if op == Arith::Add => date(op, b, a)?,
        (Datum::Date(i32::MAX | i32::MIN), Datum::Date(_))
        | (Datum::Date(_), Datum::Date(i32::MAX | i32::MIN))
            if op == Arith::Sub =>
        {
            return Err(SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                "cannot subtract infinite dates",
            ));
        }
        (Datum::Date(a), Datum::Date(b)) if op == Arith::Sub => {
            Value::Int4(a.checked_sub(b).ok_or_else(|| out_of_range("integer"))?)
        }
        _ => return Err(no_operator(op)),
    })
}

fn date(op: Arith, date: i32, days: i32) -> Result<Value> {
    if date == i32::MAX || date == i32::MIN {
        return Ok(Value::Date(date));
    }
    let result = match op {
        Arith::Add => date.checked_add(days),
        _ => date.checked_sub(days),
    };
    match result {
        Some(date) if in_date_range(date.into()) => Ok(Value::Date(date)),
        _ => Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range")),
    }
}

/// The value with its sign changed.
pub(super) fn negate(a: Datum<'_>) -> Result<Value> {
    Ok(match a {
        Datum::Null => Value::Null,
        Datum::Int2(a) => Value::Int2(a.checked_neg().ok_or_else(|| out_of_range("smallint"))?),
        Datum::Int4(a) => Value::Int4(a.checked_neg().ok_or_else(|| out_of_range("integer"))?),
        Datum::Int8(a) => Value::Int8(a.checked_neg().ok_or_else(|| out_of_range("bigint"))?),
        Datum::Float4(a) => Value::Float4(-a),
        Datum::Float8(a) => Value::Float8(-a),
        Datum::Numeric(a) => Value::Numeric(a.neg()),
        _ => return Err(no_operator(Arith::Sub)),
    })
}
