//! The memory of queries: what all sessions may have together, and what one session holds.
//!
//! ```text
//! QueryMemory (query_memory_limit) <- SessionMemory (work_mem) <- DataFusion's operators
//!                                                              <- Held: what Millpond's executor
//!                                                                 keeps (Tuplestore, Sorter,
//!                                                                 Partitions, hash tables)
//! ```
//!
//! Two bounds, of different kinds:
//!
//! - `work_mem` (for hash tables times `hash_mem_multiplier`) is for one operator. An operator that
//!   can go on in a temporary file does so when it has that much.
//! - `query_memory_limit` is for all operators of all sessions. An operator that can't go on in a
//!   file, and finds too little left, ends its statement with 53200. One session gets at most three
//!   quarters, so that others can work beside it.
//!
//! Counts are relaxed: they order nothing. A request counts before it is judged. So two at a time
//! may both be refused where one would have fitted. They are never both granted where one fits.

mod byte_rows;
mod machine;
mod partitions;
pub(crate) mod row_bytes;
mod row_store;
mod sort;
mod spill;
mod tuplestore;
mod value_room;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use millpond_engine::session::Session;
use millpond_engine::{TempFiles, TempSpace};
use millpond_sync::heap;

use crate::error::{Result, SqlError, SqlState};

pub(crate) use byte_rows::ByteRows;
pub use machine::machine_bytes;
pub(crate) use partitions::{PartRows, Partitions};
pub use row_bytes::Datums;
pub(crate) use row_store::{Cursor, RowStore};
pub(crate) use sort::{Collected, Sorted, Sorter, appending};
#[cfg(test)]
pub(crate) use tuplestore::tests as tuplestore_tests;
pub use tuplestore::{Rows, Tuplestore};
pub use value_room::ValueRoom;

/// The least that `query_memory_limit` is by default.
const LEAST_DEFAULT: u64 = 16 << 20;
/// What a [`Held`] takes at a time.
const STEP: usize = 64 << 10;
/// What a [`Held`] has without taking it: the operators of a short statement would otherwise write
/// to the server's count, which all sessions share.
const UNCOUNTED: usize = 8 << 10;

/// From how much on the memory of a statement is given back to the system at its end.
const MUCH: usize = 32 << 20;

/// What `query_memory_limit` is by default, in bytes: half of what the machine (or the control
/// group) has beside the buffer pool.
pub fn default_limit(machine: u64, shared_buffers: u64) -> u64 {
    (machine.saturating_sub(shared_buffers) / 2).max(LEAST_DEFAULT)
}

/// The memory that the queries of all sessions share.
#[derive(Debug)]
pub struct QueryMemory {
    limit: usize,
    used: AtomicUsize,
}

impl QueryMemory {
    /// `limit` bytes for all.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    /// Bytes that are in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that may be in use.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

/// What the operators of one session hold, and may.
#[derive(Debug)]
pub struct SessionMemory {
    server: Arc<QueryMemory>,
    used: AtomicUsize,
    /// The most that was in use since the system last got free memory back.
    peak: AtomicUsize,
    work: AtomicUsize,
    hash_work: AtomicUsize,
}

impl SessionMemory {
    pub fn new(server: &Arc<QueryMemory>) -> Arc<Self> {
        let (used, peak, work, hash_work) = Default::default();
        Arc::new(Self { server: Arc::clone(server), used, peak, work, hash_work })
    }

    /// Sets `work_mem` and `hash_mem_multiplier`.
    pub fn set_work(&self, bytes: usize, hash_multiplier: f64) {
        self.work.store(bytes, Ordering::Relaxed);
        self.hash_work.store((bytes as f64 * hash_multiplier) as usize, Ordering::Relaxed);
    }

    /// `work_mem`, in bytes.
    pub fn work(&self) -> usize {
        self.work.load(Ordering::Relaxed)
    }

    /// `work_mem` times `hash_mem_multiplier`.
    pub fn hash_work(&self) -> usize {
        self.hash_work.load(Ordering::Relaxed)
    }

    /// What the session's operators hold.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The most that one session may have.
    pub fn share(&self) -> usize {
        self.server.limit / 4 * 3
    }

    /// Takes memory for an operator. An error if the server's bound or the session's share of it
    /// leaves too little.
    pub fn take(&self, bytes: usize, operator: &str) -> Result<()> {
        let (server, share) = (&self.server, self.share());
        let all = server.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let own = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if all > server.limit || own > share {
            self.give_back(bytes);
            return Err(out_of_memory(bytes, operator));
        }
        self.peak.fetch_max(own, Ordering::Relaxed);
        Ok(())
    }

    /// Counts memory that is in use already.
    pub fn count(&self, bytes: usize) {
        self.server.used.fetch_add(bytes, Ordering::Relaxed);
        let own = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.peak.fetch_max(own, Ordering::Relaxed);
    }

    /// Gives memory back.
    pub fn give_back(&self, bytes: usize) {
        self.server.used.fetch_sub(bytes, Ordering::Relaxed);
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// After a statement, whose memory is free by now: the system gets it back if it is much.
    #[inline]
    pub(crate) fn statement_ended(&self) {
        if self.peak.load(Ordering::Relaxed) >= MUCH {
            self.give_back_to_system();
        }
    }

    #[cold]
    fn give_back_to_system(&self) {
        self.peak.store(0, Ordering::Relaxed);
        heap::give_back_free();
    }
}

/// What a session's operators keep rows in. It is made once for each session. A statement that took
/// the pointers anew would write to the count of the server's [`TempFiles`], which all sessions
/// share.
#[derive(Debug)]
pub struct Resources {
    /// The session's memory.
    pub memory: Arc<SessionMemory>,
    /// The directory of temporary files.
    pub temp_files: Arc<TempFiles>,
    /// The session's room in there.
    pub temp_space: Arc<TempSpace>,
}

impl Resources {
    /// Those of a session.
    pub fn new(session: &Session, server: &Arc<QueryMemory>) -> Arc<Self> {
        Arc::new(Self {
            memory: SessionMemory::new(server),
            temp_files: Arc::clone(session.engine().temp_files()),
            temp_space: Arc::clone(session.temp_space()),
        })
    }
}

/// The error of a request for memory that is not to be had, as PostgreSQL words it.
#[cold]
pub fn out_of_memory(bytes: usize, operator: &str) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .detail(format!("Failed on request of size {bytes} in operator \"{operator}\"."))
        .hint("The queries of all sessions share query_memory_limit.")
}

/// Memory that rows take which the executor keeps, given back when dropped.
#[derive(Debug)]
pub struct Held {
    memory: Arc<SessionMemory>,
    operator: &'static str,
    used: usize,
    taken: usize,
}

impl Held {
    pub fn new(memory: &Arc<SessionMemory>, operator: &'static str) -> Self {
        Self { memory: Arc::clone(memory), operator, used: 0, taken: 0 }
    }

    /// The bytes that are counted.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Counts more bytes; after an error as many as before.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        let used = self.used.saturating_add(bytes);
        if used > self.taken + UNCOUNTED {
            let step = (used - self.taken).max(STEP);
            self.memory.take(step, self.operator)?;
            self.taken += step;
        }
        self.used = used;
        Ok(())
    }

    /// Counts `bytes` instead of what it counts.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.used {
            return self.grow(bytes - self.used);
        }
        self.used = bytes;
        let spare = self.taken.saturating_sub(bytes);
        if spare > STEP {
            self.memory.give_back(spare);
            self.taken = bytes;
        }
        Ok(())
    }

    /// Gives back all of it.
    pub(crate) fn clear(&mut self) {
        if self.taken > 0 {
            self.memory.give_back(self.taken);
        }
        (self.used, self.taken) = (0, 0);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

/// About how many bytes some values take.
pub(crate) fn bytes_of(values: &[crate::Value]) -> usize {
    let more = |value: &crate::Value| match value {
        crate::Value::Text(text) => text.capacity(),
        crate::Value::Bytea(bytes) => bytes.capacity(),
        crate::Value::Other(_, bytes) => bytes.len(),
        // Its digits are elsewhere.
        crate::Value::Numeric(_) => 32,
        _ => 0,
    };
    let own = size_of::<Vec<crate::Value>>() + size_of_val(values);
    own + values.iter().map(more).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_the_limit_and_leave_each_other_a_quarter() {
        let server = QueryMemory::new(1000);
        let (one, other) = (SessionMemory::new(&server), SessionMemory::new(&server));
        one.take(750, "Sort").unwrap();
        let error = one.take(1, "Sort").unwrap_err();
        assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY);
        assert_eq!(error.message, "out of memory");
        let detail = "Failed on request of size 1 in operator \"Sort\".";
        assert_eq!(error.detail.as_deref(), Some(detail));
        other.take(250, "Sort").unwrap();
        other.take(1, "Sort").unwrap_err();
        one.give_back(750);
        other.give_back(250);
        assert_eq!((server.used(), one.used(), other.used()), (0, 0, 0));
    }

    #[test]
    fn rows_that_are_held_are_given_back() {
        let server = QueryMemory::new(1 << 20);
        let session = SessionMemory::new(&server);
        let mut held = Held::new(&session, "rows");
        held.grow(10).unwrap();
        assert_eq!(server.used(), 0, "too little to be counted");
        held.grow(UNCOUNTED).unwrap();
        assert_eq!(server.used(), STEP);
        held.grow(100_000).unwrap();
        assert!(server.used() >= 100_010);
        held.grow(1 << 20).unwrap_err();
        held.resize(5).unwrap();
        assert!(server.used() <= STEP);
        drop(held);
        assert_eq!((server.used(), session.used()), (0, 0));
    }

    #[test]
    fn default_is_half_of_what_the_buffer_pool_leaves() {
        assert_eq!(default_limit(700 << 20, 128 << 20), 286 << 20);
        assert_eq!(default_limit(0, 128 << 20), LEAST_DEFAULT);
    }
}
