//! Statistics of the log, for `pg_stat_wal` and the log's rows of `pg_stat_io`.

use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::counters::StripedCounters;

/// Which kind of thread led a group of commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leader {
    /// A thread that waited for its own commit or position.
    Backend,
    /// The log's thread, on behalf of tasks that must not block.
    LogThread,
}

/// The cost of writing the log.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LogWrites {
    /// Write calls.
    pub writes: u64,
    /// Bytes that they wrote.
    pub bytes: u64,
    /// Syncs.
    pub syncs: u64,
}

/// Counters of the log since it was opened.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LogStats {
    /// Records inserted.
    pub records: u64,
    /// Images of pages in them.
    pub images: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// How often an insertion waited for room in the ring.
    pub buffers_full: u64,
    /// How often a leader paused to let others join (`commit_delay`).
    pub pauses: u64,
    /// Writes and syncs by threads that waited for their own commits or other positions.
    pub by_backends: LogWrites,
    /// Writes and syncs by the log's thread.
    pub by_log_thread: LogWrites,
}

const RECORDS: usize = 0;
const IMAGES: usize = 1;
const BYTES: usize = 2;
const BUFFERS_FULL: usize = 3;

/// Counters of inserters: a stripe for each slot, which one thread at a time uses.
pub(super) struct InsertCounts(StripedCounters<4>);

impl InsertCounts {
    pub fn new(slots: usize) -> Self {
        Self(StripedCounters::new(slots))
    }

    pub fn add_record(&self, slot: usize, bytes: usize, images: usize) {
        self.0.add(slot, RECORDS, 1);
        self.0.add(slot, BYTES, bytes as u64);
        if images > 0 {
            self.0.add(slot, IMAGES, images as u64);
        }
    }

    pub fn add_wait(&self, slot: usize) {
        self.0.add(slot, BUFFERS_FULL, 1);
    }
}

/// Counters of flushing. A leader, or a thread that writes ahead, counts writes and their bytes
/// under the mutex of writing. Only the leader counts syncs and pauses. So each counter has one
/// writer at a time, and a load and a store are enough. Their cache lines move from one writer to
/// the next with the other memory that it writes.
#[derive(Default)]
pub(super) struct FlushCounts {
    by: [LeaderCounts; 2],
    pauses: AtomicU64,
}

#[derive(Default)]
struct LeaderCounts {
    writes: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
}

fn add(count: &AtomicU64, n: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

impl FlushCounts {
    pub fn add_write(&self, leader: Leader, bytes: u64) {
        let counts = &self.by[leader as usize];
        add(&counts.writes, 1);
        add(&counts.bytes, bytes);
    }

    pub fn add_sync(&self, leader: Leader) {
        add(&self.by[leader as usize].syncs, 1);
    }

    pub fn add_pause(&self) {
        add(&self.pauses, 1);
    }

    pub fn syncs(&self) -> u64 {
        self.by.iter().map(|counts| counts.syncs.load(Ordering::Relaxed)).sum()
    }

    fn of(&self, leader: Leader) -> LogWrites {
        let counts = &self.by[leader as usize];
        LogWrites {
            writes: counts.writes.load(Ordering::Relaxed),
            bytes: counts.bytes.load(Ordering::Relaxed),
            syncs: counts.syncs.load(Ordering::Relaxed),
        }
    }
}

/// All statistics.
pub(super) fn stats(inserts: &InsertCounts, flushes: &FlushCounts) -> LogStats {
    LogStats {
        records: inserts.0.sum(RECORDS),
        images: inserts.0.sum(IMAGES),
        bytes: inserts.0.sum(BYTES),
        buffers_full: inserts.0.sum(BUFFERS_FULL),
        pauses: flushes.pauses.load(Ordering::Relaxed),
        by_backends: flushes.of(Leader::Backend),
        by_log_thread: flushes.of(Leader::LogThread),
    }
}
