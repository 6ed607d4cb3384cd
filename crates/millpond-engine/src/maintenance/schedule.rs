//! When checkpoints are made, and the pace of their writes: spread over the time or the log until
//! the next one is due.

use std::time::Duration;

use crate::config::EngineConfig;

/// When checkpoints are made without a request, and the pace of a spread one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// The longest time from one checkpoint to the next.
    pub(super) timeout: Duration,
    /// This amount of log also makes the next one due. At most as much again is added while it is
    /// written.
    pub(super) trigger_bytes: u64,
    /// The part of both over which it may write (`checkpoint_completion_target`).
    pub(super) completion_target: f64,
}

impl Schedule {
    pub(super) fn of(config: &EngineConfig) -> Self {
        Self {
            timeout: config.checkpoint_timeout,
            trigger_bytes: (config.max_wal_bytes / 2).max(1),
            completion_target: config.checkpoint_completion_target,
        }
    }

    /// Whether a checkpoint may rest. It has done the part `done` (0 to 1) of its work, and began
    /// `elapsed` ago, and `log_bytes` of log ago.
    pub(super) fn is_ahead(&self, done: f64, elapsed: Duration, log_bytes: u64) -> bool {
        let time = elapsed.as_secs_f64() / self.timeout.as_secs_f64();
        let log = log_bytes as f64 / self.trigger_bytes as f64;
        self.completion_target * done > time.max(log)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::cell::Cell;
    use std::sync::Arc;

    use millpond_buffer::{
        BufferPool, Lsn, MemoryStore, NoLog, PoolConfig, RelationId, Wait, WriteProgress,
    };

    use super::*;

    const PAGES: usize = 1000;
    const NAP: Duration = Duration::from_millis(100);
    const SCHEDULE: Schedule = Schedule {
        timeout: Duration::from_secs(300),
        trigger_bytes: 1 << 29,
        completion_target: 0.9,
    };

    /// Runs a checkpoint of a real pool. Returns the times and the numbers of pages written by
    /// then. Only the naps move the clock; the log grows at a constant rate.
    fn write(log_bytes_per_second: u64) -> Vec<(Duration, usize)> {
        let pool = BufferPool::new(
            PoolConfig::new(PAGES + 100, 2),
            Arc::new(MemoryStore::new()),
            Arc::new(NoLog),
        )
        .unwrap();
        let rel = RelationId::constant(1).main();
        pool.create(rel).unwrap();
        let rel = pool.relation(rel).unwrap();
        let session = pool.session().unwrap();
        for lsn in 1..=PAGES as u64 {
            let mut page = session.extend(&rel, Wait::Allowed).unwrap();
            page.change().publish(Lsn(lsn));
        }
        let clock = Cell::new(Duration::ZERO);
        let mut written = Vec::new();
        let pace = |progress: WriteProgress| {
            written.push((clock.get(), progress.done));
            let done = progress.done as f64 / progress.total as f64;
            let log = || (clock.get().as_secs_f64() * log_bytes_per_second as f64) as u64;
            while SCHEDULE.is_ahead(done, clock.get(), log()) {
                clock.set(clock.get() + NAP);
            }
        };
        assert_eq!(pool.write_dirty(&session, pace).unwrap(), PAGES);
        written.push((clock.get(), PAGES));
        written
    }

    /// The writes are spread evenly over `whole`: at most 32 pages at once, none early, none late.
    fn are_spread_over(written: &[(Duration, usize)], whole: Duration) {
        let mut before = 0;
        for &(at, done) in written {
            assert!(done - before <= 32, "{} pages at once", done - before);
            let due = whole.as_secs_f64() * before as f64 / PAGES as f64;
            let late = at.as_secs_f64() - due;
            assert!((0.0..=2.0 * NAP.as_secs_f64()).contains(&late), "{before} pages at {at:?}");
            before = done;
        }
        assert!(written.len() > PAGES / 32);
    }

    #[test]
    fn writes_are_spread_over_the_target_part_of_the_time() {
        are_spread_over(&write(0), Duration::from_secs(270));
        // Little log makes no difference.
        are_spread_over(&write(1 << 20), Duration::from_secs(270));
    }

    #[test]
    fn writes_are_spread_over_the_log_if_it_grows_faster() {
        // The next checkpoint will be due after 64 seconds.
        are_spread_over(&write(1 << 23), Duration::from_secs_f64(57.6));
    }
}
