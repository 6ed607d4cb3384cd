//! The batches of a hash join whose inner side does not fit into memory (a hybrid hash join).
//!
//! A key's hash says its batch. Rows of the current batch are in memory or are being looked at; the
//! rows of later ones, of both sides, are in files. If a batch does not fit, there are more batches
//! from then on. A row either stays in its batch or goes to a later one, never to one before.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::memory::{Partitions, Resources};

/// By how much batches become more. A power of two.
const GROWTH: usize = 4;
/// More batches would take more memory for their pieces than they spare.
const MOST: usize = 4096;

pub(super) struct Batches {
    hasher: RandomState,
    /// A power of two.
    count: usize,
    pub(super) current: usize,
    pub(super) inner: Partitions,
    pub(super) outer: Partitions,
}

impl Batches {
    /// One batch.
    pub(super) fn new(resources: &Arc<Resources>) -> Self {
        Self {
            hasher: RandomState::default(),
            count: 1,
            current: 0,
            inner: Partitions::new(resources, "Hash Join", 1),
            outer: Partitions::new(resources, "Hash Join", 1),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The batch of a key. It is the current one or comes later.
    pub(super) fn of(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize & (self.count - 1)
    }

    pub(super) fn can_grow(&self) -> bool {
        self.count < MOST
    }

    /// Makes more of them.
    pub(super) fn grow(&mut self) {
        self.count *= GROWTH;
        self.inner.extend(self.count);
        self.outer.extend(self.count);
    }
}
