//! Where in the text an error of an operator or a literal is.

use sqlparser::ast::{self, Spanned};
use sqlparser::tokenizer::Span;

use super::Binder;
use crate::error::SqlError;

impl Binder<'_> {
    /// Places an error of an operator between two operands: at the operator; at the literal if the
    /// error is that of a literal's text.
    pub(super) fn place_operator(
        &self,
        error: SqlError,
        left: &ast::Expr,
        symbol: &str,
        right: Span,
        literals: &[&ast::Expr],
    ) -> SqlError {
        if error.position.is_some() {
            return error;
        }
        if is_of_data(&error) {
            return self.place_literal(error, literals);
        }
        let sql = self.source.sql;
        let (start, end) = (self.source.byte(left.span().end), self.source.byte(right.start));
        let between = sql.get(start..end).unwrap_or("");
        match between.to_ascii_lowercase().rfind(&symbol.to_ascii_lowercase()) {
            Some(at) => error.at(self.source.position(start + at)),
            None => error,
        }
    }

    /// Places an error of a literal's text at the first of these that is one.
    pub(crate) fn place_literal(&self, error: SqlError, among: &[&ast::Expr]) -> SqlError {
        match among.iter().find(|e| is_string(e)) {
            Some(literal) if is_of_data(&error) => self.source.place(error, literal.span()),
            _ => error,
        }
    }

    /// Places an error at the beginning of an expression.
    pub(crate) fn place_at(&self, error: SqlError, e: &ast::Expr) -> SqlError {
        match e {
            ast::Expr::Subquery(query) => self.place_before(error, query),
            _ => self.source.place(error, e.span()),
        }
    }

    /// Places an error at the parenthesis before a query.
    pub(crate) fn place_before(&self, error: SqlError, query: &ast::Query) -> SqlError {
        self.place_before_span(error, query.span())
    }

    /// Places an error at the parenthesis before a place.
    pub(crate) fn place_before_span(&self, mut error: SqlError, span: Span) -> SqlError {
        if error.position.is_none() {
            let start = self.source.byte(span.start);
            let before = self.source.sql.get(..start).and_then(|before| before.rfind('('));
            error.position = before.map(|at| self.source.position(at));
        }
        error
    }
}

/// Whether it is a value that is wrong, not the statement.
fn is_of_data(error: &SqlError) -> bool {
    error.sqlstate.as_str().starts_with("22")
}

fn is_string(e: &ast::Expr) -> bool {
    match e {
        ast::Expr::Value(value) => !matches!(
            value.value,
            ast::Value::Number(..) | ast::Value::Boolean(_) | ast::Value::Null
        ),
        ast::Expr::Nested(inner) => is_string(inner),
        _ => false,
    }
}
