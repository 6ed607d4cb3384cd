//! The threads that scan large tables for the executor of rows: see [`run::gather`](crate::run).
//!
//! A thread is started for each part of a plan that is run on several cores, and ends with it. That
//! takes some tens of microseconds, where the scan takes milliseconds at least. All sessions
//! together have at most `max_parallel_workers` of them. A session that finds none left scans
//! alone, so none has to wait for others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Address space, not memory.
const STACK_BYTES: usize = 8 << 20;

/// The threads of a database.
#[derive(Debug)]
pub struct ScanThreads {
    /// How many are in use. It orders nothing.
    used: AtomicUsize,
    /// By how many steps their priority is lower than the sessions'.
    niceness: i32,
    /// How many cores there are.
    cores: usize,
}

impl ScanThreads {
    /// None yet. Their priority will be lower by `niceness` steps.
    pub fn new(niceness: i32) -> Arc<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Arc::new(Self { used: AtomicUsize::new(0), niceness, cores })
    }

    /// How many cores the machine has.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }

    /// A place for a thread, unless `most` are in use.
    pub(crate) fn reserve(self: &Arc<Self>, most: usize) -> Option<Reserved> {
        let more = |used: usize| Some(used + 1).filter(|all| *all <= most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Reserved(Arc::clone(self)))
    }
}

/// The place of one thread.
#[derive(Debug)]
pub(crate) struct Reserved(Arc<ScanThreads>);

impl Reserved {
    /// Starts the thread. Its place is free again when `work` has returned.
    pub(crate) fn start(self, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
        let builder = thread::Builder::new().name("millpond-scan".to_owned());
        builder.stack_size(STACK_BYTES).spawn(move || {
            lower_priority(self.0.niceness);
            work();
            drop(self);
        })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lowers the priority of the calling thread, as that of DataFusion's threads is.
fn lower_priority(niceness: i32) {
    // Where it is forbidden, the thread keeps the priority of sessions.
    if niceness > 0 {
        let _ = rustix::process::nice(niceness);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let threads = ScanThreads::new(0);
        let first = threads.reserve(2).unwrap();
        let second = threads.reserve(2).unwrap();
        assert!(threads.reserve(2).is_none());
        first.start(|| {}).unwrap().join().unwrap();
        assert!(threads.reserve(2).is_some());
        drop(second);
    }
}
