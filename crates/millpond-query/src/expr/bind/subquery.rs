//! Queries within expressions: EXISTS, IN, ANY, ALL, and one value.

use std::cmp::Ordering;
use std::sync::Arc;

use millpond_syntax::tree::{self, SelectStmt, SubLink, SubLinkType};

use super::operator::{comparison_of, symbol_of};
use super::record::field_call;
use super::row::parts_of_row;
use super::{Binder, Scope, Typed, beyond};
use crate::DataType;
use crate::Value;
use crate::analyze::tree::{Body, Query, Subquery, SubqueryKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::pattern::any::operator_code;
use crate::expr::types::{Ty, comparable, is_int, operator_type};
use crate::expr::{Compare, Expr};
use crate::sink::ColumnDesc;

fn subquery(kind: SubqueryKind, query: Query) -> Expr {
    Expr::Subquery(Box::new(Subquery { kind, query: Arc::new(query) }))
}

fn too_many(what: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("subquery {what}"))
}

impl Binder<'_> {
    /// A query within an expression.
    pub(super) fn sub_link(&mut self, link: &SubLink, at: u32, scope: &dyn Scope) -> Result<Typed> {
        let written = &link.subselect;
        let bound = match (link.sub_link_type, &link.testexpr) {
            (SubLinkType::Exists, _) => {
                let query = scope.query(self, written)?;
                Ok(Typed::bool(subquery(SubqueryKind::Exists, query)))
            }
            (SubLinkType::Expr, _) => self.scalar(written, scope),
            (SubLinkType::Array, _) => self.array_of_query(written, scope),
            (SubLinkType::Any | SubLinkType::All, Some(value)) => {
                let is_all = link.sub_link_type == SubLinkType::All;
                let symbol =
                    if link.oper_name.is_empty() { "=" } else { symbol_of(&link.oper_name)? };
                match comparison_of(symbol) {
                    Some(compare) => self
                        .quantified(value, compare, written, is_all, scope)
                        .map(Typed::bool)
                        .map_err(|error| self.place_literal(error, &[value])),
                    None => {
                        let Some(code) = operator_code(symbol) else {
                            return Err(beyond(&format!("the operator {symbol} with ANY or ALL")));
                        };
                        // The query's patterns are an array.
                        let left = self.bind(value, scope)?;
                        let patterns = self.array_of_query(written, scope)?;
                        self.match_patterns(symbol, code, left, patterns, is_all)
                            .map_err(|error| self.place_literal(error, &[value]))
                    }
                }
            }
            (SubLinkType::Any | SubLinkType::All, None) => {
                Err(SqlError::internal("ANY or ALL without a value"))
            }
        };
        bound.map_err(|error| self.source.place(error, at))
    }

    /// A query whose only value is wanted.
    fn scalar(&mut self, written: &SelectStmt, scope: &dyn Scope) -> Result<Typed> {
        let query = scope.query(self, written)?;
        match query.columns.as_slice() {
            [one] => {
                let ty = one.ty;
                Ok(Typed::known(subquery(SubqueryKind::Scalar, query), ty))
            }
            _ => Err(too_many("must return only one column")),
        }
    }

    /// The parts of a row, each beside its column of a query's only row. The query is at `at`.
    pub(super) fn pairs_of_query(
        &mut self,
        parts: &[tree::Expr],
        written: &SelectStmt,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Vec<(Typed, Typed)>> {
        let mut query = scope.query(self, written)?;
        let what = match query.columns.len().cmp(&parts.len()) {
            Ordering::Less => Some("has too few columns"),
            Ordering::Greater => Some("has too many columns"),
            Ordering::Equal => None,
        };
        if let Some(what) = what {
            return Err(self.source.place(too_many(what), at));
        }
        let Body::Select(select) = &mut query.body else {
            return Err(beyond("a comparison of a row with the only row of such a query"));
        };
        let columns = std::mem::take(&mut query.columns);
        let fields = columns.iter().map(|column| (column.name.to_string(), column.ty)).collect();
        let is_there = Expr::Const(Value::Bool(true));
        let (row, ty) = self.records.make(fields, is_there, std::mem::take(&mut select.targets))?;
        select.targets.push(row);
        query.columns.push(ColumnDesc::computed("row", ty));
        let row = subquery(SubqueryKind::Scalar, query);
        let pair = |(place, (part, column)): (usize, (&tree::Expr, &ColumnDesc))| {
            let value = Typed::known(field_call(&row, place), column.ty);
            Ok((self.bind(part, scope)?, value))
        };
        parts.iter().zip(&columns).enumerate().map(pair).collect()
    }

    /// `ARRAY(query)`
    fn array_of_query(&mut self, written: &SelectStmt, scope: &dyn Scope) -> Result<Typed> {
        let query = scope.query(self, written)?;
        let [one] = query.columns.as_slice() else {
            return Err(too_many("must return only one column"));
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

    /// `value op ANY (query)`, `value op ALL (query)`
    fn quantified(
        &mut self,
        value: &tree::Expr,
        compare: Compare,
        query: &SelectStmt,
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
                let expr = self.coerce_operand(value, ty)?;
                let is_text = column.is_string() && ty == DataType::Text;
                let is_same = is_text || comparable(column, column) == Some(ty);
                Ok((expr, if is_same { column } else { ty }))
            }
            Ty::Unknown => Ok((self.coerce_operand(value, operator_type(column))?, column)),
        }
    }
}
