//! Columns by their names.

use sqlparser::ast;
use sqlparser::tokenizer::Span;

use super::record::WholeRow;
use super::{Binder, Typed, beyond};
use crate::DataType;
use crate::analyze::tree::Query;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::{Name, ident};
use crate::settings::nearest;

/// The columns that an expression can name.
pub(crate) trait Scope {
    /// The column's place and type, or why it can't be had.
    fn column(&self, table: Option<&Name>, name: &str) -> Result<(usize, DataType)>;

    /// The value of a column that is named at a place of the text.
    fn reference(&self, table: Option<&Name>, name: &str, at: Span) -> Result<(Expr, DataType)> {
        let _ = at;
        self.column(table, name).map(|(column, ty)| (Expr::Column(column), ty))
    }

    /// The row of an item of FROM, if there is one of that name.
    fn whole_row(&self, name: &str, at: Span) -> Result<Option<WholeRow>> {
        let _ = (name, at);
        Ok(None)
    }

    /// A query within an expression.
    fn query(&self, binder: &mut Binder<'_>, query: &ast::Query) -> Result<Query> {
        let _ = (binder, query);
        Err(beyond("a subquery"))
    }

    /// A query whose columns are made to be of these types.
    fn converted(
        &self,
        binder: &mut Binder<'_>,
        query: Query,
        types: &[DataType],
    ) -> Result<Query> {
        let _ = (binder, query, types);
        Err(beyond("a subquery"))
    }

    /// A call, if it is of a function that is not computed where it is called: an aggregate, a
    /// window function.
    fn call(&self, binder: &mut Binder<'_>, call: &ast::Function) -> Result<Option<Typed>> {
        let _ = (binder, call);
        Ok(None)
    }
}

/// No columns at all.
pub(crate) struct NoColumns;

impl Scope for NoColumns {
    fn column(&self, table: Option<&Name>, name: &str) -> Result<(usize, DataType)> {
        match table {
            Some(table) => Err(missing_from(&table.name)),
            None => Err(undefined_column(name, None, std::iter::empty())),
        }
    }
}

pub(crate) fn missing_from(table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("missing FROM-clause entry for table \"{table}\""),
    )
}

pub(crate) fn undefined_column<'a>(
    name: &str,
    table: Option<&str>,
    known: impl Iterator<Item = &'a str>,
) -> SqlError {
    let error = SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        match table {
            Some(table) => format!("column {table}.{name} does not exist"),
            None => format!("column \"{name}\" does not exist"),
        },
    );
    match nearest(name, known) {
        Some(near) => error.hint(format!("Perhaps you meant to reference the column \"{near}\".")),
        None => error,
    }
}

impl Binder<'_> {
    /// The column of a name without points.
    pub(super) fn column(&mut self, name: &ast::Ident, scope: &dyn Scope) -> Result<Typed> {
        let folded = ident(name);
        if name.quote_style.is_none() {
            // Words that are functions without parentheses.
            if let "current_catalog" | "current_role" | "current_user" | "session_user" | "user"
            | "current_date" | "current_schema" | "localtime" | "current_time" = folded.as_str()
            {
                return self.call(&folded, Vec::new());
            }
        }
        match self.reference(None, &folded, name.span, scope) {
            Err(error) if error.sqlstate == SqlState::UNDEFINED_COLUMN => {
                match scope.whole_row(&folded, name.span)? {
                    Some(row) => self.record_of(row),
                    None => Err(error),
                }
            }
            found => found,
        }
    }

    /// The column of a name with points.
    pub(super) fn qualified_column(
        &mut self,
        parts: &[ast::Ident],
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let (table, name) = Name::of_column(parts, &self.source)?;
        let span = parts.first().map_or_else(Span::empty, |first| first.span);
        self.reference(Some(&table), &name, span, scope)
    }

    fn reference(
        &self,
        table: Option<&Name>,
        name: &str,
        span: Span,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        match scope.reference(table, name, span) {
            Ok((value, ty)) => Ok(Typed::known(value, ty)),
            Err(error) => Err(self.source.place(error, span)),
        }
    }
}
