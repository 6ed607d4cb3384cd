//! Conditions with words of their own (IS, IN, LIKE, BETWEEN), and CASE.

use millpond_syntax::tree::{self, AExpr, AExprKind, BoolTestType, CaseExpr, Name, Node};
use millpond_types::other::RECORD;

use super::call::odd_one;
use super::operator::{no_operator, symbol_of};
use super::{Binder, Coercion, Scope, Typed};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::catalog::Param;
use crate::expr::types::{Category, Ty, category, comparable, is_int, operator_type, unmodified};
use crate::expr::{Compare, Expr, Func, Like};

impl Binder<'_> {
    pub(super) fn is_bool(
        &mut self,
        e: &tree::Expr,
        test: BoolTestType,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let (what, negated, what_text) = match test {
            BoolTestType::IsTrue => (Some(true), false, "IS TRUE"),
            BoolTestType::IsNotTrue => (Some(true), true, "IS NOT TRUE"),
            BoolTestType::IsFalse => (Some(false), false, "IS FALSE"),
            BoolTestType::IsNotFalse => (Some(false), true, "IS NOT FALSE"),
            BoolTestType::IsUnknown => (None, false, "IS UNKNOWN"),
            BoolTestType::IsNotUnknown => (None, true, "IS NOT UNKNOWN"),
        };
        let value = self.condition(e, what_text, scope)?;
        Ok(Typed::bool(Expr::IsBool(Box::new(value), what, negated)))
    }

    /// `value IS [NOT] NULL`
    pub(super) fn is_null(
        &mut self,
        e: &tree::Expr,
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
        a: &tree::Expr,
        b: &tree::Expr,
        negated: bool,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let literals = [a, b];
        let placed = |binder: &Self, error| binder.place_operator(error, at, &literals);
        match self.row_distinct(a, b, negated, scope) {
            Ok(None) => {}
            Ok(Some(rows)) => return Ok(rows),
            Err(error) => return Err(placed(self, error)),
        }
        let (a, b) = (self.bind(a, scope)?, self.bind(b, scope)?);
        let pair = self.alike(a, b, "=").map_err(|error| placed(self, error))?;
        Ok(Typed::bool(Expr::Distinct(Box::new(pair), negated)))
    }

    /// `value [NOT] BETWEEN [SYMMETRIC] low AND high`, whose value is computed twice or more.
    pub(super) fn between(
        &mut self,
        kind: AExprKind,
        value: &tree::Expr,
        bounds: &[tree::Expr],
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let [low, high] = bounds else { return Err(SqlError::internal("BETWEEN without bounds")) };
        let literals = [value, low, high];
        let value = self.bind(value, scope)?;
        let (low, high) = (self.bind(low, scope)?, self.bind(high, scope)?);
        let is_symmetric = matches!(kind, AExprKind::BetweenSym | AExprKind::NotBetweenSym);
        let mut within = |low: Typed, high: Typed| {
            let least = self.compare(Compare::Ge, value.clone(), low)?;
            let most = self.compare(Compare::Le, value.clone(), high)?;
            Ok(Expr::And(vec![least, most]))
        };
        let mut both = within(low.clone(), high.clone());
        if is_symmetric {
            let other = within(high, low);
            both = both.and_then(|both| Ok(Expr::Or(vec![both, other?])));
        }
        let both = both.map_err(|error| self.place_operator(error, at, &literals))?;
        let negated = matches!(kind, AExprKind::NotBetween | AExprKind::NotBetweenSym);
        Ok(Typed::bool(if negated { both.negated() } else { both }))
    }

    /// `value LIKE pattern [ESCAPE escape]`, and with the other words for it.
    pub(super) fn like(
        &mut self,
        e: &AExpr,
        value: &tree::Expr,
        pattern: &tree::Expr,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let (pattern, escape) = match &pattern.node {
            Node::FuncCall(call) if is_escaped(&call.funcname) => match call.args.as_slice() {
                [pattern, escape] => (pattern, Some(escape)),
                _ => (pattern, None),
            },
            _ => (pattern, None),
        };
        let literals = [pattern, value];
        self.like_pattern(e, value, pattern, escape, scope)
            .map_err(|error| self.place_operator(error, at, &literals))
    }

    fn like_pattern(
        &mut self,
        e: &AExpr,
        value: &tree::Expr,
        pattern: &tree::Expr,
        escape: Option<&tree::Expr>,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let symbol = symbol_of(&e.name)?;
        let (ignore_case, negated) = (symbol.ends_with('*'), symbol.starts_with('!'));
        let value = self.bind(value, scope)?;
        let pattern = self.bind(pattern, scope)?;
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
            Some(escape) => {
                let escape = self.bind(escape, scope)?;
                Some(self.coerce(escape, DataType::Text, Coercion::Explicit)?)
            }
            None => None,
        };
        let like = Like { value, pattern, escape, ignore_case, negated };
        Ok(Typed::bool(Expr::Like(Box::new(like))))
    }

    pub(super) fn case(&mut self, case: &CaseExpr, scope: &dyn Scope) -> Result<Typed> {
        let CaseExpr { arg: operand, args: conditions, defresult: otherwise } = case;
        let mut operand = operand.as_ref().map(|e| self.bind(e, scope)).transpose()?;
        // A literal does not take the type of what it is compared with.
        if let Some(literal) = operand.take_if(|operand| operand.ty == Ty::Unknown) {
            let text = self.coerce(literal, DataType::Text, Coercion::Implicit)?;
            operand = Some(Typed::known(text, DataType::Text));
        }
        let mut whens = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            whens.push(match &operand {
                Some(operand) => {
                    let value = self.bind(&when.expr, scope)?;
                    self.compare(Compare::Eq, operand.clone(), value)
                        .map_err(|error| self.place_operator(error, when.location, &[&when.expr]))?
                }
                None => self.condition(&when.expr, "CASE/WHEN", scope)?,
            });
            results.push(self.bind(&when.result, scope)?);
        }
        // ELSE comes first where the types are settled.
        if let Some(otherwise) = otherwise {
            results.insert(0, self.bind(otherwise, scope)?);
        }
        let types: Vec<Ty> = results.iter().map(|result| result.ty).collect();
        let written: Vec<&tree::Expr> =
            otherwise.iter().chain(conditions.iter().map(|when| &when.result)).collect();
        let (mut results, ty) =
            self.unified(results, "CASE").map_err(|mut error| match odd_one(&types) {
                Some(odd) => {
                    if error.sqlstate == SqlState::CANNOT_COERCE {
                        let is_else = odd == 0 && otherwise.is_some();
                        let part = if is_else { "CASE/ELSE" } else { "CASE/WHEN" };
                        error.message = error.message.replacen("CASE", part, 1);
                    }
                    self.place_at(error, written[odd])
                }
                None => self.place_literal(error, &written),
            })?;
        let otherwise = (results.len() > whens.len()).then(|| results.remove(0)).map(Box::new);
        let ty = if otherwise.is_some() { ty } else { unmodified(ty) };
        let whens = whens.into_iter().zip(results).collect();
        Ok(Typed::known(Expr::Case(whens, otherwise), ty))
    }

    /// `NULLIF(a, b)` is `a` in the type in which it is compared with `b`.
    pub(super) fn null_if(
        &mut self,
        a: &tree::Expr,
        b: &tree::Expr,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let literals = [a, b];
        let (a, b) = (self.bind(a, scope)?, self.bind(b, scope)?);
        let func = Func::exactly("nullif", &[Param::AnyElement; 2])?;
        let compared = match (a.ty, b.ty) {
            (Ty::Known(x), Ty::Known(y)) => comparable(x, y),
            _ => None,
        };
        if let Some(ty) = compared {
            let own = operator_type(left_of_equality(a.ty, b.ty).unwrap_or(ty));
            let (a, b) = self.alike(a, b, "=")?;
            let value = Typed::known(Expr::Func(func, vec![a, b]), ty);
            let value = self.coerce(value, own, Coercion::Explicit)?;
            return Ok(Typed::known(value, own));
        }
        if let (Ty::Known(ty), Ty::Unknown) | (Ty::Unknown, Ty::Known(ty)) = (a.ty, b.ty)
            && comparable(ty, ty).is_none()
        {
            return Err(self.place_operator(no_operator("=", a.ty, b.ty), at, &literals));
        }
        let as_compared = |side: Typed| match side.ty {
            Ty::Known(ty) => Typed::known(side.expr, operator_type(ty)),
            Ty::Unknown => side,
        };
        let unified = self.unified(vec![as_compared(a), as_compared(b)], "NULLIF");
        let (list, ty) = unified.map_err(|error| self.place_operator(error, at, &literals))?;
        Ok(Typed::known(Expr::Func(func, list), ty))
    }
}

/// The type that the left side of an equality keeps, where PostgreSQL has an operator of these two
/// types.
fn left_of_equality(a: Ty, b: Ty) -> Option<DataType> {
    let (Ty::Known(a), Ty::Known(b)) = (a, b) else { return None };
    let is_date =
        |ty| matches!(ty, DataType::Date | DataType::Timestamp(_) | DataType::Timestamptz(_));
    let is_oid = |ty: DataType| ty == DataType::Oid;
    match (a, b) {
        (DataType::Char(_), DataType::Char(_) | DataType::Varchar(_)) => Some(a),
        // A `real` is compared as it is, with whatever number.
        (DataType::Float4, _) => Some(DataType::Float4),
        _ if is_int(a) && is_int(b) && !is_oid(a) && !is_oid(b) => Some(a),
        _ if is_date(a) && is_date(b) => Some(a.base()),
        (DataType::Name, _) => Some(DataType::Name),
        _ => None,
    }
}

/// Whether a pattern is given an escape by this function.
fn is_escaped(name: &[Name]) -> bool {
    matches!(name, [schema, name] if &**schema == "pg_catalog" && &**name == "like_escape")
}
