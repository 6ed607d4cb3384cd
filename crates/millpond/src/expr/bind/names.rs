//! Columns by their names.

use sqlparser::ast;

use super::{Binder, Typed};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::ident;
use crate::settings::nearest;

/// The columns that an expression can name.
pub(crate) trait Scope {
    /// The column's place and type, or why it can't be had.
    fn column(&self, table: Option<&str>, name: &str) -> Result<(usize, DataType)>;
}

/// No columns at all.
pub(crate) struct NoColumns;

impl Scope for NoColumns {
    fn column(&self, table: Option<&str>, name: &str) -> Result<(usize, DataType)> {
        match table {
            Some(table) => Err(missing_from(table)),
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
    pub(super) fn column(
        &mut self,
        table: Option<&ast::Ident>,
        name: &ast::Ident,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let folded = ident(name);
        if table.is_none() && name.quote_style.is_none() {
            // Words that are functions without parentheses.
            if let "current_catalog" | "current_role" | "current_user" | "session_user" | "user"
            | "current_date" | "current_schema" = folded.as_str()
            {
                return self.call(&folded, Vec::new());
            }
        }
        let table = table.map(ident);
        match scope.column(table.as_deref(), &folded) {
            Ok((column, ty)) => Ok(Typed::known(Expr::Column(column), ty)),
            Err(error) => Err(self.source.place(error, name.span)),
        }
    }
}
