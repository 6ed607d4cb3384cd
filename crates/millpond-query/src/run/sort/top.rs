//! The first rows of an order, kept while rows come.

use std::cmp::Ordering;
use std::sync::Arc;

use millpond_sync::mutant;

use crate::error::Result;
use crate::memory::{Held, SessionMemory};
use crate::run::kept;

/// A row's key, and the row.
type KeyedRow = (Vec<u8>, Vec<u8>);

/// At most `wanted` rows, in order. Of rows whose keys are equal those that came first are kept.
pub(super) struct Top {
    rows: Vec<KeyedRow>,
    wanted: usize,
    used: usize,
    held: Held,
}

impl Top {
    pub(super) fn new(wanted: usize, memory: &Arc<SessionMemory>) -> Self {
        Self { rows: Vec::new(), wanted, used: 0, held: Held::new(memory, "Sort") }
    }

    /// Once there are enough rows, the key that another one must be before.
    pub(super) fn last(&self) -> Option<&[u8]> {
        let is_full = self.rows.len() == self.wanted;
        is_full.then(|| self.rows.last().map_or(&[][..], |(key, _)| key))
    }

    /// Adds a row that is before [`Self::last`].
    pub(super) fn insert(
        &mut self,
        new_key: &[u8],
        write_row: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let is_full = self.rows.len() == self.wanted;
        let equal_is_before = !mutant!("sort-top-equal-rows-first");
        let place = self.rows.partition_point(|(before, _)| match before.as_slice().cmp(new_key) {
            Ordering::Equal => equal_is_before,
            order => order.is_lt(),
        });
        let (mut key, mut row) = match if is_full { self.rows.pop() } else { None } {
            Some((key, row)) => {
                self.used -= key.capacity() + row.capacity();
                (key, row)
            }
            None => (Vec::new(), Vec::with_capacity(kept::SMALL_ROW)),
        };
        key.clear();
        key.extend_from_slice(new_key);
        row.clear();
        write_row(&mut row)?;
        self.used += key.capacity() + row.capacity();
        self.rows.insert(place, (key, row));
        self.held.resize(self.used + self.rows.capacity() * size_of::<KeyedRow>())
    }

    /// A row by its place in the order.
    pub(super) fn row(&self, place: usize) -> Option<&[u8]> {
        self.rows.get(place).map(|(_, row)| row.as_slice())
    }
}
