//! Conditions with words of their own (IS, IN, LIKE, BETWEEN), and CASE.

use millpond_engine::types::other::RECORD;
use sqlparser::ast::{self, Spanned};
use sqlparser::tokenizer::Span;

use super::operator::no_operator;
use super::{Binder, Coercion, Scope, Typed};
use crate::error::Result;
use crate::expr::types::{Category, Ty, category, comparable, is_int};
use crate::expr::{Compare, Expr, Like};
use crate::{DataType, Value};

impl Binder<'_> {
    pub(super) fn is_bool(
        &mut self,
        e: &ast::Expr,
        what: Option<bool>,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let what_text = match (what, negated) {
            (Some(true), false) => "IS TRUE",
            (Some(true), true) => "IS NOT TRUE",
            (Some(false), false) => "IS FALSE",
            (Some(false), true) => "IS NOT FALSE",
            (None, false) => "IS UNKNOWN",
            (None, true) => "IS NOT UNKNOWN",
        };
        let value = self.condition(e, what_text, scope)?;
        Ok(Typed::bool(Expr::IsBool(Box::new(value), what, negated)))
    }

    /// `value IS [NOT] NULL`
    pub(super) fn is_null(
        &mut self,
        e: &ast::Expr,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        if let Some(row) = self.row_is_null(e, negated, scope)? {
            return Ok(row);
        }
        let value = self.bind(e, scope)?;
        if matches!(value.ty, Ty::Known(ty) if ty.oid() == RECORD) {
            return Ok(self.record_is_null(value.expr, negated));
        }
        Ok(Typed::bool(Expr::IsNull(Box::new(self.settled(value)?.0), negated)))
    }

    pub(super) fn distinct(
        &mut self,
        a: &ast::Expr,
        b: &ast::Expr,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        if let Some(rows) = self.row_distinct(a, b, negated, scope)? {
            return Ok(rows);
        }
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
        if let Some(rows) = self.row_in_list(expr, list, negated, scope)? {
            return Ok(rows);
        }
        let all: Vec<&ast::Expr> = list.iter().chain([expr]).collect();
        let end = list.first().map_or_else(Span::empty, Spanned::span);
        let symbol = if negated { "not" } else { "in" };
        self.value_in_list(expr, list, negated, scope)
            .map_err(|error| self.place_operator(error, expr, symbol, end, &all))
    }

    fn value_in_list(
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
        let symbol = match (ignore_case, negated) {
            (false, false) => "~~",
            (false, true) => "!~~",
            (true, false) => "~~*",
            (true, true) => "!~~*",
        };
        let is_bytes = |ty: Ty| matches!(ty, Ty::Known(DataType::Bytea));
        if escape.is_none() && (is_bytes(value.ty) || is_bytes(pattern.ty)) {
            return self.binary_operator(symbol, value, pattern);
        }
        for side in [&value, &pattern] {
            if let Ty::Known(ty) = side.ty
                && category(ty) != Category::String
            {
                return Err(no_operator(symbol, value.ty, pattern.ty));
            }
        }
        let mut value = value;
        self.pad(&mut value)?;
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

    /// `value [NOT] SIMILAR TO pattern [ESCAPE escape]`
    pub(super) fn similar(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(expr, scope)?;
        let mut args = vec![self.bind(pattern, scope)?];
        if let Some(escape) = escape {
            args.push(self.literal(escape)?);
        }
        let pattern = self.call("similar_to_escape", args)?;
        self.binary_operator(if negated { "!~" } else { "~" }, value, pattern)
    }

    /// `value IS [NOT] [form] NORMALIZED`
    pub(super) fn is_normalized(
        &mut self,
        expr: &ast::Expr,
        form: Option<&ast::NormalizationForm>,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(expr, scope)?;
        let form = form.map_or_else(|| "NFC".to_owned(), ToString::to_string);
        let form = Typed::known(Expr::Const(Value::Text(form)), DataType::Text);
        let is_normal = self.call("is_normalized", vec![value, form])?;
        Ok(match negated {
            true => Typed::bool(Expr::Not(Box::new(is_normal.expr))),
            false => is_normal,
        })
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
        // ELSE comes first where the types are settled.
        if let Some(otherwise) = otherwise {
            results.insert(0, self.bind(otherwise, scope)?);
        }
        let (mut results, ty) = self.unified(results, "CASE")?;
        let otherwise = (results.len() > whens.len()).then(|| results.remove(0)).map(Box::new);
        let whens = whens.into_iter().zip(results).collect();
        Ok(Typed::known(Expr::Case(whens, otherwise), ty))
    }
}
