//! What checkpoints count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use millpond_sync::clock;

/// Statistics since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStats {
    /// Checkpoints that were due by time.
    pub scheduled: u64,
    /// All others, including those for log growth.
    pub requested: u64,
    /// Pages written by checkpoints.
    pub pages_written: u64,
    /// Time spent writing, in milliseconds.
    pub write_ms: u64,
    /// Time spent syncing, in milliseconds.
    pub sync_ms: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) scheduled: AtomicU64,
    pub(super) requested: AtomicU64,
    pub(super) pages_written: AtomicU64,
    pub(super) write_ms: AtomicU64,
    pub(super) sync_ms: AtomicU64,
}

pub(super) fn add_ms(counter: &AtomicU64, since: Instant) {
    counter.fetch_add(clock::since(since).as_millis() as u64, Ordering::Relaxed);
}
