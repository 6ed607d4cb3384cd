//! The pool's statistics.
//!
//! Each session counts in a stripe (a block of counters) of its own, so counting touches no line
//! that another session writes (rule 1). When the session ends, its counts move to a stripe for all
//! ended sessions, under the lock of the sessions' numbers. So a stripe has only what its present
//! session has done.
//!
//! A stripe has three parts, in this order: I/O events, once for each kind of backend and each
//! context (`pg_stat_io`'s rows); the other events; and the histograms of the quality of
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

mod display;
#[cfg(feature = "metrics")]
mod metrics;

use millpond_sync::counters::StripedCounters;

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
    /// The thread that frees frames ahead of demand.
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

/// What one kind of backend has done in one context: a row of `pg_stat_io`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoCounts {
    /// Requests for pages that were in memory.
    pub hits: u64,
    /// Calls that read pages, and the bytes that they read.
    pub reads: u64,
    /// See [`IoCounts::reads`].
    pub read_bytes: u64,
    /// Calls that wrote pages, and the bytes that they wrote.
    pub writes: u64,
    /// See [`IoCounts::writes`].
    pub write_bytes: u64,
    /// Calls that extended relations, and by how many bytes.
    pub extends: u64,
    /// See [`IoCounts::extends`].
    pub extend_bytes: u64,
    /// Pages that left memory to make room, found by the sweep.
    pub evictions: u64,
    /// Pages that left memory because their ring went on.
    pub reuses: u64,
    /// Calls that made everything written durable.
    pub fsyncs: u64,
    /// Microseconds in calls that read, and of waiting for pages that are being read. Only sessions
    /// that measure them count ([`BufferSession::set_io_timing`]). Reads ahead that no session
    /// waits for count none.
    ///
    /// [`BufferSession::set_io_timing`]: crate::BufferSession::set_io_timing
    pub read_us: u64,
    /// The same for writes, and for waiting until background writes have ended.
    pub write_us: u64,
    /// The same for extending.
    pub extend_us: u64,
    /// Microseconds in calls that made everything durable: always measured.
    pub fsync_us: u64,
}

/// What one backend has done, in the order of [`IoContext::ALL`].
pub type IoByContext = [IoCounts; CONTEXTS];

/// What has happened in a pool since it was made. All values are sums over sessions, approximate
/// while these run.
///
/// Three of them show how well pages are replaced. [`PoolStats::regret`] counts pages that left too
/// early. [`PoolStats::victim_usage`] shows how much the pages that left had been used (best all at
/// 0). [`PoolStats::examined_per_allocation`] shows the cost of finding them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Requests for pages that were in memory.
    pub hits: u64,
    /// Requests for pages that had to be loaded.
    pub misses: u64,
    /// Optimistic reads that were repeated because the page changed meanwhile.
    pub restarts: u64,
    /// Optimistic reads that had to take the shared latch in the end.
    pub latched_reads: u64,
    /// The number of times that a session waited for another's load.
    pub load_waits: u64,
    /// Pages read from the store.
    pub reads: u64,
    /// Pages written to the store.
    pub writes: u64,
    /// Writes, each of one page or of several neighbours.
    pub write_calls: u64,
    /// Pages that left memory to make room.
    pub evictions: u64,
    /// Pages that a session had to write before it could take their frames.
    pub dirty_evictions: u64,
    /// Frames that the clock sweep examined.
    pub frames_examined: u64,
    /// Pages added to the ends of relations.
    pub extended: u64,
    /// Frames freed ahead of demand.
    pub reclaimed: u64,
    /// Pages read ahead of their use, among `reads`. Each counts as a hit when it is used.
    pub read_ahead: u64,
    /// Frames that hold no page now.
    pub free_frames: u64,
    /// Frames that are lost until a restart. Their pages were being read when the device gave up,
    /// and the device may still write to them.
    pub lost_frames: u64,
    /// Frames taken from pages: the clock by which ages are counted.
    pub clock: u64,
    /// By kind of backend and context, in the order of [`BackendKind::ALL`] and [`IoContext::ALL`].
    pub io: [IoByContext; KINDS],
    /// The number of frames that a session examined to get one for a page, apart from frames that
    /// its ring had already. Bucket 0: none, since one was free; n: at least 2^(n-1).
    pub examined_per_allocation: [u64; BUCKETS],
    /// The same for sweeps ahead of demand, each of which brings several frames.
    pub examined_ahead: [u64; BUCKETS],
    /// The usage counts of the pages that left, 0 to 5, when the hand first met them after their
    /// last use.
    pub victim_usage: [u64; crate::policy::MAX_USAGE as usize + 1],
    /// How long pages that left had been there, in frames taken from pages. Bucket 0: 0; n: at
    /// least 2^(n-1).
    pub victim_age: [u64; BUCKETS],
    /// Pages that were read again within one pool's worth of frames taken since they left.
    pub regret: u64,
    /// How long pages that were read again had been away, as [`PoolStats::victim_age`].
    pub regret_age: [u64; BUCKETS],
}

impl PoolStats {
    /// `frames`: the numbers of free and of lost frames. `syncs`: the number of calls that have
    /// made everything durable, and their microseconds.
    pub(crate) fn of(
        counters: &Counters,
        (free_frames, lost_frames): (usize, usize),
        clock: u64,
        syncs: (u64, u64),
    ) -> Self {
        let sum = |cell| counters.sum(cell);
        let mut io = BackendKind::ALL.map(|kind| io_counts(kind, sum));
        let checkpointer = &mut io[BackendKind::Checkpointer as usize][IoContext::Normal as usize];
        checkpointer.fsyncs += syncs.0;
        checkpointer.fsync_us += syncs.1;
        let any = IoRow::new(BackendKind::Client, IoContext::Normal);
        let other = |event| counters.sum(cell(any, event));
        let all = |of: fn(&IoCounts) -> u64| io.iter().flatten().map(of).sum::<u64>();
        let pages = |of: fn(&IoCounts) -> u64| all(of) / crate::PAGE_SIZE as u64;
        Self {
            hits: all(|io| io.hits),
            misses: other(Event::Miss),
            restarts: other(Event::Restart),
            latched_reads: other(Event::LatchedRead),
            load_waits: other(Event::LoadWait),
            reads: pages(|io| io.read_bytes),
            writes: pages(|io| io.write_bytes),
            write_calls: all(|io| io.writes),
            evictions: all(|io| io.evictions + io.reuses),
            dirty_evictions: other(Event::DirtyEviction),
            frames_examined: other(Event::Examined),
            extended: pages(|io| io.extend_bytes),
            reclaimed: other(Event::Reclaimed),
            read_ahead: other(Event::ReadAhead),
            free_frames: free_frames as u64,
            lost_frames: lost_frames as u64,
            clock,
            io,
            examined_per_allocation: histogram(counters, Histogram::Examined),
            examined_ahead: histogram(counters, Histogram::ExaminedAhead),
            victim_usage: histogram(counters, Histogram::VictimUsage),
            victim_age: histogram(counters, Histogram::VictimAge),
            regret: other(Event::Regret),
            regret_age: histogram(counters, Histogram::RegretAge),
        }
    }

    /// The number of frames into which sessions have begun to bring pages, apart from those that
    /// their rings had already (`buffers_alloc`).
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.examined_per_allocation.iter().sum()
    }

    /// What a kind of backend has done in a context.
    #[must_use]
    pub fn io_of(&self, kind: BackendKind, context: IoContext) -> &IoCounts {
        &self.io[kind as usize][context as usize]
    }
}

/// What a kind of backend has done. `of` returns the count in a cell.
pub(crate) fn io_counts(kind: BackendKind, of: impl Fn(usize) -> u64) -> IoByContext {
    IoContext::ALL.map(|context| {
        let count = |event| of(cell(IoRow::new(kind, context), event));
        let bytes = |event| count(event) * crate::PAGE_SIZE as u64;
        IoCounts {
            hits: count(Event::Hit),
            reads: count(Event::ReadCall),
            read_bytes: bytes(Event::Read),
            writes: count(Event::WriteCall),
            write_bytes: bytes(Event::Write),
            extends: count(Event::ExtendCall),
            extend_bytes: bytes(Event::Extended),
            evictions: count(Event::Eviction),
            reuses: count(Event::Reuse),
            fsyncs: count(Event::Fsync),
            read_us: count(Event::ReadTime),
            write_us: count(Event::WriteTime),
            extend_us: count(Event::ExtendTime),
            fsync_us: 0,
        }
    })
}

fn histogram<const N: usize>(counters: &Counters, histogram: Histogram) -> [u64; N] {
    std::array::from_fn(|bucket| counters.sum(nth_cell(histogram, bucket)))
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
