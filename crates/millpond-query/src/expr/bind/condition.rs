//! Conditions with words of their own (IS, IN, LIKE, BETWEEN), and CASE.

use std::iter;

use millpond_syntax::tree::{self, AExpr, AExprKind, BoolTestType, CaseExpr, Name, Node};
use millpond_types::other::RECORD;

use super::call::odd_one;
use super::coerce::trimmed;
use super::operator::{no_operator, symbol_of};
use super::{Binder, Coercion, Scope, Typed};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::catalog::Param;
use crate::expr::types::{
    Category, Ty, category, comparable, is_int, unify, unmodified, with_operators,
};
use crate::expr::{Compare, Expr, Func, Like, one_of};

/// The items of IN as PostgreSQL compares with them. Several without a column are an array, which
/// comes first. So a later item that fails is not computed if one of these is equal.
fn in_order(items: Vec<Expr>) -> Vec<Expr> {
    let has_column = |e: &Expr| {
        let mut found = false;
        e.walk_all(&mut |part| found |= matches!(part, Expr::Column(_)));
        found
    };
    let fixed = items.iter().filter(|e| !has_column(e)).count();
    if fixed < 2 || fixed == items.len() {
        return items;
    }
    let (mut first, rest): (Vec<Expr>, Vec<Expr>) = items.into_iter().partition(|e| !has_column(e));
    first.extend(rest);
    first
}

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

    fn value_in_list(
        &mut self,
        expr: &tree::Expr,
        list: &[tree::Expr],
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let value = self.bind(expr, scope)?;
        let items = list.iter().map(|e| self.bind(e, scope)).collect::<Result<Vec<_>>>()?;
        let mut items = self.as_elements(value.ty, items)?;
        if items.len() == 1
            && let Some(item) = items.pop()
        {
            let (value, item) = self.alike(value, item, "=")?;
            return Ok(Typed::bool(is_in(value, vec![item], negated)));
        }
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
            Ty::Known(ty) => {
                comparable(ty, ty).ok_or_else(|| no_operator("=", common, Ty::Unknown))?;
                with_operators(ty)
            }
            Ty::Unknown => DataType::Text,
        };
        let mut convert = |typed: Typed| match typed.ty {
            Ty::Known(own) if is_int(own) && is_int(ty) => Ok(typed.expr),
            _ => self.in_order(typed, ty),
        };
        let value = convert(value)?;
        let items = items.into_iter().map(convert).collect::<Result<Vec<_>>>()?;
        Ok(Typed::bool(is_in(value, items, negated)))
    }

    /// Several items without a column are an array for PostgreSQL, of the type that they and the
    /// value have in common. So a `real` is compared with numbers as `real`, and a `char(n)` with
    /// texts without their trailing spaces. A single item is compared as it is.
    fn as_elements(&mut self, value: Ty, items: Vec<Typed>) -> Result<Vec<Typed>> {
        let elements = || items.iter().filter(|item| !item.expr.has_column());
        let common = unify(iter::once(value).chain(elements().map(|item| item.ty)));
        let Ok(Ty::Known(ty)) = common else { return Ok(items) };
        if elements().count() < 2 {
            return Ok(items);
        }
        let mut element = |item: Typed| match (ty, item.ty) {
            (DataType::Float4, Ty::Known(own)) if own != ty && !item.expr.has_column() => {
                let expr = self.coerce(item, ty, Coercion::Implicit)?;
                Ok(Typed::known(expr, ty))
            }
            (DataType::Char(_), Ty::Known(DataType::Text | DataType::Varchar(_)))
                if !item.expr.has_column() =>
            {
                Ok(Typed::known(trimmed(item.expr)?, ty))
            }
            (DataType::Char(_) | DataType::Varchar(_), Ty::Unknown) => {
                Ok(Typed::known(self.coerce_operand(item, ty)?, ty))
            }
            _ => Ok(item),
        };
        items.into_iter().map(&mut element).collect()
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
            let own = with_operators(left_of_equality(a.ty, b.ty).unwrap_or(ty));
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
            Ty::Known(ty) => Typed::known(side.expr, with_operators(ty)),
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

/// `value [NOT] IN (items)`. With columns among the items it is an OR of equalities, each of which
/// an index may serve or a join may use.
fn is_in(value: Expr, items: Vec<Expr>, negated: bool) -> Expr {
    if negated || value.has_subquery() || value.is_volatile() || !items.iter().any(Expr::has_column)
    {
        return Expr::In(Box::new(value), in_order(items), negated);
    }
    let (columns, others): (Vec<Expr>, Vec<Expr>) =
        in_order(items).into_iter().partition(Expr::has_column);
    let mut sides = Vec::with_capacity(columns.len() + 1);
    if !others.is_empty() {
        sides.push(Expr::In(Box::new(value.clone()), others, false));
    }
    let equal = |item| Expr::Compare(Compare::Eq, Box::new((value.clone(), item)));
    sides.extend(columns.into_iter().map(equal));
    one_of(sides)
}
