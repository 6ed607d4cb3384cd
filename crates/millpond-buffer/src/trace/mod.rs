//! Page traces: recordings of the page accesses of a live pool. A record says which page was asked
//! for, when, by which session and for what.
//!
//! ```text
//!   session: note ─▶ its chunk ──full──▶ PageTrace::hand_over ──queue──▶ writer thread ─▶ file
//!                       ▲                           │
//!                       └───── an empty chunk ──────┘
//!
//!   queue full: the chunk's records are dropped, and counted
//! ```
//!
//! **State.** A session that records owns one [`TraceChunk`] and writes to no other memory. In a
//! pool without [`crate::PoolConfig::trace`] the sessions have no chunk, and pay a predictable
//! branch per access. When a session ends, it hands over what it has left.
//!
//! **Order.** A chunk says when it was begun and when it was handed over. Within a session the
//! order of accesses is exact. Between sessions, a reader assumes that the accesses of each chunk
//! are evenly spread over its time.
//!
//! **Failure.** Recording never makes an access fail or wait. Records that can't be kept are
//! dropped and counted, in the file as well ([`TraceChunk::dropped`]). A file that breaks off can
//! be read up to its last whole chunk.
//!
//! The bytes are described in `codec`.

#[cfg(feature = "trace-file")]
pub mod codec;
#[cfg(feature = "trace-file")]
mod file;
#[cfg(all(test, feature = "trace-file", not(any(loom, shuttle))))]
mod tests;

use crate::ids::{BlockNumber, PageId, RelationId};
use crate::threads::catch_panic;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "trace-file")]
pub use codec::{TraceError, TraceReader, TracedChunk};
#[cfg(feature = "trace-file")]
pub use file::{TraceFile, TraceStats};

/// The most records in a chunk.
pub const CHUNK_RECORDS: usize = if cfg!(miri) { 32 } else { 1024 };

/// The way in which a page was asked for. Bits 0 and 1 are the kind of work, as
/// [`TraceFlags::NORMAL`] and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct TraceFlags(pub u8);

impl TraceFlags {
    /// Transactions, and all that isn't bulk work.
    pub const NORMAL: TraceFlags = TraceFlags(0);
    /// A large sequential scan.
    pub const BULK_READ: TraceFlags = TraceFlags(1);
    /// COPY and the like.
    pub const BULK_WRITE: TraceFlags = TraceFlags(2);
    /// VACUUM.
    pub const VACUUM: TraceFlags = TraceFlags(3);
    /// The page is new: this access extended its fork by it.
    pub const EXTEND: TraceFlags = TraceFlags(1 << 2);
    /// The page was in memory.
    pub const HIT: TraceFlags = TraceFlags(1 << 3);
    /// The bits that have a meaning.
    pub const MASK: u8 = 0xf;

    /// The bits of both.
    #[must_use]
    pub const fn with(self, more: TraceFlags) -> Self {
        Self(self.0 | more.0)
    }

    /// Whether it has all the bits of `other`.
    #[must_use]
    pub const fn has(self, other: TraceFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The kind of work: 0 to 3.
    #[must_use]
    pub const fn kind(self) -> u8 {
        self.0 & 3
    }
}

/// A request for a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRecord {
    /// The page.
    pub page: PageId,
    /// How it was asked for.
    pub flags: TraceFlags,
}

/// The records of one session that it has not handed over.
pub struct TraceChunk {
    session: u32,
    started_nanos: u64,
    ended_nanos: u64,
    dropped: u32,
    len: usize,
    pages: [PageId; CHUNK_RECORDS],
    flags: [u8; CHUNK_RECORDS],
}

impl TraceChunk {
    /// A chunk without records.
    #[must_use]
    pub fn new() -> Box<Self> {
        Box::new(Self {
            session: 0,
            started_nanos: 0,
            ended_nanos: 0,
            dropped: 0,
            len: 0,
            pages: [RelationId::constant(0).main().page(BlockNumber::ZERO); CHUNK_RECORDS],
            flags: [0; CHUNK_RECORDS],
        })
    }

    /// Adds a record; `true` if the chunk is full now.
    #[inline]
    fn push(&mut self, page: PageId, flags: TraceFlags) -> bool {
        if let (Some(at), Some(flag)) = (self.pages.get_mut(self.len), self.flags.get_mut(self.len))
        {
            (*at, *flag) = (page, flags.0);
            self.len += 1;
        }
        self.len >= CHUNK_RECORDS
    }

    /// Whether it has neither records nor losses to report.
    fn is_idle(&self) -> bool {
        self.len == 0 && self.dropped == 0
    }

    /// The session's number.
    #[must_use]
    pub fn session(&self) -> u32 {
        self.session
    }

    /// The number of the session's records that were lost before this chunk.
    #[must_use]
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// When it was begun and when it was handed over, by the trace's clock.
    #[must_use]
    pub fn span_nanos(&self) -> (u64, u64) {
        (self.started_nanos, self.ended_nanos)
    }

    /// The records, oldest first.
    pub fn records(&self) -> impl ExactSizeIterator<Item = TraceRecord> {
        let records = self.pages[..self.len].iter().zip(&self.flags[..self.len]);
        records.map(|(page, flags)| TraceRecord { page: *page, flags: TraceFlags(*flags) })
    }

    /// Empties the chunk and begins it anew for a session.
    fn restart(&mut self, session: u32, now_nanos: u64) {
        (self.session, self.started_nanos) = (session, now_nanos);
        (self.len, self.dropped) = (0, 0);
    }
}

impl fmt::Debug for TraceChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceChunk")
            .field("session", &self.session)
            .field("records", &self.len)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

/// The sink to which sessions hand over what they have recorded.
pub trait PageTrace: Send + Sync + fmt::Debug {
    /// Nanoseconds since recording began.
    fn now_nanos(&self) -> u64;

    /// Takes a chunk's contents and leaves an empty chunk. If it can't keep up, it leaves the chunk
    /// alone and returns `false`, and the chunk's records are dropped. Must not wait: event loops
    /// call it.
    fn hand_over(&self, chunk: &mut Box<TraceChunk>) -> bool;

    /// Called with the number of records that were dropped and that no later chunk of their session
    /// reports.
    fn lost(&self, records: u64);
}

/// A session's side of recording.
pub(crate) struct SessionTrace {
    sink: Arc<dyn PageTrace>,
    session: u32,
    chunk: RefCell<Box<TraceChunk>>,
}

impl SessionTrace {
    pub(crate) fn new(sink: &Arc<dyn PageTrace>, session: usize) -> Self {
        let session = session as u32;
        let mut chunk = TraceChunk::new();
        chunk.restart(session, catch_panic("a trace's clock", || sink.now_nanos()).unwrap_or(0));
        Self { sink: Arc::clone(sink), session, chunk: RefCell::new(chunk) }
    }

    /// Records an access.
    #[inline]
    pub(crate) fn note(&self, page: PageId, flags: TraceFlags) {
        // No other borrow can exist: a sink does not know the session.
        if let Ok(mut chunk) = self.chunk.try_borrow_mut()
            && chunk.push(page, flags)
        {
            self.hand_over(&mut chunk);
        }
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&self, chunk: &mut Box<TraceChunk>) {
        let lost = chunk.dropped.saturating_add(chunk.len as u32);
        let mut now = chunk.ended_nanos;
        // A panic of the sink is caught here: the session may have a pin or a latch that no guard
        // knows of yet. After the panic, nothing is known about the chunk's contents.
        let taken = catch_panic("the end of a trace's chunk", || {
            now = self.sink.now_nanos();
            chunk.ended_nanos = now;
            self.sink.hand_over(chunk)
        });
        chunk.restart(self.session, now);
        if taken != Some(true) {
            chunk.dropped = lost;
        }
    }
}

impl Drop for SessionTrace {
    fn drop(&mut self) {
        let mut chunk = self.chunk.borrow_mut();
        if !chunk.is_idle() {
            self.hand_over(&mut chunk);
            let lost = u64::from(chunk.dropped);
            catch_panic("a report of lost records to the trace", || self.sink.lost(lost));
        }
    }
}
