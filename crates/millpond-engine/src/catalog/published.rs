//! The committed catalog, and how it is found: a generation counter beside the current state.
//!
//! Readers compare the counter with the generation that they know; as long as it is the same they look no
//! further. Whoever commits DDL does its steps on the current state under the mutex and publishes the result,
//! after its commit is durable and while it still holds its locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use millpond_buffer::RelationId;
use millpond_sync::sync::Mutex;

use super::change::Change;
use super::def::Oid;
use super::state::CatalogState;
use crate::error::{EngineError, EngineResult};

/// The committed catalog, and the numbers given to new relations.
#[derive(Debug)]
pub(crate) struct Published {
    /// The generation of `state`. Release after the state has changed, Acquire before it is looked at.
    generation: AtomicU64,
    state: Mutex<Arc<CatalogState>>,
    next_oid: AtomicU32,
    next_storage: AtomicU32,
}

impl Published {
    pub(crate) fn new(mut state: CatalogState, next_oid: Oid, next_storage: u32) -> Self {
        state.generation = 1;
        Self {
            generation: AtomicU64::new(1),
            state: Mutex::new(Arc::new(state)),
            next_oid: AtomicU32::new(next_oid),
            next_storage: AtomicU32::new(next_storage),
        }
    }

    /// The number of the current state. One load.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn state(&self) -> Arc<CatalogState> {
        Arc::clone(&self.state.lock())
    }

    /// Does the steps of a committing transaction.
    pub(crate) fn publish(&self, changes: &[Change]) {
        let mut current = self.state.lock();
        let mut next = CatalogState::clone(&current);
        for change in changes {
            change.apply(&mut next);
        }
        next.generation += 1;
        let generation = next.generation;
        *current = Arc::new(next);
        self.generation.store(generation, Ordering::Release);
    }

    /// A number for a new table or index. Never given twice between two starts.
    pub(crate) fn new_oid(&self) -> EngineResult<Oid> {
        let oid = self.next_oid.fetch_add(1, Ordering::Relaxed);
        if oid == Oid::MAX {
            return Err(EngineError::LimitExceeded { what: "oids are used up" });
        }
        Ok(oid)
    }

    /// The numbers that come next: oid and file.
    pub(crate) fn next_numbers(&self) -> (Oid, u32) {
        (self.next_oid.load(Ordering::Relaxed), self.next_storage.load(Ordering::Relaxed))
    }

    /// A number for a new file.
    pub(crate) fn new_storage(&self) -> EngineResult<RelationId> {
        let number = self.next_storage.fetch_add(1, Ordering::Relaxed);
        RelationId::new(number)
            .ok_or(EngineError::LimitExceeded { what: "file numbers are used up" })
    }
}
