//! Operators of numbers within a path.

use millpond_types::{Numeric, NumericRef};

use super::eval::{Evaluation, Found, Result, Scope, Stop, soft};
use super::item::Item;
use crate::error::SqlState;
use crate::types::jsonpath::{Arith, Expr};

impl<'a> Evaluation<'_, 'a> {
    pub(super) fn sign(
        &self,
        minus: bool,
        inner: &Expr,
        scope: &Scope<'a>,
        found: &mut Found<'_, 'a>,
    ) -> Result<()> {
        for item in self.operand(inner, scope)? {
            let Some(number) = item.number() else {
                let sign = if minus { '-' } else { '+' };
                return Err(soft(
                    SqlState::SQL_JSON_NUMBER_NOT_FOUND,
                    format!("operand of unary jsonpath operator {sign} is not a numeric value"),
                ));
            };
            found.push(Item::Number(if minus { number.neg() } else { number.to_owned() }))?;
        }
        Ok(())
    }

    pub(super) fn arith(
        &self,
        op: Arith,
        left: &Expr,
        right: &Expr,
        scope: &Scope<'a>,
    ) -> Result<Numeric> {
        let (left, right) = (self.operand(left, scope)?, self.operand(right, scope)?);
        let (left, right) =
            (single_number(&left, "left", op)?, single_number(&right, "right", op)?);
        let computed = match op {
            Arith::Add => left.add(right),
            Arith::Sub => left.sub(right),
            Arith::Mul => left.mul(right),
            Arith::Div => left.div(right),
            Arith::Mod => left.rem(right),
        };
        computed.map_err(|error| Stop::Soft(error.into()))
    }
}

fn single_number<'i>(items: &'i [Item<'_>], side: &str, op: Arith) -> Result<NumericRef<'i>> {
    let number = match items {
        [item] => item.number(),
        _ => None,
    };
    number.ok_or_else(|| {
        soft(
            SqlState::SINGLETON_SQL_JSON_ITEM_REQUIRED,
            format!(
                "{side} operand of jsonpath operator {} is not a single numeric value",
                op.text()
            ),
        )
    })
}
