//! Functions of one number.

use super::Func;
use crate::error::{Result, SqlError, SqlState};
use crate::{Datum, Numeric, Value};

pub(super) fn rounding(func: Func, number: Datum<'_>) -> Result<Value> {
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
        (Func::Round, Datum::Numeric(n)) => Value::Numeric(n.round(0)?),
        (Func::Sign, Datum::Numeric(n)) => Value::Numeric(Numeric::from(i64::from(n.signum()))),
        (Func::Ceil | Func::Floor | Func::Trunc, Datum::Numeric(n)) => {
            let rounded = n.round(0)?;
            let one = Numeric::from(1i64);
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
                rounded.as_ref().add(one.as_ref())?
            } else if down {
                rounded.as_ref().sub(one.as_ref())?
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
