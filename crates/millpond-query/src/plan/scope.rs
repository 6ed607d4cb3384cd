//! Names of tables and their columns.

use std::ops::Range;
use std::sync::Arc;

use millpond_engine::catalog::{CatalogState, TableDef};
use millpond_syntax::tree;

use crate::analyze::tree::is_system_column;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{
    Scope, WholeRow, ambiguous_column, beyond, missing_from, undefined_column,
};
use crate::parse::Name;
use crate::settings::nearest;
use crate::{DataType, Value};

/// A table of FROM under its name or alias.
#[derive(Clone, Copy)]
pub(crate) struct FromTable<'a> {
    pub(crate) table: &'a TableDef,
    pub(crate) alias: &'a str,
    /// The number of its first column, counted over all tables of FROM.
    pub(crate) first_column: usize,
}

impl<'a> FromTable<'a> {
    /// The only table of a statement.
    pub(crate) fn only(table: &'a TableDef, alias: &'a str) -> Self {
        Self { table, alias, first_column: 0 }
    }

    /// The numbers of its columns.
    pub(crate) fn columns(&self) -> Range<usize> {
        self.first_column..self.first_column + self.table.columns.len()
    }
}

/// The tables whose columns an expression can name, in the order of FROM.
#[derive(Clone, Copy)]
pub struct FromScope<'a>(pub(crate) &'a [FromTable<'a>]);

impl<'a> FromScope<'a> {
    /// The table with this name or alias. A schema in front is that of tables, and means the
    /// table's own name.
    pub(crate) fn table(&self, name: &Name) -> Option<&'a FromTable<'a>> {
        let is_it = |from: &&FromTable<'_>| {
            from.alias == name.name
                && name
                    .schema
                    .as_deref()
                    .is_none_or(|schema| schema == "public" && from.table.name == name.name)
        };
        self.0.iter().find(is_it)
    }

    /// The table that a column belongs to.
    pub(crate) fn table_of(&self, column: usize) -> Option<&'a FromTable<'a>> {
        self.0.iter().find(|from| from.columns().contains(&column))
    }

    pub(crate) fn unknown_table(&self, name: &str) -> SqlError {
        match self.0.iter().find(|from| from.table.name == name) {
            Some(from) => SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("invalid reference to FROM-clause entry for table \"{name}\""),
            )
            .hint(format!("Perhaps you meant to reference the table alias \"{}\".", from.alias)),
            None => missing_from(name),
        }
    }
}

impl Scope for FromScope<'_> {
    fn row_type(&self, _: &[tree::Name]) -> Result<Option<Vec<(String, DataType)>>> {
        Err(beyond("a table's row type"))
    }

    fn column(&self, table: Option<&Name>, name: &str) -> Result<(usize, DataType)> {
        let among = match table {
            None => self.0,
            Some(table) => std::slice::from_ref(
                self.table(table).ok_or_else(|| self.unknown_table(&table.name))?,
            ),
        };
        let mut found = None;
        for from in among {
            let Some(column) = from.table.column(name) else { continue };
            if found.is_some() {
                return Err(ambiguous_column(name));
            }
            found = Some((from.first_column + column, from.table.columns[column].ty));
        }
        if found.is_none() && is_system_column(name) {
            return Err(beyond("a system column"));
        }
        found.ok_or_else(|| {
            let known = among.iter().flat_map(|from| &from.table.columns);
            undefined_column(
                name,
                table.map(|table| table.name.as_str()),
                known.map(|column| column.name.as_str()),
            )
        })
    }

    fn whole_row(&self, name: &str, _: u32) -> Result<Option<WholeRow>> {
        let Some(from) = self.0.iter().find(|from| from.alias == name) else { return Ok(None) };
        let columns = &from.table.columns;
        Ok(Some(WholeRow {
            fields: columns.iter().map(|column| (column.name.clone(), column.ty)).collect(),
            presence: Expr::Const(Value::Bool(true)),
            values: from.columns().map(Expr::Column).collect(),
            is_value: false,
        }))
    }
}

/// The table of a name. As PostgreSQL's utility statements have it, the error does not say where
/// the name stands; plans add that.
pub fn find_table(catalog: &CatalogState, name: &Name) -> Result<Arc<TableDef>> {
    check_schema(name).map_err(|error| match error.sqlstate {
        SqlState::INVALID_SCHEMA_NAME => undefined_relation(name),
        _ => error,
    })?;
    match catalog.table_by_name(&name.name) {
        Some(table) => Ok(Arc::clone(table)),
        None => Err(match catalog.relation(&name.name) {
            Some(_) => SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table", name.name),
            ),
            None => undefined_table(catalog, name),
        }),
    }
}

/// "relation ... does not exist"
pub(crate) fn undefined_table(catalog: &CatalogState, name: &Name) -> SqlError {
    let error = undefined_relation(name);
    match nearest(&name.name, catalog.tables().map(|table| table.name.as_str())) {
        Some(near) => error.hint(format!("Perhaps you meant the table \"{near}\".")),
        None => error,
    }
}

fn undefined_relation(name: &Name) -> SqlError {
    let message = format!("relation \"{name}\" does not exist");
    SqlError::new(SqlState::UNDEFINED_TABLE, message)
}

/// There is one schema for tables.
pub(crate) fn check_schema(name: &Name) -> Result<()> {
    match name.schema.as_deref() {
        None | Some("public") => Ok(()),
        Some("pg_catalog" | "information_schema") => Err(undefined_relation(name)),
        Some(schema) => Err(SqlError::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{schema}\" does not exist"),
        )),
    }
}
