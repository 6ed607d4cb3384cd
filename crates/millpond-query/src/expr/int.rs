//! Integers of expressions over columns, constants and `+ - * / %`, without a [`Val`] for each
//! part.
//!
//! A value of any type is built and taken apart in memory at each step. That takes longer than the
//! arithmetic of integers, which fits into registers. What is NULL, out of range, divided by zero
//! or of another type is no result here: [`Expr::eval`] says what it is.
//!
//! [`Val`]: super::Val

use millpond_types::{Int, IntWidth};

use super::{Arith, Env, Expr, Row};
use crate::{DataType, Value};

impl Expr {
    /// The expression's value, if it is an integer that is found this way. To be asked of whole
    /// expressions: it would take long to ask at each level of nested ones.
    #[inline]
    pub(crate) fn int(&self, env: &Env<'_>) -> Option<Int> {
        match self {
            Expr::Column(column) => of_column(env.row, *column),
            Expr::Const(value) => of_value(value),
            Expr::Param(number) => of_value(env.params.get(*number)?),
            Expr::Arith(..) | Expr::Cast(..) => self.computed_int(env),
            _ => None,
        }
    }

    fn computed_int(&self, env: &Env<'_>) -> Option<Int> {
        match self {
            Expr::Arith(op, pair) => {
                let a = pair.0.int(env)?;
                compute(*op, a, pair.1.int(env)?)
            }
            Expr::Cast(e, DataType::Int8, _) => {
                Some(Int { value: e.int(env)?.value, width: IntWidth::Eight })
            }
            _ => None,
        }
    }
}

/// A column that is an integer.
#[inline]
pub(crate) fn of_column(row: Row<'_>, column: usize) -> Option<Int> {
    match row {
        Row::Stored(layout, bytes) => layout.int(bytes, column),
        Row::Scanned(layout, bytes, offsets) => layout.int_noting(bytes, offsets, column),
        Row::Slots(slots) => slots.int(column),
        Row::Datums(_) | Row::None => None,
    }
}

/// A value that is an integer.
#[inline]
pub(crate) fn of_value(value: &Value) -> Option<Int> {
    let (value, width) = match *value {
        Value::Int2(value) => (value.into(), IntWidth::Two),
        Value::Int4(value) => (value.into(), IntWidth::Four),
        Value::Int8(value) => (value, IntWidth::Eight),
        _ => return None,
    };
    Some(Int { value, width })
}

#[inline]
fn compute(op: Arith, a: Int, b: Int) -> Option<Int> {
    if a.width != b.width {
        return None;
    }
    let (width, a, b) = (a.width, a.value, b.value);
    let value = match op {
        Arith::Add => a.checked_add(b),
        Arith::Sub => a.checked_sub(b),
        Arith::Mul => a.checked_mul(b),
        Arith::Div => a.checked_div(b),
        Arith::Rem => a.checked_rem(b),
        _ => None,
    }?;
    let fits = match width {
        IntWidth::Two => i16::try_from(value).is_ok(),
        IntWidth::Four => i32::try_from(value).is_ok(),
        IntWidth::Eight => true,
    };
    fits.then_some(Int { value, width })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_out_of_range_are_left_to_the_evaluator() {
        let four = |value| Int { value, width: IntWidth::Four };
        let eight = |value| Int { value, width: IntWidth::Eight };
        for (op, a, b, expected) in [
            (Arith::Add, four(2), four(3), Some(four(5))),
            (Arith::Sub, four(2), four(3), Some(four(-1))),
            (Arith::Mul, four(1 << 20), four(1 << 20), None),
            (Arith::Mul, eight(1 << 20), eight(1 << 20), Some(eight(1 << 40))),
            (Arith::Div, four(-7), four(2), Some(four(-3))),
            (Arith::Rem, four(-7), four(2), Some(four(-1))),
            (Arith::Rem, four(7), four(0), None),
            (Arith::Div, four(i32::MIN.into()), four(-1), None),
            (Arith::Div, eight(i64::MIN), eight(-1), None),
            (Arith::Rem, eight(i64::MIN), eight(-1), None),
            (Arith::Add, four(1), eight(1), None),
            (Arith::BitAnd, four(1), four(1), None),
        ] {
            assert_eq!(compute(op, a, b), expected, "{op:?} {a:?} {b:?}");
        }
    }
}
