//! The catalog as one session sees it: the committed state, and on top of it what the running transaction has
//! done.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Session;
use crate::catalog::change::Change;
use crate::catalog::published::Published;
use crate::catalog::{CatalogState, TableDef};
use crate::error::EngineResult;
use crate::lmgr::{LockMode, LockTag};
use crate::table::TableError;

/// Set in the generation of a state that has changes of a running transaction.
const OWN: u64 = 1 << 63;
/// Definitions known to be current, kept at hand.
const KNOWN: usize = 8;

/// A session's catalog.
pub(super) struct CatalogView {
    /// The committed state's generation below `state`.
    base: u64,
    state: Arc<CatalogState>,
    changes: Vec<Change>,
    /// Tells states with own changes apart.
    own_generation: u64,
    /// Addresses of definitions that `state` holds (and so keeps alive).
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
    fn refresh(&mut self, published: &Published) {
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

    /// Adds a step of the running transaction.
    pub(super) fn change(&mut self, change: Change, published: &Published) {
        self.changes.push(change);
        self.rebuild(published);
    }

    /// Forgets the running transaction's steps, and returns them.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        if self.changes.is_empty() {
            return Vec::new();
        }
        // The next use finds the base out of date.
        self.base = 0;
        std::mem::take(&mut self.changes)
    }

    /// Whether the definition is the current one.
    #[inline]
    fn is_current(&mut self, table: &Arc<TableDef>) -> bool {
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

impl Session {
    /// The catalog as this session sees it.
    pub fn catalog(&self) -> Arc<CatalogState> {
        let mut view = self.view.borrow_mut();
        view.refresh(self.engine.published());
        Arc::clone(&view.state)
    }

    /// The number of the catalog that this session sees: as long as it doesn't change, no definition has.
    /// One load.
    pub fn catalog_generation(&self) -> u64 {
        let mut view = self.view.borrow_mut();
        view.refresh(self.engine.published());
        view.state.generation()
    }

    /// Whether the session sees definitions and indexes as every statement does that begins now: its transaction has
    /// changed none, and has no older snapshot.
    pub fn sees_the_latest_catalog(&self) -> bool {
        self.view.borrow().changes.is_empty() && !self.holds_snapshot()
    }

    /// Locks a table until the end of the transaction (SELECT: `AccessShare`, INSERT, UPDATE, DELETE, COPY:
    /// `RowExclusive`) and checks that the definition is still current: `TableError::StaleDefinition` if not.
    /// Locking again costs little.
    pub fn lock_table(&self, table: &Arc<TableDef>, mode: LockMode) -> EngineResult<()> {
        self.ctx().lock(LockTag::Relation(table.oid), mode)?;
        let mut view = self.view.borrow_mut();
        // Whoever changed the definition published it before he gave his lock back.
        view.refresh(self.engine.published());
        if view.is_current(table) {
            return Ok(());
        }
        Err(TableError::StaleDefinition(table.name.clone()).into())
    }

    pub(super) fn change_catalog(&self, change: Change) {
        self.view.borrow_mut().change(change, self.engine.published());
    }
}
