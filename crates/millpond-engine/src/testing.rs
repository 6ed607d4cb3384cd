//! A whole engine under the access methods, for tests: pages in memory, the log in a temporary
//! directory.

use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::{BufferPool, Lsn, MemoryStore, PageStore, PoolConfig};

use crate::ctx::{Ctx, Shared};
use crate::proc::ProcArray;
use crate::transam::{Transactions, Xid};
use crate::wal::{FileLogStore, Log, LogConfig, LogStart};

/// The engine parts that a test uses.
pub(crate) struct Fixture<S: PageStore = MemoryStore> {
    pub(crate) shared: Shared,
    pub(crate) store: Arc<S>,
    pub(crate) directory: tempfile::TempDir,
}

/// Where the log of a fixture begins.
pub(crate) const LOG_START: Lsn = Lsn(4096);

impl Fixture {
    /// For eight sessions, with a pool of 256 frames.
    pub(crate) fn new() -> Self {
        Self::with(8, 256, crate::transam::DEFAULT_RING_SIZE)
    }

    pub(crate) fn with(sessions: u16, frames: usize, ring_size: usize) -> Self {
        Self::on(MemoryStore::new(), sessions, frames, ring_size)
    }
}

impl<S: PageStore> Fixture<S> {
    /// The same with the caller's store.
    pub(crate) fn on(store: S, sessions: u16, frames: usize, ring_size: usize) -> Self {
        let store = Arc::new(store);
        let directory = tempfile::tempdir().unwrap();
        let shared =
            Self::assemble(sessions, frames, ring_size, &store, directory.path(), LOG_START, 1);
        let fixture = Fixture { shared, store, directory };
        fixture.shared.txns.finish_recovery(&fixture.ctx()).unwrap();
        fixture
    }

    /// Everything above the files, before recovery; the log continues at `end`.
    pub(crate) fn assemble(
        sessions: u16,
        frames: usize,
        ring_size: usize,
        store: &Arc<S>,
        directory: &std::path::Path,
        end: Lsn,
        start_no: u32,
    ) -> Shared {
        let files = Arc::new(FileLogStore::open(directory, 1 << 20).unwrap());
        let config = LogConfig {
            segment_bytes: 1 << 20,
            buffer_bytes: 1 << 20,
            max_sessions: sessions as usize,
            // In a test, nothing happens because time has passed.
            writer_delay: Duration::from_secs(3600),
            redo_of: crate::rmgr::redo_of,
            ..LogConfig::default()
        };
        let start = LogStart { end, durable: end, redo: LOG_START, start_no };
        let log = Log::open(files, config, start).unwrap();
        let pages: Arc<dyn PageStore> = store.clone();
        let pool =
            BufferPool::new(PoolConfig::new(frames, sessions as usize + 2), pages, log.clone())
                .unwrap();
        let procs = ProcArray::new(sessions);
        let txns = Transactions::new(procs.clone(), ring_size, Xid::FIRST);
        Shared::new(pool, log, procs, txns)
    }

    pub(crate) fn ctx(&self) -> Ctx {
        Ctx::new(&self.shared, "client backend").unwrap()
    }
}

impl<S: PageStore> Drop for Fixture<S> {
    fn drop(&mut self) {
        self.shared.log.abandon();
    }
}

/// Records log messages, from *info* or from *debug* on.
#[derive(Clone)]
pub(crate) struct Hearer(Arc<std::sync::Mutex<Vec<String>>>, tracing::Level);

impl Default for Hearer {
    fn default() -> Self {
        Self(Arc::default(), tracing::Level::INFO)
    }
}

impl Hearer {
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn of_debug() -> Self {
        Self(Arc::default(), tracing::Level::DEBUG)
    }

    /// Messages and their fields.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl tracing::field::Visit for Hearer {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl tracing::Subscriber for Hearer {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= self.1
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
