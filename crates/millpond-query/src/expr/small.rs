//! Decimal numbers of expressions over columns, constants, `+ - *` and rounding, without a [`Val`]
//! for each part.
//!
//! Most such numbers fit a machine's integer (see [`Small`]). To store each step's result as a
//! value and to read it again takes longer than the arithmetic. What is NULL, does not fit or is of
//! another type is no result here: [`Expr::eval`] says what it is.
//!
//! [`Val`]: super::Val

use millpond_types::NumericRef;
use millpond_types::numeric::Small;

use super::{Arith, Env, Expr};
use crate::error::Result;
use crate::{DataType, Value};

impl Expr {
    /// The expression's value, if it is a decimal number that is found this way. To be asked of
    /// whole expressions, as [`Expr::int`].
    #[inline]
    pub(crate) fn small(&self, env: &Env<'_>) -> Option<Small> {
        match self {
            Expr::Column(column) => small_column(env, *column),
            Expr::Const(Value::Numeric(value)) => value.as_ref().small(),
            Expr::Arith(op, pair) => computed(*op, pair, env),
            Expr::Func(func, args) => {
                let compute = func.of_small()?;
                let second = match args.get(1) {
                    None => 0,
                    Some(Expr::Const(Value::Int4(second))) => *second,
                    Some(_) => return None,
                };
                compute(args.first()?.small(env)?, second)
            }
            _ => None,
        }
    }

    /// The expression that CASE comes to, so that its value can be asked for as of any other.
    #[inline]
    pub(crate) fn chosen<'e>(&'e self, env: &Env<'_>) -> Result<&'e Expr> {
        let mut chosen = self;
        while let Expr::Case(whens, otherwise) = chosen {
            let mut found = otherwise.as_deref().unwrap_or(&Expr::NULL);
            for (when, then) in whens {
                if when.holds(env)? {
                    found = then;
                    break;
                }
            }
            chosen = found;
        }
        Ok(chosen)
    }
}

fn computed(op: Arith, pair: &(Expr, Expr), env: &Env<'_>) -> Option<Small> {
    let a = pair.0.small(env)?;
    let b = pair.1.small(env)?;
    match op {
        Arith::Add => a.checked_add(b),
        Arith::Sub => a.checked_sub(b),
        Arith::Mul => a.checked_mul(b),
        _ => None,
    }
}

fn small_column(env: &Env<'_>, column: usize) -> Option<Small> {
    match env.row.stored_value(column)? {
        (DataType::Numeric { .. }, bytes) => NumericRef::from_bytes(bytes)?.small(),
        _ => None,
    }
}
