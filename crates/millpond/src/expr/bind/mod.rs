//! From sqlparser's expressions to bound ones: [`Binder::bind`] looks at the form of an expression and hands it to the
//! file that knows the form.

mod call;
mod coerce;
mod condition;
mod literal;
mod names;
mod operator;

use sqlparser::ast;

pub(crate) use coerce::Coercion;
pub(crate) use names::{NoColumns, Scope, missing_from, undefined_column};

use super::Expr;
use super::types::Ty;
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::lex::Literals;
use crate::parse::{Source, check_collation, data_type};

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

/// A bound expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) ty: Ty,
}

impl Typed {
    fn known(expr: Expr, ty: DataType) -> Self {
        Typed { expr, ty: Ty::Known(ty) }
    }

    fn bool(expr: Expr) -> Self {
        Self::known(expr, DataType::Bool)
    }
}

/// Binds the expressions of one statement.
pub(crate) struct Binder<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) params: ParamTypes<'a>,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(source: Source<'a>, params: ParamTypes<'a>) -> Self {
        Binder { source, params }
    }

    /// Whether literals have been lifted out: then numbers in ORDER BY or GROUP BY are not to be seen.
    pub(crate) fn is_lifted(&self) -> bool {
        matches!(self.params, ParamTypes::Lifted(_))
    }

    /// Binds an expression.
    pub(crate) fn bind(&mut self, expr: &ast::Expr, scope: &dyn Scope) -> Result<Typed> {
        use ast::Expr as E;
        Ok(match expr {
            E::Identifier(name) => self.column(None, name, scope)?,
            E::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] => self.column(Some(table), name, scope)?,
                [_, table, name] => self.column(Some(table), name, scope)?,
                _ => return Err(SqlError::unsupported(format!("the name {expr}"))),
            },
            E::Value(value) => self.literal(value)?,
            E::Nested(inner) => self.bind(inner, scope)?,
            E::TypedString(typed) => {
                let ty = data_type(&typed.data_type)?;
                let literal = self.literal(&typed.value)?;
                Typed::known(self.coerce(literal, ty, Coercion::Explicit)?, ty)
            }
            E::UnaryOp { op, expr } => self.unary(*op, expr, scope)?,
            E::BinaryOp { .. } => self.binary(expr, scope)?,
            E::IsNull(e) => Typed::bool(Expr::IsNull(Box::new(self.any(e, scope)?), false)),
            E::IsNotNull(e) => Typed::bool(Expr::IsNull(Box::new(self.any(e, scope)?), true)),
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
            E::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr,
                data_type: ty,
                array: false,
                format: None,
            } => {
                let ty = data_type(ty)?;
                Typed::known(self.bind_as(expr, ty, Coercion::Explicit, scope)?, ty)
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), scope)?
            }
            E::Collate { expr, collation } => {
                check_collation(collation)?;
                self.bind(expr, scope)?
            }
            E::Function(function) => self.function(function, scope)?,
            E::Ceil { .. }
            | E::Floor { .. }
            | E::Position { .. }
            | E::Substring { .. }
            | E::Trim { .. } => self.spelled_call(expr, scope)?,
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
        self.coerce(typed, ty, coercion)
    }

    /// Binds a condition.
    pub(crate) fn condition(
        &mut self,
        expr: &ast::Expr,
        what: &str,
        scope: &dyn Scope,
    ) -> Result<Expr> {
        let typed = self.bind(expr, scope)?;
        self.truth_value(typed, what)
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
        match typed.ty {
            Ty::Known(ty) => Ok((typed.expr, ty)),
            Ty::Unknown => {
                Ok((self.coerce(typed, DataType::Text, Coercion::Implicit)?, DataType::Text))
            }
        }
    }

    fn any(&mut self, expr: &ast::Expr, scope: &dyn Scope) -> Result<Expr> {
        Ok(self.output(expr, scope)?.0)
    }
}

/// A form of expression that only a query engine can deal with. The planner recognises the code, and hands the
/// statement on where there is an engine.
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
