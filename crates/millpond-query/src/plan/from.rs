//! FROM of statements on one table.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_syntax::tree::{RangeVar, TableRef};

use super::Planner;
use super::scope::find_table;
use crate::error::Result;
use crate::expr::bind::beyond;
use crate::parse::Name;
use crate::system_relations::find_definition;

/// The only table of FROM.
pub(super) struct OnlyTable {
    pub(super) table: Arc<TableDef>,
    pub(super) alias: String,
}

impl Planner<'_> {
    /// The table of a FROM clause, if there is a clause; 0A000 for more than a table.
    pub(super) fn from(&self, from: &[TableRef]) -> Result<Option<OnlyTable>> {
        match from {
            [] => Ok(None),
            [TableRef::RangeVar(relation)] => {
                let (table, alias) = self.relation(relation)?;
                Ok(Some(OnlyTable { table, alias }))
            }
            [_] => Err(beyond("this form of FROM")),
            _ => Err(beyond("a join")),
        }
    }

    /// A plain table with its alias.
    pub(super) fn relation(&self, relation: &RangeVar) -> Result<(Arc<TableDef>, String)> {
        let name = Name::of_relation(relation, &self.source)?;
        if find_definition(&name).is_some() {
            return Err(beyond("a system relation"));
        }
        let table = find_table(self.catalog, &name)
            .map_err(|error| self.source.place(error, name.location))?;
        let alias = match &relation.alias {
            Some(alias) if alias.colnames.is_empty() => (*alias.aliasname).to_owned(),
            Some(_) => return Err(beyond("column aliases")),
            None => table.name.clone(),
        };
        Ok((table, alias))
    }
}
