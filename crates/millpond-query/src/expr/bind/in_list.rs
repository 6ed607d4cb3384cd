//! `value [NOT] IN (items)`.

use std::iter;

use millpond_syntax::tree;

use super::coerce::trimmed;
use super::operator::no_operator;
use super::{Binder, Coercion, Scope, Typed};
use crate::DataType;
use crate::error::Result;
use crate::expr::types::{Ty, comparable, is_int, operator_type, unify};
use crate::expr::{Compare, Expr, one_of};

impl Binder<'_> {
    pub(super) fn in_list(
        &mut self,
        expr: &tree::Expr,
        list: &[tree::Expr],
        negated: bool,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let rows = self.row_in_list(expr, list, negated, scope);
        if let Some(rows) = rows.map_err(|error| self.place_operator(error, at, &[]))? {
            return Ok(rows);
        }
        let all: Vec<&tree::Expr> = list.iter().chain([expr]).collect();
        self.value_in_list(expr, list, negated, scope)
            .map_err(|error| self.place_operator(error, at, &all))
    }

    /// PostgreSQL makes an array of several items without a column, and compares with it first. An
    /// item behind them that fails is not computed if one of them is equal. It compares each other
    /// item by itself, so an index may serve it, or a join.
    fn value_in_list(
        &mut self,
        expr: &tree::Expr,
        list: &[tree::Expr],
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(expr, scope)?;
        let items = list.iter().map(|e| self.bind(e, scope)).collect::<Result<Vec<_>>>()?;
        let is_fixed = |item: &Typed| !item.expr.has_column();
        let (elements, others) = match items.iter().filter(|item| is_fixed(item)).count() {
            0 | 1 => (Vec::new(), items),
            _ => items.into_iter().partition(is_fixed),
        };
        let sides = others.len() + usize::from(!elements.is_empty());
        // The value is computed once, and all items meet in one type.
        if sides > 1 && (value.expr.has_subquery() || value.expr.is_volatile()) {
            let items = elements.into_iter().chain(others).collect();
            return Ok(Typed::bool(self.in_elements(value, items, negated)?));
        }
        let equal = if negated { Compare::Ne } else { Compare::Eq };
        let mut sides = Vec::with_capacity(sides);
        if !elements.is_empty() {
            sides.push(self.in_elements(value.clone(), elements, negated)?);
        }
        for item in others {
            let has_column = item.expr.has_column();
            let (value, item) = self.alike(value.clone(), item, "=")?;
            sides.push(match has_column {
                false => Expr::In(Box::new(value), vec![item], negated),
                true => Expr::Compare(equal, Box::new((value, item))),
            });
        }
        Ok(Typed::bool(match negated && sides.len() > 1 {
            true => Expr::And(sides),
            false => one_of(sides),
        }))
    }

    /// `value IN (items)`, where all of them meet in one type.
    fn in_elements(&mut self, value: Typed, items: Vec<Typed>, negated: bool) -> Result<Expr> {
        let items = self.as_elements(value.ty, items)?;
        // Integers compare as they are.
        let mut common = value.ty;
        for item in &items {
            common = match (common, item.ty) {
                (Ty::Known(a), Ty::Known(b)) => match comparable(a, b) {
                    Some(ty) => Ty::Known(ty),
                    None => return Err(no_operator("=", Ty::Known(a), Ty::Known(b))),
                },
                (Ty::Unknown, ty) | (ty, Ty::Unknown) => ty,
            };
        }
        let ty = match common {
            Ty::Known(ty) => {
                comparable(ty, ty).ok_or_else(|| no_operator("=", common, Ty::Unknown))?;
                operator_type(ty)
            }
            Ty::Unknown => DataType::Text,
        };
        let mut convert = |typed: Typed| match typed.ty {
            Ty::Known(own) if is_int(own) && is_int(ty) => Ok(typed.expr),
            _ => self.in_order(typed, ty),
        };
        let value = convert(value)?;
        let items = items.into_iter().map(convert).collect::<Result<Vec<_>>>()?;
        Ok(Expr::In(Box::new(value), items, negated))
    }

    /// Elements have the type that they and the value have in common. So a `real` is compared with
    /// numbers as `real`, and a `char(n)` with texts without their trailing spaces.
    fn as_elements(&mut self, value: Ty, items: Vec<Typed>) -> Result<Vec<Typed>> {
        let common = unify(iter::once(value).chain(items.iter().map(|item| item.ty)));
        let Ok(Ty::Known(ty)) = common else { return Ok(items) };
        let mut element = |item: Typed| match (ty, item.ty) {
            (DataType::Float4, Ty::Known(own)) if own != ty => {
                let expr = self.coerce(item, ty, Coercion::Implicit)?;
                Ok(Typed::known(expr, ty))
            }
            (DataType::Char(_), Ty::Known(DataType::Text | DataType::Varchar(_))) => {
                Ok(Typed::known(trimmed(item.expr)?, ty))
            }
            (DataType::Varchar(_), Ty::Known(DataType::Char(_))) => Ok(Typed::known(item.expr, ty)),
            (DataType::Char(_) | DataType::Varchar(_), Ty::Unknown) => {
                Ok(Typed::known(self.coerce_operand(item, ty)?, ty))
            }
            _ => Ok(item),
        };
        items.into_iter().map(&mut element).collect()
    }
}
