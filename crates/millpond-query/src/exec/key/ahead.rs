//! Reading ahead for a list of keys.
//!
//! The rows of a list are read one by one, which is fastest as long as their pages are in memory.
//! Where they are not, that would wait for one page after the other. So once the session has had to
//! wait for a page, it has the next rows looked up together ([`Session::lookup_many`]), which reads
//! their pages at the same time. What that finds is not used: the rows are then read one by one as
//! before, from pages in memory.

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::session::{LookupBatch, Session};

/// How many rows are looked up together first. Each later time there are twice as many, so that a
/// LIMIT leaves at most half of them unused.
const FIRST_KEYS: usize = 16;
const MOST_KEYS: usize = 256;
/// For fewer rows, little can be done at the same time.
pub(super) const FEWEST_KEYS: usize = 3;
/// A row may need some pages, and at most a part of the pool is read ahead: the pages must still be
/// there when they are used.
const FRAMES_FOR_KEY: usize = 16;

/// How far a list has been read ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// How many pages the session had waited for when this was looked at; `None`: it was not.
    misses: Option<u64>,
    /// The number of the first key that has not been read ahead.
    next: usize,
    /// How many keys were read ahead the last time.
    keys: usize,
    batch: Option<Box<LookupBatch>>,
}

impl Ahead {
    /// Begins another list.
    pub(super) fn begin(&mut self) {
        (self.misses, self.next, self.keys) = (None, 0, 0);
    }

    /// How many keys to read ahead now. `None`: none, because they have been, or pages seem to be
    /// in memory. `at`: the number of the key whose row comes next.
    pub(super) fn keys_now(&mut self, at: usize, session: &Session) -> Option<usize> {
        if at < self.next {
            return None;
        }
        let misses = session.misses();
        if self.misses.replace(misses)? == misses {
            return None;
        }
        let most = MOST_KEYS.min(session.pool_frames() / FRAMES_FOR_KEY);
        Some((2 * self.keys).max(FIRST_KEYS).min(most))
    }

    /// Reads the pages of the rows with these keys. `at`: the number of the first one.
    pub(super) fn read<'k>(
        &mut self,
        (at, keys): (usize, impl Iterator<Item = &'k [u8]>),
        session: &Session,
        (table, index): (&TableDef, &IndexDef),
    ) {
        let batch = self.batch.get_or_insert_default();
        batch.clear();
        keys.for_each(|key| batch.push_encoded(key));
        if batch.len() < FEWEST_KEYS {
            return;
        }
        (self.keys, self.next) = (batch.len(), at + batch.len());
        // What fails here fails again when the row is read, if it is.
        session.lookup_many(table, index, batch).ok();
    }
}
