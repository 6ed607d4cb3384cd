//! The definitions of tables that a session's statements use.

use std::sync::Arc;

use super::Session;
use crate::catalog::change::Change;
use crate::catalog::{CatalogState, Relation};
use crate::error::EngineResult;
use crate::table::TableError;

impl Session {
    /// The catalog as this session sees it.
    pub fn catalog(&self) -> Arc<CatalogState> {
        let mut view = self.view.borrow_mut();
        view.refresh(self.engine.published());
        Arc::clone(&view.state)
    }

    /// The generation of the catalog that this session sees. While it is the same, no definition
    /// has changed. One load.
    pub fn catalog_generation(&self) -> u64 {
        let mut view = self.view.borrow_mut();
        view.refresh(self.engine.published());
        view.state.generation()
    }

    /// Whether this session sees the definitions that a statement would see that begins now. It
    /// does if its transaction has changed none and holds no older snapshot.
    pub fn sees_the_latest_catalog(&self) -> bool {
        self.view.borrow().is_unchanged() && !self.transaction.holds_snapshot()
    }

    /// The table or index with this name, or an error.
    pub fn relation(&self, name: &str) -> EngineResult<Relation> {
        self.catalog()
            .relation(name)
            .ok_or_else(|| TableError::UndefinedRelation(name.to_owned()).into())
    }

    pub(super) fn change_catalog(&self, change: Change) {
        self.view.borrow_mut().change(change, self.engine.published());
    }
}
