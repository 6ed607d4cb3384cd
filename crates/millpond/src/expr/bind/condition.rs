//! Conditions with words of their own (IS, IN, LIKE, BETWEEN), and CASE.

use sqlparser::ast;

use super::operator::no_operator;
use super::{Binder, Coercion, Scope, Typed};
use crate::DataType;
use crate::error::Result;
use crate::expr::types::{Category, Ty, category, comparable, is_int};
use crate::expr::{Compare, Expr, Like};

impl Binder<'_> {
    pub(super) fn is_bool(
        &mut self,
        e: &ast::Expr,
        what: Option<bool>,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.condition(e, "IS", scope)?;
        Ok(Typed::bool(Expr::IsBool(Box::new(value), what, negated)))
    }

    pub(super) fn distinct(
        &mut self,
        a: &ast::Expr,
        b: &ast::Expr,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let (a, b) = (self.bind(a, scope)?, self.bind(b, scope)?);
        let pair = self.alike(a, b, "IS DISTINCT FROM")?;
        Ok(Typed::bool(Expr::Distinct(Box::new(pair), negated)))
    }

    /// `value BETWEEN low AND high`, whose value is computed twice.
    pub(super) fn between(
        &mut self,
        value: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(value, scope)?;
        let (low, high) = (self.bind(low, scope)?, self.bind(high, scope)?);
        let least = self.compare(Compare::Ge, value.clone(), low)?;
        let most = self.compare(Compare::Le, value, high)?;
        let both = Expr::And(vec![least, most]);
        Ok(Typed::bool(if negated { Expr::Not(Box::new(both)) } else { both }))
    }

    pub(super) fn in_list(
        &mut self,
        expr: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(expr, scope)?;
        let items = list.iter().map(|e| self.bind(e, scope)).collect::<Result<Vec<_>>>()?;
        // All sides meet in one type; integers compare as they are.
        let mut common = value.ty;
        for item in &items {
            common = match (common, item.ty) {
                (Ty::Known(a), Ty::Known(b)) => match comparable(a, b) {
                    Some(_) if is_int(a) && is_int(b) => Ty::Known(a),
                    Some(ty) => Ty::Known(ty),
                    None => return Err(no_operator("=", Ty::Known(a), Ty::Known(b))),
                },
                (Ty::Unknown, ty) | (ty, Ty::Unknown) => ty,
            };
        }
        let ty = match common {
            Ty::Known(ty) => ty,
            Ty::Unknown => DataType::Text,
        };
        let mut convert = |typed: Typed| match typed.ty {
            Ty::Known(own) if is_int(own) && is_int(ty) => Ok(typed.expr),
            _ => self.coerce_operand(typed, ty),
        };
        let value = convert(value)?;
        let items = items.into_iter().map(convert).collect::<Result<Vec<_>>>()?;
        Ok(Typed::bool(Expr::In(Box::new(value), items, negated)))
    }

    pub(super) fn like(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        ignore_case: bool,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(expr, scope)?;
        let pattern = self.bind(pattern, scope)?;
        for side in [&value, &pattern] {
            if let Ty::Known(ty) = side.ty
                && category(ty) != Category::String
            {
                return Err(no_operator("~~", value.ty, pattern.ty));
            }
        }
        // A char(n) is compared without its padding here, as it is stored.
        let value = self.coerce(value, DataType::Text, Coercion::Explicit)?;
        let pattern = self.coerce(pattern, DataType::Text, Coercion::Explicit)?;
        let escape = match escape {
            Some(value) => {
                let literal = self.literal(value)?;
                Some(self.coerce(literal, DataType::Text, Coercion::Explicit)?)
            }
            None => None,
        };
        let like = Like { value, pattern, escape, ignore_case, negated };
        Ok(Typed::bool(Expr::Like(Box::new(like))))
    }

    pub(super) fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let operand = operand.map(|e| self.bind(e, scope)).transpose()?;
        let mut whens = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            whens.push(match &operand {
                Some(operand) => {
                    let value = self.bind(&when.condition, scope)?;
                    self.compare(Compare::Eq, operand.clone(), value)?
                }
                None => self.condition(&when.condition, "CASE/WHEN", scope)?,
            });
            results.push(self.bind(&when.result, scope)?);
        }
        if let Some(otherwise) = otherwise {
            results.push(self.bind(otherwise, scope)?);
        }
        let (mut results, ty) = self.unified(results, "CASE")?;
        let otherwise = (results.len() > whens.len())
            .then(|| results.pop().unwrap_or(Expr::NULL))
            .map(Box::new);
        let whens = whens.into_iter().zip(results).collect();
        Ok(Typed::known(Expr::Case(whens, otherwise), ty))
    }
}
