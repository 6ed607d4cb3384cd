//! Queries within expressions: EXISTS, IN, ANY, ALL, and one value.

use std::cmp::Ordering;
use std::sync::Arc;

use sqlparser::ast::{self, BinaryOperator, Spanned};

use super::record::field_call;
use super::row::parts_of_row;
use super::{Binder, Coercion, Scope, Typed, beyond};
use crate::DataType;
use crate::Value;
use crate::analyze::tree::{Body, Query, Subquery, SubqueryKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::types::{Ty, comparable, is_int};
use crate::expr::{Compare, Expr};
use crate::sink::ColumnDesc;

fn subquery(kind: SubqueryKind, query: Query) -> Expr {
    Expr::Subquery(Box::new(Subquery { kind, query: Arc::new(query) }))
}

fn too_many(what: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("subquery {what}"))
}

impl Binder<'_> {
    /// A query whose only value is wanted.
    pub(super) fn scalar(&mut self, written: &ast::Query, scope: &dyn Scope) -> Result<Typed> {
        let query = scope.query(self, written)?;
        match query.columns.as_slice() {
            [one] => {
                let ty = one.ty;
                Ok(Typed::known(subquery(SubqueryKind::Scalar, query), ty))
            }
            _ => Err(self.place_before(too_many("must return only one column"), written)),
        }
    }

    /// The parts of a row, each beside its column of a query's only row.
    pub(super) fn pairs_of_query(
        &mut self,
        parts: &[&ast::Expr],
        written: &ast::Query,
        scope: &dyn Scope,
    ) -> Result<Vec<(Typed, Typed)>> {
        let mut query = scope.query(self, written)?;
        let what = match query.columns.len().cmp(&parts.len()) {
            Ordering::Less => Some("has too few columns"),
            Ordering::Greater => Some("has too many columns"),
            Ordering::Equal => None,
        };
        if let Some(what) = what {
            return Err(self.place_before(too_many(what), written));
        }
        let Body::Select(select) = &mut query.body else {
            return Err(beyond("a comparison of a row with the only row of such a query"));
        };
        let columns = std::mem::take(&mut query.columns);
        let fields = columns.iter().map(|column| (column.name.clone(), column.ty)).collect();
        let is_there = Expr::Const(Value::Bool(true));
        let (row, ty) = self.records.make(fields, is_there, std::mem::take(&mut select.targets))?;
        select.targets.push(row);
        query.columns.push(ColumnDesc::computed("row", ty));
        let row = subquery(SubqueryKind::Scalar, query);
        let pair = |(place, (part, column)): (usize, (&&ast::Expr, &ColumnDesc))| {
            let value = Typed::known(field_call(&row, place), column.ty);
            Ok((self.bind(part, scope)?, value))
        };
        parts.iter().zip(&columns).enumerate().map(pair).collect()
    }

    /// `ARRAY(query)`
    pub(super) fn array_of_query(
        &mut self,
        written: &ast::Query,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let query = scope.query(self, written)?;
        let [one] = query.columns.as_slice() else {
            return Err(self.place_before(too_many("must return only one column"), written));
        };
        if one.ty.element().is_some() {
            return Err(beyond("ARRAY of a query that returns arrays"));
        }
        let ty = one.ty.base().array().ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("could not find array type for data type {}", one.ty.base()),
            )
        })?;
        Ok(Typed::known(subquery(SubqueryKind::Array(ty), query), ty))
    }

    pub(super) fn exists(
        &mut self,
        query: &ast::Query,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let exists = subquery(SubqueryKind::Exists, scope.query(self, query)?);
        Ok(Typed::bool(if negated { Expr::Not(Box::new(exists)) } else { exists }))
    }

    /// `value [NOT] IN (query)`
    pub(super) fn in_query(
        &mut self,
        value: &ast::Expr,
        query: &ast::Query,
        negated: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let symbol = if negated { "not" } else { "in" };
        let found = self
            .quantified(value, Compare::Eq, query, false, scope)
            .map_err(|error| self.place_operator(error, value, symbol, query.span(), &[value]))?;
        Ok(Typed::bool(if negated { Expr::Not(Box::new(found)) } else { found }))
    }

    /// `value op ANY (query)`, `value op ALL (query)`
    pub(super) fn quantifier(
        &mut self,
        value: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        is_all: bool,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let mut right = right;
        while let ast::Expr::Nested(inner) = right {
            right = inner;
        }
        let ast::Expr::Subquery(query) = right else {
            return self.any_array(value, op, right, is_all, scope);
        };
        let compare = match op {
            BinaryOperator::Eq => Compare::Eq,
            BinaryOperator::NotEq => Compare::Ne,
            BinaryOperator::Lt => Compare::Lt,
            BinaryOperator::LtEq => Compare::Le,
            BinaryOperator::Gt => Compare::Gt,
            BinaryOperator::GtEq => Compare::Ge,
            other => return Err(beyond(&format!("the operator {other} with ANY or ALL"))),
        };
        let symbol = op.to_string();
        self.quantified(value, compare, query, is_all, scope)
            .map(Typed::bool)
            .map_err(|error| self.place_operator(error, value, &symbol, query.span(), &[value]))
    }

    fn quantified(
        &mut self,
        value: &ast::Expr,
        compare: Compare,
        query: &ast::Query,
        is_all: bool,
        scope: &dyn Scope,
    ) -> Result<Expr> {
        let left = match parts_of_row(value) {
            Some(parts) => parts.iter().map(|e| self.bind(e, scope)).collect::<Result<Vec<_>>>()?,
            None => vec![self.bind(value, scope)?],
        };
        let mut query = scope.query(self, query)?;
        if query.columns.len() > left.len() {
            return Err(too_many("has too many columns"));
        }
        if query.columns.len() < left.len() {
            return Err(too_many("has too few columns"));
        }
        let is_row = left.len() > 1;
        let negated = is_row && is_all && compare == Compare::Ne;
        if is_row && !negated && (is_all || compare != Compare::Eq) {
            return Err(beyond("an order of row values with ANY or ALL"));
        }
        let mut values = Vec::with_capacity(left.len());
        let mut wanted = Vec::with_capacity(left.len());
        for (value, column) in left.into_iter().zip(&query.columns) {
            let (value, ty) = self.beside(value, column.ty, compare.symbol())?;
            values.push(value);
            wanted.push(ty);
        }
        if query.columns.iter().zip(&wanted).any(|(column, ty)| column.ty != *ty) {
            query = scope.converted(self, query, &wanted)?;
        }
        let any = |compare| SubqueryKind::Any(values.clone(), compare);
        Ok(if negated {
            // Rows differ from all if they are equal to none.
            Expr::Not(Box::new(subquery(any(Compare::Eq), query)))
        } else if is_all {
            subquery(SubqueryKind::All(values, compare), query)
        } else {
            subquery(any(compare), query)
        })
    }

    /// A value as it is compared with a query's column, and the type that the column is to have.
    fn beside(&mut self, value: Typed, column: DataType, symbol: &str) -> Result<(Expr, DataType)> {
        match value.ty {
            Ty::Known(own) if is_int(own) && is_int(column) => Ok((value.expr, column)),
            Ty::Known(own) => {
                let ty = comparable(own, column).ok_or_else(|| {
                    super::operator::no_operator(symbol, value.ty, Ty::Known(column))
                })?;
                let expr = self.coerce(value, ty, Coercion::Explicit)?;
                let is_same = comparable(column, column) == Some(ty);
                Ok((expr, if is_same { column } else { ty }))
            }
            Ty::Unknown => Ok((self.coerce_operand(value, column)?, column)),
        }
    }
}
