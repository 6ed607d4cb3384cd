//! Statistics as text for people: a few lines, without the histograms.

use super::{BackendKind, IoContext, PoolStats};
use std::fmt;

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
