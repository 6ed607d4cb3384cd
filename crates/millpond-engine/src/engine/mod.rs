//! The engine: everything that sessions share.
//!
//! [`Engine::open`] opens a data directory (see `startup`); a [`Session`](crate::Session) does the
//! work. Threads of the engine run checkpoints, free frames, maintain transactions and vacuum
//! tables.
//! [`Engine::shutdown`] ends them. Dropping an engine without a shutdown has the effect of a crash:
//! the next start recovers.

mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use millpond_sync::clock;

use millpond_buffer::trace::TraceStats;
use millpond_buffer::{BackendKind, BufferPool, IoByContext, RelHandle};
use millpond_sync::sync::Mutex;

use crate::access::heap::HeapRelation;
use crate::catalog::published::{FILE_NUMBERS_WARNING, Published};
use crate::catalog::{CatalogState, IndexDef, TableDef};
use crate::ctx::{Shared, backend_kind};
use crate::error::{EngineError, EngineResult, damaged_relation};
use crate::lmgr::LockManager;
use crate::maintenance::background::Background;
use crate::maintenance::checkpointer::{Cause, CheckpointStats, Checkpoints};
use crate::maintenance::current_vacuum::CurrentVacuum;
use crate::proc::{Interrupt, PoolSession, ProcArray};
use crate::recovery::{DamagedFork, DataDirectory, SetAside};
use crate::sort::temp::TempFiles;
use crate::transam::Transactions;
use crate::wal::Log;

pub use crate::config::{AutovacuumConfig, EngineConfig};
pub(crate) use workers::PooledCtx;

use workers::CtxPool;

/// How long a shutdown waits for sessions to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one session has read and written.
#[derive(Clone, Copy, Debug)]
pub struct BackendIo {
    /// Its process id.
    pub process_id: u32,
    /// The kind under which it is counted.
    pub kind: BackendKind,
    /// What it has done.
    pub io: IoByContext,
}

/// Damage to files that recovery found, and in spite of which the database works.
#[derive(Debug, Default)]
pub struct Findings {
    /// Relations whose files are missing, too short or too long.
    pub damaged: Vec<DamagedFork>,
    /// Files that belong to no relation, and where recovery moved them.
    pub set_aside: Vec<SetAside>,
}

/// A storage engine over one data directory.
pub struct Engine {
    config: EngineConfig,
    shared: Shared,
    published: Arc<Published>,
    catalog_heap: HeapRelation,
    checkpoints: Arc<Checkpoints>,
    workers: CtxPool,
    background: Background,
    autovacuum: CurrentVacuum,
    autovacuum_tuning: Mutex<AutovacuumConfig>,
    clients: AtomicUsize,
    closing: AtomicBool,
    system_id: u64,
    findings: Findings,
    /// Declared last: the directory stays locked until all else is dropped.
    _directory: DataDirectory,
}

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) config: EngineConfig,
    pub(crate) shared: Shared,
    pub(crate) published: Arc<Published>,
    pub(crate) catalog_heap: HeapRelation,
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) system_id: u64,
    pub(crate) findings: Findings,
    pub(crate) directory: DataDirectory,
}

impl Engine {
    /// An engine over parts that recovery has left ready. Its threads are not started yet.
    pub(crate) fn assemble(parts: Parts) -> Self {
        let Parts { config, shared, published, catalog_heap, checkpoints, .. } = parts;
        // Each connection may have a thread that scans for it.
        let workers = config.max_connections.saturating_add(config.max_parallel_workers);
        Self {
            workers: CtxPool::new(workers, config.max_parallel_workers),
            background: Background::default(),
            autovacuum: CurrentVacuum::default(),
            autovacuum_tuning: Mutex::new(config.autovacuum.clone()),
            clients: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            config,
            shared,
            published,
            catalog_heap,
            checkpoints,
            system_id: parts.system_id,
            findings: parts.findings,
            _directory: parts.directory,
        }
    }

    /// Counts a client. Fails with `TooManySessions` when there are `max_connections`.
    pub(crate) fn client_comes(&self) -> EngineResult<()> {
        if self.closing.load(Ordering::Acquire) {
            return Err(EngineError::ShuttingDown);
        }
        let limit = self.config.max_connections;
        let room = self.clients.fetch_update(Ordering::AcqRel, Ordering::Acquire, |clients| {
            (clients < limit).then_some(clients + 1)
        });
        room.map(|_| ()).map_err(|_| EngineError::TooManySessions)
    }

    pub(crate) fn client_left(&self) {
        self.clients.fetch_sub(1, Ordering::AcqRel);
    }

    /// A context for a thread that works for a session.
    pub(crate) fn worker_ctx(&self) -> EngineResult<PooledCtx> {
        self.workers.take(&self.shared)
    }

    /// The settings with which the engine was opened.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Changes when checkpoints are made, when the log is synced, and autovacuum, to what these
    /// settings say; the others stay. The change takes effect at the next checkpoint,
    /// sync or round of autovacuum.
    pub fn tune(&self, config: &EngineConfig) {
        self.checkpoints.tune(config);
        self.shared.log.tune(config.wal_writer_delay, config.wal_writer_flush_after_bytes);
        *self.autovacuum_tuning.lock() = config.autovacuum.clone();
        self.background.wake();
    }

    /// The background threads.
    pub(crate) fn background(&self) -> &Background {
        &self.background
    }

    pub(crate) fn autovacuum_tuning(&self) -> AutovacuumConfig {
        self.autovacuum_tuning.lock().clone()
    }

    /// The random number that identifies this database.
    pub fn system_id(&self) -> u64 {
        self.system_id
    }

    /// Damage to files that the start found.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The table that autovacuum is working on.
    pub(crate) fn autovacuum(&self) -> &CurrentVacuum {
        &self.autovacuum
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    pub(crate) fn catalog_heap(&self) -> &HeapRelation {
        &self.catalog_heap
    }

    /// The buffer pool, for its statistics.
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.shared.pool
    }

    /// The log, for its statistics.
    pub fn log(&self) -> &Arc<Log> {
        &self.shared.log
    }

    /// The lock manager: which sessions hold and await which locks.
    pub fn locks(&self) -> &Arc<LockManager> {
        &self.shared.locks
    }

    /// The sessions, their activity and their waits.
    pub fn sessions(&self) -> &Arc<ProcArray> {
        &self.shared.procs
    }

    /// The directory of temporary files.
    pub fn temp_files(&self) -> &Arc<TempFiles> {
        &self.shared.temp_files
    }

    /// The transactions.
    pub fn transactions(&self) -> &Arc<Transactions> {
        &self.shared.txns
    }

    /// What each session has read and written, by its process id.
    pub fn backend_io(&self) -> Vec<BackendIo> {
        let sessions = self.shared.procs.pool_sessions();
        let io_of = |session: PoolSession| {
            let kind = backend_kind(session.kind);
            let io = self.shared.pool.session_io(session.number, kind);
            (session, BackendIo { process_id: session.process_id, kind, io })
        };
        let found: Vec<_> = sessions.into_iter().map(io_of).collect();
        // A session that ended meanwhile may have left its number to another one: drop those.
        let still = self.shared.procs.pool_sessions();
        found.into_iter().filter(|(session, _)| still.contains(session)).map(|(_, io)| io).collect()
    }

    /// Statistics of checkpoints.
    pub fn checkpoint_stats(&self) -> CheckpointStats {
        self.checkpoints.stats()
    }

    /// Statistics of the page access trace, if one is recorded.
    pub fn trace_stats(&self) -> Option<TraceStats> {
        self.shared.trace.as_ref().map(|trace| trace.stats())
    }

    /// Statistics of the log.
    pub fn log_stats(&self) -> crate::wal::LogStats {
        self.shared.log.stats()
    }

    /// How many more files of tables and indexes can be created, if that number is low enough for a
    /// warning. Each table, index and TRUNCATE uses one number, and no number is reused.
    pub fn few_file_numbers_left(&self) -> Option<u32> {
        let left = self.published.file_numbers_left();
        (left < FILE_NUMBERS_WARNING).then_some(left)
    }

    /// The committed catalog. A session with DDL in its transaction sees
    /// [`Session::catalog`](crate::Session::catalog).
    pub fn catalog(&self) -> Arc<CatalogState> {
        self.published.state()
    }

    /// The open heap of a table.
    #[inline]
    pub(crate) fn open_heap<'t>(&self, table: &'t TableDef) -> EngineResult<&'t HeapRelation> {
        let opened = table.stats.heap(|| {
            let sessions = self.shared.procs.capacity();
            HeapRelation::open(&self.shared.pool, table.storage, table.fillfactor, sessions)
        });
        opened.map_err(|error| {
            damaged_relation(error, table.storage.main(), || format!("table \"{}\"", table.name))
        })
    }

    /// The open tree of an index.
    #[inline]
    pub(crate) fn open_tree<'t>(&self, index: &'t IndexDef) -> EngineResult<&'t RelHandle> {
        if let Some(tree) = index.tree.get() {
            return Ok(tree);
        }
        let rel = index.storage.main();
        let tree = self.shared.pool.relation(rel).map_err(|error| {
            damaged_relation(error, rel, || format!("index \"{}\"", index.name))
        })?;
        Ok(index.tree.get_or_init(|| tree))
    }

    /// The number of blocks of a table.
    pub fn block_count(&self, table: &TableDef) -> EngineResult<u32> {
        Ok(self.open_heap(table)?.block_count())
    }

    /// The number of blocks of a table's free space map.
    pub fn map_block_count(&self, table: &TableDef) -> EngineResult<u32> {
        Ok(self.open_heap(table)?.map_block_count())
    }

    /// The number of blocks of an index.
    pub fn index_block_count(&self, index: &IndexDef) -> EngineResult<u32> {
        Ok(self.open_tree(index)?.block_count())
    }

    /// Writes a checkpoint (`CHECKPOINT`).
    pub fn checkpoint(&self) -> EngineResult<()> {
        self.checkpoints.run(Cause::Requested)
    }

    /// Stops the background work, ends the sessions, writes a checkpoint and marks the directory as
    /// cleanly shut down. Sessions that still exist fail from then on. Dropping the engine without
    /// a shutdown is safe: the next start recovers.
    pub fn shutdown(&self) -> EngineResult<()> {
        if self.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.background.stop();
        self.shared.procs.interrupt_all(Interrupt::Terminate);
        let deadline = clock::now() + PATIENCE;
        while self.is_busy() && clock::now() < deadline {
            millpond_sync::thread::sleep(Duration::from_millis(5));
        }
        self.checkpoints.stop();
        if self.is_busy() {
            // A session is still changing data. Its commits are in the log; recovery rolls back the
            // rest.
            tracing::warn!("sessions did not end in time: the next start will recover");
            return self.flush_log();
        }
        self.checkpoints.run(Cause::Shutdown)?;
        let trimmed = self.shared.pool.trim();
        self.shared.log.close()?;
        Ok(trimmed?)
    }

    /// Flushes the log up to its current end.
    pub fn flush_log(&self) -> EngineResult<()> {
        let log = &self.shared.log;
        log.flush(log.insert_position())?;
        Ok(())
    }

    /// Ends all background threads, so that only sessions write to memory. For audits.
    #[cfg(feature = "audit")]
    pub fn end_background_work(&self) {
        self.background.stop();
        self.checkpoints.stop();
        self.shared.log.end_thread();
    }

    /// Whether a transaction runs that has changed data.
    fn is_busy(&self) -> bool {
        self.shared.procs.watch().iter().any(|session| session.xid.is_some())
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Why the engine accepts no more changes, if so: the log or the storage has failed.
    pub fn stopped(&self) -> Option<Arc<str>> {
        self.shared.log.is_stopped()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("path", &self.config.path).finish_non_exhaustive()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.background.stop();
        self.checkpoints.stop();
        if !self.closing.load(Ordering::Acquire) {
            // Not shut down: leave everything as a crash would, except for the threads.
            self.shared.log.abandon();
        }
    }
}
