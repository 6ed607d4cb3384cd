//! The pool's statistics: how sessions count. [`PoolStats`] has the sums.
//!
//! Each session counts in a stripe (a block of counters) of its own, so counting touches no line
//! that another session writes (rule 1). When the session ends, its counts move to a stripe for all
//! ended sessions, under the lock of the sessions' numbers. So a stripe has only what its present
//! session has done.
//!
//! A stripe has three parts. I/O events come first, once for each kind of backend and each context
//! (`pg_stat_io`'s rows). The other events follow, then the histograms of the quality of
//! replacement:
//!
//! - frames examined: for each frame that a sweep found, how many it examined; in powers of two
//! - victims' usage: for each page that left, its usage count when the hand first met it after its
//!   last use
//! - victims' age: for each page that left, the number of frames taken from pages while it was
//!   there; in powers of two
//! - regret: for each page that came back, the number of frames taken from pages while it was away;
//!   in powers of two
//!
//! Time is counted in frames taken from pages, by the pool's clock
//! ([`crate::policy::Clock::taken`]). When a page leaves, its absent entry keeps the time. When a
//! page comes, its frame does. Both words are written anyway or are not shared at that moment. A
//! page that its ring releases leaves with the time that its entry had when the page came: a job
//! that passed by changes nothing.

#[cfg(feature = "metrics")]
mod metrics;
mod pool_stats;

use millpond_sync::counters::StripedCounters;
pub(crate) use pool_stats::io_counts;
pub use pool_stats::{IoByContext, IoCounts, PoolStats};

/// The kind of user of a session, as `pg_stat_io` distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(usize)]
#[non_exhaustive]
pub enum BackendKind {
    /// A client's session.
    #[default]
    Client,
    /// Vacuum in the background.
    Autovacuum,
    /// The thread that frees frames before a session needs them.
    BackgroundWriter,
    /// The thread that makes checkpoints.
    Checkpointer,
    /// Anything else: recovery, upkeep.
    Other,
}

impl BackendKind {
    /// All of them, in the order of [`PoolStats::io`].
    pub const ALL: [BackendKind; KINDS] = [
        BackendKind::Client,
        BackendKind::Autovacuum,
        BackendKind::BackgroundWriter,
        BackendKind::Checkpointer,
        BackendKind::Other,
    ];

    /// The kind's name in `pg_stat_io`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BackendKind::Client => "client backend",
            BackendKind::Autovacuum => "autovacuum worker",
            BackendKind::BackgroundWriter => "background writer",
            BackendKind::Checkpointer => "checkpointer",
            BackendKind::Other => "background worker",
        }
    }
}

/// The kind of work for which pages are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(usize)]
#[non_exhaustive]
pub enum IoContext {
    /// Everyday work.
    #[default]
    Normal,
    /// A large scan, in its ring.
    BulkRead,
    /// A large load, in its ring.
    BulkWrite,
    /// Vacuum, in its ring.
    Vacuum,
}

impl IoContext {
    /// All of them, in the order of [`PoolStats::io`].
    pub const ALL: [IoContext; CONTEXTS] =
        [IoContext::Normal, IoContext::BulkRead, IoContext::BulkWrite, IoContext::Vacuum];

    /// The context's name in `pg_stat_io`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            IoContext::Normal => "normal",
            IoContext::BulkRead => "bulkread",
            IoContext::BulkWrite => "bulkwrite",
            IoContext::Vacuum => "vacuum",
        }
    }
}

/// Each kind of backend with each context.
fn rows() -> impl Iterator<Item = (BackendKind, IoContext)> {
    BackendKind::ALL.into_iter().flat_map(|kind| IoContext::ALL.map(|context| (kind, context)))
}

const KINDS: usize = 5;
const CONTEXTS: usize = 4;

/// The events. Those up to [`Event::Fsync`] are counted by kind of backend and context.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Event {
    Hit,
    /// A page read; `ReadCall` is a call that reads pages.
    Read,
    ReadCall,
    Write,
    WriteCall,
    Extended,
    ExtendCall,
    /// A page that left memory for another: found by the sweep. `Reuse`: it was the oldest in a
    /// ring.
    Eviction,
    Reuse,
    /// Microseconds in calls to the store, where they are measured.
    ReadTime,
    WriteTime,
    ExtendTime,
    Fsync,
    // The others.
    Miss,
    Restart,
    LatchedRead,
    LoadWait,
    DirtyEviction,
    Examined,
    Reclaimed,
    ReadAhead,
    /// A page was read again within one pool's worth of frames taken.
    Regret,
}

const IO_EVENTS: usize = Event::Fsync as usize + 1;
const OTHER_EVENTS: usize = Event::Regret as usize + 1 - IO_EVENTS;
const ROWS: usize = KINDS * CONTEXTS;

/// The histograms.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Histogram {
    Examined,
    ExaminedAhead,
    VictimUsage,
    VictimAge,
    RegretAge,
}

/// Buckets of a histogram by powers of two: 0, 1, 2 to 3, 4 to 7, ..
const BUCKETS: usize = 32;
const HISTOGRAMS: usize = Histogram::RegretAge as usize + 1;

const FIRST_OTHER: usize = ROWS * IO_EVENTS;
const FIRST_BUCKET: usize = FIRST_OTHER + OTHER_EVENTS;
const CELLS: usize = FIRST_BUCKET + HISTOGRAMS * BUCKETS;

/// All sessions' cells.
pub(crate) type Counters = StripedCounters<CELLS>;

/// The place where the events of a kind of backend and a context are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IoRow(usize);

impl IoRow {
    pub(crate) fn new(kind: BackendKind, context: IoContext) -> Self {
        Self((kind as usize * CONTEXTS + context as usize) * IO_EVENTS)
    }

    /// The number of the context.
    pub(crate) fn context(self) -> u8 {
        (self.0 / IO_EVENTS % CONTEXTS) as u8
    }
}

/// The cell of an event.
#[inline]
pub(crate) fn cell(row: IoRow, event: Event) -> usize {
    let event = event as usize;
    if event < IO_EVENTS { row.0 + event } else { FIRST_OTHER + event - IO_EVENTS }
}

/// The cell of a value in a histogram by powers of two.
pub(crate) fn log2_cell(histogram: Histogram, value: u64) -> usize {
    let bucket = (u64::BITS - value.leading_zeros()) as usize;
    nth_cell(histogram, bucket)
}

/// The cell of a bucket; the last bucket includes all that follow.
pub(crate) fn nth_cell(histogram: Histogram, bucket: usize) -> usize {
    FIRST_BUCKET + histogram as usize * BUCKETS + bucket.min(BUCKETS - 1)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_count_has_a_cell_of_its_own() {
        let events = [Event::Hit, Event::Fsync];
        let mut seen = HashSet::new();
        for kind in BackendKind::ALL {
            for context in IoContext::ALL {
                for event in events {
                    assert!(seen.insert(cell(IoRow::new(kind, context), event)));
                }
            }
        }
        let row = IoRow::new(BackendKind::Other, IoContext::Vacuum);
        assert!(seen.insert(cell(row, Event::Miss)) && seen.insert(cell(row, Event::Regret)));
        for value in [0, 1, 2, 4, 1 << 30] {
            assert!(seen.insert(log2_cell(Histogram::Examined, value)));
        }
        assert_eq!(log2_cell(Histogram::RegretAge, 5), log2_cell(Histogram::RegretAge, 7));
        assert_eq!(log2_cell(Histogram::RegretAge, u64::MAX), CELLS - 1);
    }
}
