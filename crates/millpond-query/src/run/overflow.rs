//! The rows for which a hash table of groups or of distinct rows has no room.
//!
//! A full table takes no more keys. A row with a key that it does not have waits in a partition,
//! chosen by the key's hash. When the table's results have been given, each partition is read into
//! an empty table. That may become full as well: its rows wait at another level.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::Work;
use crate::error::Result;
use crate::memory::{Held, PartRows, Partitions, Resources};

/// How many partitions a level has.
const PARTITIONS: usize = 32;
/// The least memory of a table.
const LEAST_BYTES: usize = 64 << 10;

/// Rows that wait.
pub(super) struct Overflow {
    operator: &'static str,
    /// Of the pass that is running: it has begun with the first row that found no room.
    filling: Option<Level>,
    /// Of the passes before. The last one is read first.
    waiting: Vec<Level>,
    /// What is read in the pass that is running.
    rows: PartRows,
}

struct Level {
    partitions: Partitions,
    /// Of its own: all keys of a partition are alike to the one of the level above.
    hasher: RandomState,
    next: usize,
}

impl Overflow {
    /// None yet. Errors of memory name `operator`.
    pub(super) fn new(operator: &'static str) -> Self {
        let (filling, waiting, rows) = Default::default();
        Self { operator, filling, waiting, rows }
    }

    /// Whether the table takes no more keys in this pass. `held` counts the table, which has
    /// `count` keys: it always takes one.
    pub(super) fn is_full(&self, count: usize, held: &Held, work: &Work<'_>) -> bool {
        let bound = || work.resources.memory.hash_work().max(LEAST_BYTES);
        self.filling.is_some() || count > 0 && held.used() >= bound()
    }

    /// Whether rows have found no room in this pass.
    pub(super) fn has_begun(&self) -> bool {
        self.filling.is_some()
    }

    /// Counts what a new key takes. If there is no memory for more, it is the table's last.
    pub(super) fn count(
        &mut self,
        bytes: usize,
        count: usize,
        held: &mut Held,
        resources: &Arc<Resources>,
    ) -> Result<()> {
        match held.grow(bytes) {
            Err(_) if count > 1 => {
                self.begin(resources);
                Ok(())
            }
            counted => counted,
        }
    }

    fn begin(&mut self, resources: &Arc<Resources>) -> &mut Level {
        let operator = self.operator;
        self.filling.get_or_insert_with(|| Level {
            partitions: Partitions::new(resources, operator, PARTITIONS),
            hasher: RandomState::default(),
            next: 0,
        })
    }

    /// Lets a row wait, with what says how it is to be read.
    pub(super) fn push(
        &mut self,
        key: &[u8],
        how: &[u8],
        row: &[u8],
        work: &Work<'_>,
    ) -> Result<()> {
        let level = self.begin(work.resources);
        // The hash's upper bits: nothing else is made of this hash.
        let number = (level.hasher.hash_one(key) >> 32) as usize % PARTITIONS;
        level.partitions.push(number, how, row)
    }

    /// Begins a pass over the rows of a partition. False if none wait.
    pub(super) fn next_pass(&mut self) -> bool {
        self.waiting.extend(self.filling.take());
        while let Some(level) = self.waiting.last_mut() {
            while level.next < level.partitions.count() {
                let number = level.next;
                level.next += 1;
                if !level.partitions.is_empty(number) {
                    self.rows = level.partitions.take(number);
                    return true;
                }
            }
            self.waiting.pop();
        }
        false
    }

    /// The next row of the pass, and how it is to be read.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some(level) = self.waiting.last() else { return Ok(None) };
        level.partitions.next(&mut self.rows)
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.operator);
    }
}
