//! Columns by their names.

use millpond_syntax::tree::{self, Field, FuncCall, SelectStmt};

use super::record::WholeRow;
use super::{Binder, Typed, beyond};
use crate::DataType;
use crate::analyze::tree::Query;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::Name;
use crate::settings::nearest;

/// The columns that an expression can name.
pub trait Scope {
    /// The column's place and type, or why it can't be had.
    fn column(&self, table: Option<&Name>, name: &str) -> Result<(usize, DataType)>;

    /// The value of a column that is named at a place of the text.
    fn reference(&self, table: Option<&Name>, name: &str, at: u32) -> Result<(Expr, DataType)> {
        let _ = at;
        self.column(table, name).map(|(column, ty)| (Expr::Column(column), ty))
    }

    /// The row of an item of FROM, if there is one of that name.
    fn whole_row(&self, name: &str, at: u32) -> Result<Option<WholeRow>> {
        let _ = (name, at);
        Ok(None)
    }

    /// The columns of a table, whose name is also that of the type of its rows; `None` if there is
    /// no such table.
    fn row_type(&self, names: &[tree::Name]) -> Result<Option<Vec<(String, DataType)>>> {
        let _ = names;
        Ok(None)
    }

    /// A query within an expression.
    fn query(&self, binder: &mut Binder<'_>, query: &SelectStmt) -> Result<Query> {
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
    fn call(&self, binder: &mut Binder<'_>, call: &FuncCall, at: u32) -> Result<Option<Typed>> {
        let _ = (binder, call, at);
        Ok(None)
    }

    /// `GROUPING(...)`
    fn grouping(&self, binder: &mut Binder<'_>, args: &[tree::Expr], at: u32) -> Result<Typed> {
        let _ = (binder, args, at);
        Err(beyond("GROUPING"))
    }
}

/// No columns at all.
pub struct NoColumns;

impl Scope for NoColumns {
    fn column(&self, table: Option<&Name>, name: &str) -> Result<(usize, DataType)> {
        match table {
            Some(table) => Err(missing_from(&table.name)),
            None => Err(undefined_column(name, None, std::iter::empty())),
        }
    }
}

/// No columns in a statement that may name tables elsewhere, so that it has to be looked at as a
/// whole.
pub struct NoFrom;

impl Scope for NoFrom {
    fn column(&self, table: Option<&Name>, name: &str) -> Result<(usize, DataType)> {
        NoColumns.column(table, name)
    }

    fn row_type(&self, _: &[tree::Name]) -> Result<Option<Vec<(String, DataType)>>> {
        Err(beyond("a table's row type"))
    }
}

pub fn missing_from(table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("missing FROM-clause entry for table \"{table}\""),
    )
}

pub(crate) fn ambiguous_column(name: &str) -> SqlError {
    SqlError::new(SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous"))
}

pub fn undefined_column<'a>(
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
    /// The column of a name, with points or without.
    pub(super) fn column_ref(
        &mut self,
        fields: &[Field],
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        if let [Field::String(name), Field::Star] = fields {
            let row = scope.whole_row(name, at)?;
            let row = row.ok_or_else(|| self.source.place(missing_from(name), at))?;
            return self.record_of(row);
        }
        let [Field::String(name)] = fields else {
            let (table, name) = Name::of_column(fields, at, &self.source)?;
            return self.reference(Some(&table), name, at, scope);
        };
        match self.reference(None, name, at, scope) {
            Err(error) if error.sqlstate == SqlState::UNDEFINED_COLUMN => {
                match scope.whole_row(name, at)? {
                    Some(row) => self.record_of(row),
                    None => Err(error),
                }
            }
            found => found,
        }
    }

    fn reference(
        &self,
        table: Option<&Name>,
        name: &str,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        match scope.reference(table, name, at) {
            Ok((value, ty)) => Ok(Typed::known(value, ty)),
            Err(error) => Err(self.source.place(error, at)),
        }
    }
}
