//! From sqlparser's expressions to bound ones: [`Binder::bind`] looks at the form of an expression
//! and hands it to the file that knows the form.

mod array;
mod call;
mod coerce;
mod condition;
mod datetime;
mod literal;
mod names;
mod object_cast;
mod operator;
mod place;
mod record;
mod row;
mod subquery;

use sqlparser::ast;

pub(crate) use call::result_type;
pub(crate) use coerce::Coercion;
pub(crate) use names::{NoColumns, Scope, missing_from, undefined_column};
pub(crate) use record::{RecordTypes, WholeRow};
pub(crate) use row::parts_of_row;

use super::Expr;
use super::types::Ty;
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::lex::Literals;
use crate::parse::{Source, ast_data_type as data_type, check_ast_collation as check_collation};

/// What is known about a statement's parameters.
#[derive(Debug)]
pub(crate) enum ParamTypes<'a> {
    /// Parameters of a prepared statement: given types, and those found so far.
    Declared(Vec<Option<DataType>>),
    /// Literals that the lexer has lifted out.
    Lifted(&'a Literals),
    /// There can be none.
    None,
}

impl<'a> ParamTypes<'a> {
    /// The same, to bind the statement once more.
    pub(crate) fn again(&self) -> ParamTypes<'a> {
        match self {
            ParamTypes::Declared(types) => ParamTypes::Declared(types.clone()),
            ParamTypes::Lifted(literals) => ParamTypes::Lifted(literals),
            ParamTypes::None => ParamTypes::None,
        }
    }

    /// How many parameters there are, as far as known.
    pub(crate) fn count(&self) -> usize {
        match self {
            ParamTypes::Declared(types) => types.len(),
            ParamTypes::Lifted(literals) => literals.len(),
            ParamTypes::None => 0,
        }
    }
}

/// A bound expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) ty: Ty,
}

impl Typed {
    pub(crate) fn known(expr: Expr, ty: DataType) -> Self {
        Typed { expr, ty: Ty::Known(ty) }
    }

    pub(crate) fn bool(expr: Expr) -> Self {
        Self::known(expr, DataType::Bool)
    }
}

/// Binds the expressions of one statement.
pub(crate) struct Binder<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) params: ParamTypes<'a>,
    /// The record types that the statement has.
    pub(crate) records: RecordTypes,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(source: Source<'a>, params: ParamTypes<'a>) -> Self {
        Binder { source, params, records: RecordTypes::default() }
    }

    /// Whether literals have been lifted out: then numbers in ORDER BY or GROUP BY are not to be
    /// seen.
    pub(crate) fn is_lifted(&self) -> bool {
        matches!(self.params, ParamTypes::Lifted(_))
    }

    /// Binds an expression.
    pub(crate) fn bind(&mut self, expr: &ast::Expr, scope: &dyn Scope) -> Result<Typed> {
        use ast::Expr as E;
        Ok(match expr {
            E::Identifier(name) => self.column(name, scope)?,
            E::CompoundIdentifier(parts) => self.qualified_column(parts, scope)?,
            E::Value(value) => self.literal(value)?,
            E::Nested(inner) => self.bind(inner, scope)?,
            E::Tuple(parts) => self.row(&Vec::from_iter(parts), scope)?,
            E::TypedString(typed) => {
                let ty = data_type(&typed.data_type)?;
                let literal = self.literal(&typed.value)?;
                Typed::known(self.coerce(literal, ty, Coercion::Explicit)?, ty)
            }
            E::Interval(interval) => self.interval(interval, scope)?,
            E::Extract { field, expr, .. } => self.extract(field, expr, scope)?,
            E::AtTimeZone { timestamp, time_zone } => {
                self.at_time_zone(timestamp, time_zone, scope)?
            }
            E::Array(array) => self.array(array, None, scope)?,
            E::CompoundFieldAccess { root, access_chain } => {
                self.subscripts(root, access_chain, scope)?
            }
            E::UnaryOp { op, expr } => self.unary(*op, expr, scope)?,
            E::BinaryOp { .. } => match self.overlaps(expr, scope)? {
                Some(overlaps) => overlaps,
                None => self.binary(expr, scope)?,
            },
            E::IsNull(e) => self.is_null(e, false, scope)?,
            E::IsNotNull(e) => self.is_null(e, true, scope)?,
            E::IsTrue(e) => self.is_bool(e, Some(true), false, scope)?,
            E::IsNotTrue(e) => self.is_bool(e, Some(true), true, scope)?,
            E::IsFalse(e) => self.is_bool(e, Some(false), false, scope)?,
            E::IsNotFalse(e) => self.is_bool(e, Some(false), true, scope)?,
            E::IsUnknown(e) => self.is_bool(e, None, false, scope)?,
            E::IsNotUnknown(e) => self.is_bool(e, None, true, scope)?,
            E::IsDistinctFrom(a, b) => self.distinct(a, b, false, scope)?,
            E::IsNotDistinctFrom(a, b) => self.distinct(a, b, true, scope)?,
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated, scope)?,
            E::Between { expr, negated, low, high } => {
                self.between(expr, low, high, *negated, scope)?
            }
            E::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), false, *negated, scope)?
            }
            E::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), true, *negated, scope)?
            }
            E::SimilarTo { negated, expr, pattern, escape_char } => {
                self.similar(expr, pattern, escape_char.as_ref(), *negated, scope)?
            }
            E::IsNormalized { expr, form, negated } => {
                self.is_normalized(expr, form.as_ref(), *negated, scope)?
            }
            E::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr,
                data_type: ty,
                array: false,
                format: None,
            } => {
                if let Some(value) = self.catalog_cast(expr, ty, scope)? {
                    return Ok(value);
                }
                let ty = data_type(ty)?;
                if let (E::Array(array), Some(_)) = (expr.as_ref(), ty.element()) {
                    let typed = self.array(array, Some(ty), scope)?;
                    return Ok(Typed::known(self.coerce(typed, ty, Coercion::Explicit)?, ty));
                }
                Typed::known(self.bind_as(expr, ty, Coercion::Explicit, scope)?, ty)
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), scope)?
            }
            E::Collate { expr, collation } => {
                check_collation(collation)?;
                self.bind(expr, scope)?
            }
            E::Function(function) => match parts_of_row(expr) {
                Some(parts) => self.row(&parts, scope)?,
                None => self.function(function, scope)?,
            },
            E::Ceil { .. }
            | E::Floor { .. }
            | E::Position { .. }
            | E::Substring { .. }
            | E::Overlay { .. }
            | E::Trim { .. } => self.spelled_call(expr, scope)?,
            E::Subquery(query) => self.scalar(query, scope)?,
            E::Exists { subquery, negated } => self.exists(subquery, *negated, scope)?,
            E::InSubquery { expr, subquery, negated } => {
                self.in_query(expr, subquery, *negated, scope)?
            }
            E::AnyOp { left, compare_op, right, is_some: _ } => {
                self.quantifier(left, compare_op, right, false, scope)?
            }
            E::AllOp { left, compare_op, right } => {
                self.quantifier(left, compare_op, right, true, scope)?
            }
            other => return Err(beyond_expression(other)),
        })
    }

    /// Binds an expression and converts it to a type.
    pub(crate) fn bind_as(
        &mut self,
        expr: &ast::Expr,
        ty: DataType,
        coercion: Coercion,
        scope: &dyn Scope,
    ) -> Result<Expr> {
        let typed = self.bind(expr, scope)?;
        self.coerce(typed, ty, coercion).map_err(|error| self.place_literal(error, &[expr]))
    }

    /// Binds a condition.
    pub(crate) fn condition(
        &mut self,
        expr: &ast::Expr,
        what: &str,
        scope: &dyn Scope,
    ) -> Result<Expr> {
        let typed = self.bind(expr, scope)?;
        self.truth_value(typed, what).map_err(|error| self.place_at(error, expr))
    }

    fn truth_value(&mut self, typed: Typed, what: &str) -> Result<Expr> {
        match typed.ty {
            Ty::Known(DataType::Bool) | Ty::Unknown => {
                self.coerce(typed, DataType::Bool, Coercion::Implicit)
            }
            Ty::Known(ty) => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {what} must be type boolean, not type {ty}"),
            )),
        }
    }

    /// Binds an expression whose own type will do; unknown literals become text.
    pub(crate) fn output(
        &mut self,
        expr: &ast::Expr,
        scope: &dyn Scope,
    ) -> Result<(Expr, DataType)> {
        let typed = self.bind(expr, scope)?;
        self.settled(typed)
    }

    /// A value in a type of its own; an unknown literal becomes text.
    pub(crate) fn settled(&mut self, typed: Typed) -> Result<(Expr, DataType)> {
        match typed.ty {
            Ty::Known(ty) => Ok((typed.expr, ty)),
            Ty::Unknown => {
                Ok((self.coerce(typed, DataType::Text, Coercion::Implicit)?, DataType::Text))
            }
        }
    }
}

/// A form of expression that only a query engine can deal with. The planner recognises the code,
/// and hands the statement on where there is an engine.
pub(crate) fn beyond(what: &str) -> SqlError {
    SqlError::unsupported(what)
}

fn beyond_expression(e: &ast::Expr) -> SqlError {
    beyond(&format!("the expression {}", shorten(&e.to_string())))
}

/// A text short enough for a message.
fn shorten(text: &str) -> String {
    if text.chars().count() <= 60 {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(57).collect();
    short.push_str("...");
    short
}
