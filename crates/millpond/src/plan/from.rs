//! FROM of statements on one table.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use sqlparser::ast;

use super::Planner;
use super::scope::find_table;
use crate::error::Result;
use crate::expr::bind::beyond;
use crate::parse::{Name, ident};
use crate::system_relations::find_definition;

/// The only table of FROM.
pub(super) struct OnlyTable {
    pub(super) table: Arc<TableDef>,
    pub(super) alias: String,
}

impl Planner<'_> {
    /// The table of a FROM clause, if there is a clause; 0A000 for more than a table.
    pub(super) fn from(&self, from: &[ast::TableWithJoins]) -> Result<Option<OnlyTable>> {
        match from {
            [] => Ok(None),
            [one] if one.joins.is_empty() => {
                let (table, alias) = self.table_factor(&one.relation)?;
                Ok(Some(OnlyTable { table, alias }))
            }
            _ => Err(beyond("a join")),
        }
    }

    /// A plain table with its alias.
    pub(super) fn table_factor(
        &self,
        factor: &ast::TableFactor,
    ) -> Result<(Arc<TableDef>, String)> {
        let ast::TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } = factor
        else {
            return Err(beyond("this form of FROM"));
        };
        if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
            return Err(beyond("this form of FROM"));
        }
        let name = Name::from_ast(name, &self.source)?;
        if find_definition(&name).is_some() {
            return Err(beyond("a system relation"));
        }
        let table = find_table(self.catalog, &name)?;
        let alias = match alias {
            Some(alias) if alias.columns.is_empty() => ident(&alias.name),
            Some(_) => return Err(beyond("column aliases")),
            None => table.name.clone(),
        };
        Ok((table, alias))
    }
}
