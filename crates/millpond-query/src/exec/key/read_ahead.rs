//! Reading ahead for a list of keys.
//!
//! The rows of a list are read one by one, which is fastest as long as their pages are in memory.
//! If they are not, the session would wait for one page after the other. So after its first wait it
//! looks up the next rows together ([`Session::lookup_many`]). Their pages are then read at the
//! same time. What that finds is not used: the rows are read one by one as before, from pages in
//! memory.

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::session::{LookupBatch, Session};

/// How many rows are looked up together first. Each later time there are twice as many.
const FIRST_KEYS: usize = 16;
const MOST_KEYS: usize = 256;
/// For fewer rows, little can be done at the same time.
const FEWEST_KEYS: usize = 3;
/// A row has a leaf and a page of the table, rarely more. At most an eighth of the pool is read
/// ahead, so that the pages are still there when they are used.
const FRAMES_FOR_KEY: usize = 16;
/// Memory in bytes above this is not kept.
const BYTES_KEPT: usize = 256 << 10;

/// How far a list has been read ahead.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    /// How many pages the session had loaded when it last looked; `None`: the list has just begun.
    loads: Option<u64>,
    /// The number of the first key that has not been read ahead.
    next: usize,
    /// How many keys to look up together next.
    size: usize,
    batch: Option<Box<LookupBatch>>,
}

impl ReadAhead {
    /// Begins another list.
    pub(super) fn begin(&mut self) {
        (self.loads, self.next, self.size) = (None, 0, FIRST_KEYS);
    }

    /// How many keys to look up together now. `None`: their pages have been read ahead, or no page
    /// was missing since the last call. `at` is the number of the key whose row comes next. About
    /// `wanted` rows of the list will be read.
    pub(super) fn keys_now(
        &mut self,
        at: usize,
        wanted: usize,
        session: &Session,
    ) -> Option<usize> {
        if at < self.next {
            return None;
        }
        let loads = session.page_loads();
        if self.loads.replace(loads)? == loads || !session.reads_ahead() {
            return None;
        }
        let most = self.size.min(session.pool_frames() / FRAMES_FOR_KEY);
        // More rows than were wanted: a filter leaves some out.
        let keys = if at < wanted { most.min(wanted - at) } else { most };
        (keys >= FEWEST_KEYS).then_some(keys)
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
        self.next = at + batch.len();
        self.size = (2 * self.size).min(MOST_KEYS);
        // An error is not reported here: reading that row meets it again. If the statement ends
        // before that row, it must not fail. A cancel stays set. As the rows are not used, a key
        // may have two of them (`Session::may_see_keys_twice`).
        session.lookup_many(table, index, batch).ok();
        self.batch.take_if(|batch| batch.memory() > BYTES_KEPT);
    }
}
