//! The changes that a transaction makes to the catalog, as a list of steps.
//!
//! A transaction keeps its steps rather than a resulting state, because other transactions change
//! other relations meanwhile. At commit the session applies the steps to the catalog that is
//! committed by then. Locks ensure that no two transactions change the same object.

use std::sync::Arc;

use millpond_buffer::RelationId;

use super::def::{IndexDef, TableDef};
use super::state::CatalogState;
use super::stats::TableStats;
use crate::ids::Oid;

#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A new table, or a new definition of one that no other session can see or change.
    PutTable(Arc<TableDef>),
    DropTable(Oid),
    AddIndex(Arc<IndexDef>),
    /// The same index in another file.
    ReplaceIndex(Arc<IndexDef>),
    DropIndex {
        table: Oid,
        index: Oid,
    },
    /// Columns that refuse NULL from now on.
    SetNotNull {
        table: Oid,
        columns: Vec<usize>,
    },
    /// New, empty files: for the table and for each of its indexes.
    SwapStorage {
        table: Oid,
        storage: RelationId,
        indexes: Vec<(Oid, RelationId)>,
    },
}

impl Change {
    /// Applies the step. If its table is gone, it does nothing.
    pub(crate) fn apply(&self, state: &mut CatalogState) {
        match self {
            Self::PutTable(table) => state.insert(Arc::clone(table)),
            Self::DropTable(oid) => {
                state.remove(*oid);
            }
            Self::AddIndex(index) => redefine(state, index.table, |table| {
                table.add_index(Arc::clone(index));
            }),
            Self::ReplaceIndex(index) => redefine(state, index.table, |table| {
                if let Some(old) = table.indexes.iter_mut().find(|old| old.oid == index.oid) {
                    *old = Arc::clone(index);
                }
            }),
            Self::DropIndex { table, index } => redefine(state, *table, |table| {
                let indexes = std::mem::take(&mut table.indexes);
                table.indexes = indexes.into_iter().filter(|kept| kept.oid != *index).collect();
            }),
            Self::SetNotNull { table, columns } => redefine(state, *table, |table| {
                for &column in columns {
                    if let Some(column) = table.columns.get_mut(column) {
                        column.not_null = true;
                    }
                }
            }),
            Self::SwapStorage { table, storage, indexes } => redefine(state, *table, |table| {
                table.storage = *storage;
                table.stats =
                    Arc::new(TableStats::new(table.columns.iter().map(|column| column.ty)));
                for (oid, storage) in indexes {
                    let Some(at) = table.indexes.iter().position(|index| index.oid == *oid) else {
                        continue;
                    };
                    if let Some(new) = table.indexes[at].in_file(table, *storage) {
                        table.indexes[at] = Arc::new(new);
                    }
                }
            }),
        }
    }
}

fn redefine(state: &mut CatalogState, oid: Oid, change: impl FnOnce(&mut TableDef)) {
    let Some(table) = state.table(oid) else { return };
    let mut table = TableDef {
        oid: table.oid,
        name: table.name.clone(),
        storage: table.storage,
        columns: table.columns.clone(),
        indexes: table.indexes.clone(),
        fillfactor: table.fillfactor,
        layout: table.layout.clone(),
        stats: Arc::clone(&table.stats),
    };
    change(&mut table);
    state.insert(Arc::new(table));
}
