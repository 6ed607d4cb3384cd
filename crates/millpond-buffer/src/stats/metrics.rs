//! Statistics through the `metrics` facade, for any exporter that the program installs.
//!
//! Nothing is counted twice. The pool counts as it does without this feature, in memory of its
//! sessions, so a hit costs the same. A program that exports metrics hands over a snapshot now and
//! then.
//!
//! | metric | labels | of |
//! |---|---|---|
//! | `millpond_buffer_*_total` | `pool` | the sums in [`PoolStats`] |
//! | `millpond_buffer_free_frames`, `.._lost_frames` | `pool` | its gauges |
//! | `millpond_buffer_io_*_total` | `pool`, `backend`, `context` | [`IoCounts`] |

use super::{IoCounts, PoolStats};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

/// A count: its metric, its unit, its description, and its value.
type Count<T> = (&'static str, Unit, &'static str, fn(&T) -> u64);

macro_rules! counts {
    ($($name:literal $unit:ident $text:literal $value:expr;)*) => {
        &[$(($name, Unit::$unit, $text, $value)),*]
    };
}

const TOTALS: &[Count<PoolStats>] = counts! {
    "millpond_buffer_hits_total" Count "Requests for pages in memory" |s| s.hits;
    "millpond_buffer_misses_total" Count "Requests that loaded a page" |s| s.misses;
    "millpond_buffer_restarts_total" Count
        "Optimistic reads repeated because the page changed meanwhile" |s| s.restarts;
    "millpond_buffer_latched_reads_total" Count
        "Optimistic reads that took the shared latch in the end" |s| s.latched_reads;
    "millpond_buffer_load_waits_total" Count "Waits for another session's load" |s| s.load_waits;
    "millpond_buffer_pages_read_total" Count "Pages read from the store" |s| s.reads;
    "millpond_buffer_pages_read_ahead_total" Count "Pages read ahead of their use" |s| s.read_ahead;
    "millpond_buffer_pages_written_total" Count "Pages written to the store" |s| s.writes;
    "millpond_buffer_write_calls_total" Count
        "Writes of one page or of several neighbours" |s| s.write_calls;
    "millpond_buffer_pages_extended_total" Count
        "Pages added to the ends of relations" |s| s.extended;
    "millpond_buffer_allocations_total" Count
        "Frames into which sessions began to bring pages" PoolStats::allocations;
    "millpond_buffer_evictions_total" Count "Pages that left memory to make room" |s| s.evictions;
    "millpond_buffer_dirty_evictions_total" Count
        "Pages that a session wrote before it could take their frames" |s| s.dirty_evictions;
    "millpond_buffer_frames_examined_total" Count
        "Frames that the clock sweep examined" |s| s.frames_examined;
    "millpond_buffer_frames_reclaimed_total" Count "Frames freed before a session needed them" |s| s.reclaimed;
    "millpond_buffer_frames_taken_total" Count
        "Frames taken from pages: the clock by which ages are counted" |s| s.clock;
    "millpond_buffer_regret_total" Count
        "Pages read again within one pool's worth of frames taken" |s| s.regret;
};

const GAUGES: &[Count<PoolStats>] = counts! {
    "millpond_buffer_free_frames" Count "Frames that hold no page" |s| s.free_frames;
    "millpond_buffer_lost_frames" Count
        "Frames lost until a restart: a device may still write to them" |s| s.lost_frames;
};

const IO: &[Count<IoCounts>] = counts! {
    "millpond_buffer_io_hits_total" Count "Requests for pages in memory" |io| io.hits;
    "millpond_buffer_io_reads_total" Count "Calls that read pages" |io| io.reads;
    "millpond_buffer_io_read_bytes_total" Bytes "Bytes read" |io| io.read_bytes;
    "millpond_buffer_io_writes_total" Count "Calls that wrote pages" |io| io.writes;
    "millpond_buffer_io_write_bytes_total" Bytes "Bytes written" |io| io.write_bytes;
    "millpond_buffer_io_extends_total" Count "Calls that extended relations" |io| io.extends;
    "millpond_buffer_io_extend_bytes_total" Bytes
        "Bytes by which relations were extended" |io| io.extend_bytes;
    "millpond_buffer_io_evictions_total" Count
        "Pages that left memory, found by the sweep" |io| io.evictions;
    "millpond_buffer_io_reuses_total" Count
        "Pages that left memory because their ring went on" |io| io.reuses;
    "millpond_buffer_io_fsyncs_total" Count
        "Calls that made everything written durable" |io| io.fsyncs;
    "millpond_buffer_io_read_us_total" Microseconds
        "Time in reads, of sessions that measure it" |io| io.read_us;
    "millpond_buffer_io_write_us_total" Microseconds
        "Time in writes, of sessions that measure it" |io| io.write_us;
    "millpond_buffer_io_extend_us_total" Microseconds
        "Time in extensions, of sessions that measure it" |io| io.extend_us;
    "millpond_buffer_io_fsync_us_total" Microseconds
        "Time in calls that made everything durable" |io| io.fsync_us;
};

impl PoolStats {
    /// Describes all metrics to the installed recorder. Call it once, after installing one.
    pub fn describe_metrics() {
        for &(name, unit, text, _) in TOTALS {
            describe_counter!(name, unit, text);
        }
        for &(name, unit, text, _) in GAUGES {
            describe_gauge!(name, unit, text);
        }
        for &(name, unit, text, _) in IO {
            describe_counter!(name, unit, text);
        }
    }

    /// Hands the snapshot to the installed recorder. Counters are set to the pool's sums, so a
    /// repeated call counts nothing twice. `pool` becomes the label of that name: two pools of one
    /// program need two names.
    ///
    /// I/O of a kind of backend and a context begins to appear with its first event. The cost is
    /// that of some twenty to three hundred metrics of the recorder: call it every few seconds.
    ///
    /// ```
    /// # use millpond_buffer::*;
    /// # use std::sync::Arc;
    /// # let store = Arc::new(MemoryStore::new());
    /// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, Arc::new(NoLog))?;
    /// PoolStats::describe_metrics(); // Once, after an exporter has been installed.
    /// pool.stats().record_metrics("main"); // Then again and again.
    /// # Ok::<(), BufferError>(())
    /// ```
    pub fn record_metrics(&self, pool: &'static str) {
        for &(name, _, _, value) in TOTALS {
            counter!(name, "pool" => pool).absolute(value(self));
        }
        for &(name, _, _, value) in GAUGES {
            gauge!(name, "pool" => pool).set(value(self) as f64);
        }
        for (kind, context) in super::rows() {
            let io = self.io_of(kind, context);
            if *io == IoCounts::default() {
                continue;
            }
            let (kind, context) = (kind.name(), context.name());
            for &(name, _, _, value) in IO {
                counter!(name, "pool" => pool, "backend" => kind, "context" => context)
                    .absolute(value(io));
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::stats::{BackendKind, IoContext};
    use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString};
    use parking_lot::Mutex;
    use std::collections::{HashMap, HashSet};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Keeps what it is told.
    #[derive(Default)]
    struct Kept {
        described: Mutex<HashSet<String>>,
        values: Mutex<HashMap<String, Arc<AtomicU64>>>,
    }

    impl Kept {
        fn value(&self, key: &Key) -> Arc<AtomicU64> {
            assert!(self.described.lock().contains(key.name()), "{key} has no description");
            let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
            let name = key.name().to_owned() + &labels.collect::<String>();
            Arc::clone(self.values.lock().entry(name).or_default())
        }

        fn get(&self, name: &str) -> u64 {
            self.values.lock()[name].load(Ordering::Relaxed)
        }
    }

    impl Recorder for Kept {
        fn describe_counter(&self, key: KeyName, _: Option<Unit>, text: SharedString) {
            assert!(!text.is_empty());
            assert!(self.described.lock().insert(key.as_str().to_owned()), "{key:?} twice");
        }

        fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
            self.describe_counter(key, unit, text);
        }

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
            unreachable!("the pool has no histograms of samples");
        }

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.value(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.value(key))
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            unreachable!("the pool has no histograms of samples");
        }
    }

    #[test]
    fn metrics_follow_the_snapshots() {
        let kept = Kept::default();
        let mut stats = PoolStats { hits: 5, free_frames: 9, ..PoolStats::default() };
        let normal = IoContext::Normal as usize;
        stats.io[BackendKind::Client as usize][normal].read_bytes = 8192;
        metrics::with_local_recorder(&kept, || {
            PoolStats::describe_metrics();
            stats.record_metrics("main");
            stats.record_metrics("main");
        });
        let read_bytes =
            "millpond_buffer_io_read_bytes_total pool=main backend=client backend context=normal";
        assert_eq!(kept.get("millpond_buffer_hits_total pool=main"), 5);
        assert_eq!(kept.get(read_bytes), 8192);
        let gauge = || f64::from_bits(kept.get("millpond_buffer_free_frames pool=main"));
        assert_eq!(gauge(), 9.0);
        // One row has I/O, so the others do not appear.
        assert_eq!(kept.values.lock().len(), TOTALS.len() + GAUGES.len() + IO.len());

        (stats.hits, stats.free_frames) = (7, 4);
        metrics::with_local_recorder(&kept, || stats.record_metrics("main"));
        assert_eq!(kept.get("millpond_buffer_hits_total pool=main"), 7);
        assert_eq!(gauge(), 4.0);
    }
}
