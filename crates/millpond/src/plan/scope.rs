//! Names of tables and their columns.

use std::sync::Arc;

use millpond_engine::catalog::{CatalogState, TableDef};

use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Scope, missing_from, undefined_column};
use crate::parse::Name;
use crate::settings::nearest;

/// The columns of one table under its name or alias.
pub(crate) struct TableScope<'a> {
    pub(crate) table: &'a TableDef,
    pub(crate) alias: &'a str,
}

impl Scope for TableScope<'_> {
    fn column(&self, table: Option<&str>, name: &str) -> Result<(usize, DataType)> {
        if let Some(table) = table
            && table != self.alias
        {
            let error = missing_from(table);
            return Err(if table == self.table.name {
                SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("invalid reference to FROM-clause entry for table \"{table}\""),
                )
                .hint(format!("Perhaps you meant to reference the table alias \"{}\".", self.alias))
            } else {
                error
            });
        }
        match self.table.column(name) {
            Some(column) => Ok((column, self.table.columns[column].ty)),
            None => {
                let known = self.table.columns.iter().map(|column| column.name.as_str());
                Err(undefined_column(name, table, known))
            }
        }
    }
}

/// The table of a name.
pub(crate) fn find_table(catalog: &CatalogState, name: &Name) -> Result<Arc<TableDef>> {
    check_schema(name)?;
    match catalog.table_by_name(&name.name) {
        Some(table) => Ok(Arc::clone(table)),
        None => Err(match catalog.relation(&name.name) {
            Some(_) => placed(
                SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not a table", name.name),
                ),
                name,
            ),
            None => undefined_table(catalog, name),
        }),
    }
}

/// "relation ... does not exist"
pub(crate) fn undefined_table(catalog: &CatalogState, name: &Name) -> SqlError {
    let error = placed(
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")),
        name,
    );
    match nearest(&name.name, catalog.tables().map(|table| table.name.as_str())) {
        Some(near) => error.hint(format!("Perhaps you meant the table \"{near}\".")),
        None => error,
    }
}

fn placed(mut error: SqlError, name: &Name) -> SqlError {
    error.position = name.position;
    error
}

/// There is one schema for tables.
pub(crate) fn check_schema(name: &Name) -> Result<()> {
    match name.schema.as_deref() {
        None | Some("public") => Ok(()),
        Some("pg_catalog" | "information_schema") => Err(placed(
            SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")),
            name,
        )),
        Some(schema) => Err(placed(
            SqlError::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{schema}\" does not exist"),
            ),
            name,
        )),
    }
}
