//! System columns: those that a table has without having been given them.

use millpond_types::other::TID;

use super::level::Level;
use super::namespace::Visible;
use super::tree::{SystemColumn, is_system_column};
use crate::DataType;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::expr::bind::{ambiguous_column, tid_of};
use crate::expr::column_of_row;
use crate::parse::Name;
use crate::plan::query::node::SlotKind;
use crate::system_relations::{is_catalog, is_system};

impl Level<'_> {
    /// The system column of a name, if the name is that of one and of nothing else.
    pub(super) fn system_column(
        &self,
        items: &[Visible],
        table: Option<&Name>,
        name: &str,
    ) -> Result<Option<(Expr, DataType)>> {
        if !is_system_column(name) {
            return Ok(None);
        }
        let is_own = |item: &&Visible| match table {
            Some(table) => item.is_called(table),
            None => item.has_columns,
        };
        let candidates = || items.iter().filter(is_own);
        if candidates().any(|item| item.columns.iter().any(|column| column.desc.name == name)) {
            return Ok(None);
        }
        let mut found = candidates().filter_map(|item| {
            let slot = item.slot?;
            match self.analyzer.slots.borrow().get(slot.index()) {
                // A view has none.
                Some(SlotKind::Stored(table)) if is_system(table) && !is_catalog(table.oid) => None,
                Some(SlotKind::Stored(table)) => Some((slot, is_system(table))),
                _ => None,
            }
        });
        let Some((slot, is_system)) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(ambiguous_column(name));
        }
        let table = Expr::Column(SystemColumn::Tableoid.of_slot(slot));
        let place = Expr::Column(SystemColumn::Ctid.of_slot(slot));
        match name {
            "tableoid" => Ok(Some((table, DataType::Oid))),
            _ if is_system => {
                Err(SqlError::unsupported(format!("the system column {name} of a catalog")))
            }
            "ctid" => Ok(Some((tid_of(place)?, DataType::Other { oid: TID, typmod: -1 }))),
            name => column_of_row(name, table, place).map(Some),
        }
    }
}
