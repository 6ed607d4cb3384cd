//! The sums of what sessions have counted ([`PoolStats`]), and these as text for people.

use super::{
    BUCKETS, BackendKind, CONTEXTS, Counters, Event, Histogram, IoContext, IoRow, KINDS, cell,
    nth_cell,
};
use std::fmt;

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
    /// Frames freed before a session needed them.
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
    /// The same for sweeps of the reclaimer, each of which brings several frames.
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

/// Five lines about the pool, then one line for each kind of backend and context that did I/O.
///
/// The text is for people. Its form may change; a program reads the fields.
///
/// ```
/// # use millpond_buffer::*;
/// # use std::sync::Arc;
/// # let store = Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, Arc::new(NoLog))?;
/// println!("{}", pool.stats());
/// # assert!(pool.stats().to_string().starts_with("requests"));
/// # Ok::<(), BufferError>(())
/// ```
impl fmt::Display for PoolStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hits, misses, restarts, latched_reads, load_waits, .. } = self;
        let requests = hits.saturating_add(*misses);
        write!(f, "requests   {requests}: {hits} hits")?;
        if requests > 0 {
            write!(f, " ({:.2}%)", *hits as f64 * 100.0 / requests as f64)?;
        }
        writeln!(f, ", {misses} misses, {load_waits} waits for another session's load")?;
        writeln!(f, "optimism   {restarts} reads repeated, {latched_reads} then took the latch")?;
        writeln!(
            f,
            "pages      {} read ({} of them ahead), {} written in {} calls, {} added",
            self.reads, self.read_ahead, self.writes, self.write_calls, self.extended
        )?;
        writeln!(
            f,
            "victims    {} evicted ({} dirty), {} freed ahead, {} frames examined, {} came back soon",
            self.evictions, self.dirty_evictions, self.reclaimed, self.frames_examined, self.regret
        )?;
        write!(f, "frames     {} free, {} lost", self.free_frames, self.lost_frames)?;
        for (kind, context) in super::rows() {
            let io = self.io_of(kind, context);
            let (reads, writes, extends) = (io.reads, io.writes, io.extends);
            if reads | writes | extends == 0 {
                continue;
            }
            write!(f, "\n{}, {}: ", kind.name(), context.name())?;
            write!(f, "{reads} reads ({})", Bytes(io.read_bytes))?;
            write!(f, ", {writes} writes ({})", Bytes(io.write_bytes))?;
            write!(f, ", {extends} extensions ({})", Bytes(io.extend_bytes))?;
        }
        Ok(())
    }
}

/// The name of the kind, as in [`BackendKind::name`].
impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of the context, as in [`IoContext::name`].
impl fmt::Display for IoContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A number of bytes in the largest unit of 1024 that keeps it at least 1.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
        if self.0 < 1024 {
            return write!(f, "{} bytes", self.0);
        }
        let unit = self.0.ilog2() / 10;
        let value = self.0 as f64 / (1u64 << (10 * unit)) as f64;
        write!(f, "{value:.1} {}", UNITS[unit as usize - 1])
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_readable() {
        let mut stats = PoolStats {
            hits: 999,
            misses: 1,
            reads: 3,
            read_ahead: 2,
            free_frames: 7,
            ..PoolStats::default()
        };
        let vacuum = &mut stats.io[BackendKind::Autovacuum as usize][IoContext::Vacuum as usize];
        (vacuum.reads, vacuum.read_bytes) = (2, 24_576);
        assert_eq!(
            stats.to_string(),
            "requests   1000: 999 hits (99.90%), 1 misses, 0 waits for another session's load\n\
             optimism   0 reads repeated, 0 then took the latch\n\
             pages      3 read (2 of them ahead), 0 written in 0 calls, 0 added\n\
             victims    0 evicted (0 dirty), 0 freed ahead, 0 frames examined, 0 came back soon\n\
             frames     7 free, 0 lost\n\
             autovacuum worker, vacuum: 2 reads (24.0 kB), 0 writes (0 bytes), \
             0 extensions (0 bytes)"
        );
        let unused = PoolStats::default().to_string();
        assert!(unused.starts_with("requests   0: 0 hits, 0 misses"), "{unused}");
        assert_eq!(unused.lines().count(), 5);
    }

    #[test]
    fn bytes_have_a_unit_that_fits() {
        let text = |bytes| Bytes(bytes).to_string();
        assert_eq!(text(1023), "1023 bytes");
        assert_eq!(text(1024), "1.0 kB");
        assert_eq!(text(3 << 29), "1.5 GB");
        assert_eq!(text(u64::MAX), "16.0 EB");
    }
}
