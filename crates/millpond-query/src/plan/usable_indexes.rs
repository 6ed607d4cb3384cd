//! Which indexes a transaction may use: some are too new for its snapshot.

use std::cell::Cell;
use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::session::Session;

use crate::system_relations::is_system;

/// Which indexes a plan may use.
pub struct UsableIndexes<'a> {
    pub(super) session: &'a Session,
    /// Some index is too new for the session's snapshot.
    passed_over: Cell<bool>,
}

impl<'a> UsableIndexes<'a> {
    pub fn new(session: &'a Session) -> Self {
        Self { session, passed_over: Cell::new(false) }
    }

    /// Whether a plan has had to do without one.
    pub fn passed_over(&self) -> bool {
        self.passed_over.get()
    }

    /// Rows of a table, as far as known.
    pub(crate) fn live_rows(&self, table: &TableDef) -> i64 {
        if is_system(table) {
            return 0;
        }
        // Nothing is known until it is open.
        let _ = self.session.block_count(table);
        table.stats.live_rows()
    }

    /// Those of a table. One that can't be judged is not used.
    pub(crate) fn of<'t>(
        &'t self,
        table: &'t TableDef,
    ) -> impl Iterator<Item = &'t Arc<IndexDef>> + 't {
        table.indexes.iter().filter(|index| {
            let usable = self.session.is_usable(index).unwrap_or(false);
            if !usable {
                self.passed_over.set(true);
            }
            usable
        })
    }
}
