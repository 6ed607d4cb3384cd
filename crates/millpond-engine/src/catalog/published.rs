//! The committed catalog in memory, with a generation counter.
//!
//! A reader compares the counter with the generation that it knows. While they are equal, its copy
//! is current. A session that commits DDL applies its steps to the current state under the mutex
//! and publishes the result. It does so after its commit is durable and while it still holds its
//! locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use millpond_buffer::RelationId;
use millpond_sync::sync::Mutex;

use super::change::Change;
use super::state::CatalogState;
use crate::error::{EngineError, EngineResult};
use crate::ids::Oid;

/// File numbers from here on are never assigned. A number has 28 bits; the last 1024 are kept for
/// repairs.
const FILE_NUMBERS: u32 = RelationId::MAX.get() + 1 - 1024;
/// The engine warns when fewer numbers are left: a sixteenth of all.
pub(crate) const FILE_NUMBERS_WARNING: u32 = 1 << 24;
/// The number of file numbers used between two warnings in the server's log.
const LOG_EVERY: u32 = 1 << 16;

/// The committed catalog, and the next numbers for new relations.
#[derive(Debug)]
pub(crate) struct Published {
    /// The generation of `state`: stored with Release after the state has changed, loaded with
    /// Acquire before the state is read.
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

    /// The generation of the current state. One load.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn state(&self) -> Arc<CatalogState> {
        Arc::clone(&self.state.lock())
    }

    /// Applies the steps of a committing transaction and publishes the result.
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

    /// A number for a new table or index. It is never assigned twice between two starts.
    pub(crate) fn new_oid(&self) -> EngineResult<Oid> {
        let used_up = EngineError::LimitExceeded {
            what: "the database has used up its OIDs; dump it and restore it into a new one",
        };
        draw(&self.next_oid, Oid::MAX).ok_or(used_up)
    }

    /// The numbers that are assigned next: oid and file number.
    pub(crate) fn next_numbers(&self) -> (Oid, u32) {
        (self.next_oid.load(Ordering::Relaxed), self.next_storage.load(Ordering::Relaxed))
    }

    /// A number for a new file. No number is ever reused: what the log or a backup still holds of
    /// an old file would be taken for the new file's contents.
    pub(crate) fn new_storage(&self) -> EngineResult<RelationId> {
        let used_up = EngineError::LimitExceeded {
            what: "the database has used up its file numbers; dump it and restore it into a new one",
        };
        let number = draw(&self.next_storage, FILE_NUMBERS).and_then(RelationId::new);
        let left = self.file_numbers_left();
        if number.is_some() && left < FILE_NUMBERS_WARNING && left.is_multiple_of(LOG_EVERY) {
            tracing::warn!(left, "the database will run out of file numbers");
        }
        number.ok_or(used_up)
    }

    /// How many files can still be created.
    pub(crate) fn file_numbers_left(&self) -> u32 {
        FILE_NUMBERS.saturating_sub(self.next_storage.load(Ordering::Relaxed))
    }
}

/// Draws the next number below a limit.
fn draw(next: &AtomicU32, limit: u32) -> Option<u32> {
    let next_of = |number: u32| number.checked_add(1).filter(|next| *next <= limit);
    next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next_of).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_up_numbers_are_an_error_and_never_reused() {
        let published = Published::new(CatalogState::default(), Oid::MAX - 1, FILE_NUMBERS - 1);
        assert_eq!(published.new_oid().unwrap(), Oid::MAX - 1);
        assert_eq!(published.new_storage().unwrap().get(), FILE_NUMBERS - 1);
        for _ in 0..3 {
            assert!(matches!(published.new_oid(), Err(EngineError::LimitExceeded { .. })));
            let error = published.new_storage().unwrap_err().to_string();
            assert!(error.contains("used up its file numbers"), "{error}");
        }
        assert_eq!(published.next_numbers(), (Oid::MAX, FILE_NUMBERS));
        assert_eq!(published.file_numbers_left(), 0);
    }
}
