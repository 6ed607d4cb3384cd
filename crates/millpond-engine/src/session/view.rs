//! The catalog as one session sees it: the committed state plus the changes of its own running
//! transaction.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::catalog::change::Change;
use crate::catalog::published::Published;
use crate::catalog::{CatalogState, TableDef};

/// Set in the generation of a state that includes changes of a running transaction.
const OWN: u64 = 1 << 63;
/// The number of definitions known to be current that are remembered.
const KNOWN: usize = 8;

/// A session's catalog.
pub(super) struct CatalogView {
    /// The generation of the committed state under `state`.
    base: u64,
    pub(super) state: Arc<CatalogState>,
    changes: Vec<Change>,
    /// Distinguishes states with changes of the transaction.
    own_generation: u64,
    /// Addresses of definitions that `state` holds and so keeps alive.
    known: SmallVec<[usize; KNOWN]>,
}

impl CatalogView {
    pub(super) fn new(published: &Published) -> Self {
        let state = published.state();
        let base = state.generation();
        Self { base, state, changes: Vec::new(), own_generation: OWN, known: SmallVec::new() }
    }

    /// Catches up with the committed catalog.
    #[inline]
    pub(super) fn refresh(&mut self, published: &Published) {
        if published.generation() != self.base {
            self.rebuild(published);
        }
    }

    fn rebuild(&mut self, published: &Published) {
        let committed = published.state();
        self.known.clear();
        self.base = committed.generation();
        self.state = committed;
        if !self.changes.is_empty() {
            let mut state = CatalogState::clone(&self.state);
            for change in &self.changes {
                change.apply(&mut state);
            }
            self.own_generation += 1;
            state.generation = self.own_generation;
            self.state = Arc::new(state);
        }
    }

    /// Adds a change of the running transaction.
    pub(super) fn change(&mut self, change: Change, published: &Published) {
        self.changes.push(change);
        self.rebuild(published);
    }

    /// Whether the running transaction has changed no definition.
    pub(super) fn is_unchanged(&self) -> bool {
        self.changes.is_empty()
    }

    /// Removes the running transaction's changes, and returns them.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        if self.changes.is_empty() {
            return Vec::new();
        }
        // The next use finds the base outdated.
        self.base = 0;
        std::mem::take(&mut self.changes)
    }

    /// Whether the definition is the current one.
    #[inline]
    pub(super) fn is_current(&mut self, table: &Arc<TableDef>) -> bool {
        let address = Arc::as_ptr(table).addr();
        if self.known.contains(&address) {
            return true;
        }
        let current = self.state.table(table.oid).is_some_and(|known| Arc::ptr_eq(known, table));
        if current {
            if self.known.len() == KNOWN {
                self.known.remove(0);
            }
            self.known.push(address);
        }
        current
    }
}
