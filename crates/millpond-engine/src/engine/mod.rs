//! The engine: everything that sessions share.
//!
//! [`Engine::open`] brings a data directory to life (see `open`); a [`Session`] does the work.
//! Background work (checkpoints, free frames, transaction upkeep, autovacuum) runs in threads that
//! [`Engine::shutdown`] ends; an engine that is dropped without it is as good as killed, and the next
//! start recovers.

mod config;
pub(crate) mod open;
mod tuning;
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
use crate::ctx::{Ctx, Shared, backend_kind};
use crate::error::{EngineError, EngineResult, damaged_relation};
use crate::lmgr::LockManager;
use crate::maintenance::autovacuum;
use crate::maintenance::background::Background;
use crate::maintenance::checkpointer::{Cause, CheckpointStats, Checkpoints};
use crate::proc::{Interrupt, PoolSession, ProcArray};
use crate::recovery::{DamagedFork, DataDirectory, SetAside};
use crate::session::Session;
use crate::sort::temp::TempFiles;
use crate::transam::Transactions;
use crate::wal::Log;

pub use config::EngineConfig;
pub use tuning::{AutovacuumTuning, Tuning};
pub(crate) use workers::PooledCtx;

use workers::CtxPool;

/// How long a shutdown waits for sessions to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one session has read and written.
#[derive(Clone, Copy, Debug)]
pub struct BackendIo {
    /// Its process id.
    pub process_id: u32,
    /// As what it is counted.
    pub kind: BackendKind,
    /// What it has done.
    pub io: IoByContext,
}

/// What the start has found to be wrong with files, without which the rest works.
#[derive(Debug, Default)]
pub struct Findings {
    /// Relations whose files are missing, cut short or too long.
    pub damaged: Vec<DamagedFork>,
    /// Files that nothing named, and where they are now.
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
    autovacuum: autovacuum::Current,
    /// How tables are vacuumed in the background, now.
    autovacuum_tuning: Mutex<AutovacuumTuning>,
    clients: AtomicUsize,
    closing: AtomicBool,
    system_id: u64,
    findings: Findings,
    /// Last: the directory stays locked until everything else is gone.
    _directory: DataDirectory,
}

impl Engine {
    /// Opens the data directory: creates it when it is not there, recovers it when it was not shut down,
    /// refuses it when another process has it open or its format is another version's.
    pub fn open(config: EngineConfig) -> EngineResult<Arc<Self>> {
        open::open(config)
    }

    /// The same for a directory that is locked already.
    pub(crate) fn open_in(
        config: EngineConfig,
        directory: DataDirectory,
    ) -> EngineResult<Arc<Self>> {
        open::open_in(config, directory)
    }

    /// A new session. Fails with `TooManySessions` when `max_connections` are in use.
    pub fn session(self: &Arc<Self>) -> EngineResult<Session> {
        if self.closing.load(Ordering::Acquire) {
            return Err(EngineError::ShuttingDown);
        }
        let limit = self.config.max_connections;
        let room = self.clients.fetch_update(Ordering::AcqRel, Ordering::Acquire, |clients| {
            (clients < limit).then_some(clients + 1)
        });
        if room.is_err() {
            return Err(EngineError::TooManySessions);
        }
        match Ctx::new(&self.shared, "client backend") {
            Ok(ctx) => Ok(Session::new(Arc::clone(self), ctx, true)),
            Err(error) => {
                self.clients.fetch_sub(1, Ordering::AcqRel);
                Err(error)
            }
        }
    }

    /// A session of the engine's own, outside of `max_connections`.
    pub(crate) fn internal_session(self: &Arc<Self>, kind: &'static str) -> EngineResult<Session> {
        Ok(Session::new(Arc::clone(self), Ctx::new(&self.shared, kind)?, false))
    }

    pub(crate) fn client_left(&self) {
        self.clients.fetch_sub(1, Ordering::AcqRel);
    }

    /// A context for a thread that works for a session.
    pub(crate) fn worker_ctx(&self) -> EngineResult<PooledCtx> {
        self.workers.take(&self.shared)
    }

    /// How it was set up.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Changes what can be changed while it runs, from the next checkpoint, sync or look for tables
    /// on.
    pub fn tune(&self, tuning: &Tuning) {
        self.checkpoints.tune(tuning);
        self.shared.log.tune(tuning.wal_writer_delay, tuning.wal_writer_flush_after_bytes);
        *self.autovacuum_tuning.lock() = tuning.autovacuum.clone();
        self.background.wake();
    }

    /// How tables are vacuumed in the background, now.
    pub(crate) fn autovacuum_tuning(&self) -> AutovacuumTuning {
        self.autovacuum_tuning.lock().clone()
    }

    /// The random number that tells this database from others.
    pub fn system_id(&self) -> u64 {
        self.system_id
    }

    /// What the start found to be wrong with files.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The vacuum that runs in the background.
    pub(crate) fn autovacuum(&self) -> &autovacuum::Current {
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

    /// The lock manager: who holds and awaits what.
    pub fn locks(&self) -> &Arc<LockManager> {
        &self.shared.locks
    }

    /// The sessions: what they do, and what they wait for.
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
        // Who has ended meanwhile may have been read as somebody else.
        let still = self.shared.procs.pool_sessions();
        found.into_iter().filter(|(session, _)| still.contains(session)).map(|(_, io)| io).collect()
    }

    /// Figures of checkpoints.
    pub fn checkpoint_stats(&self) -> CheckpointStats {
        self.checkpoints.stats()
    }

    /// What has been recorded of accesses to pages, if that is done.
    pub fn trace_stats(&self) -> Option<TraceStats> {
        self.shared.trace.as_ref().map(|trace| trace.stats())
    }

    /// What the log has counted.
    pub fn log_stats(&self) -> crate::wal::LogStats {
        self.shared.log.stats()
    }

    /// How many more files of tables and indexes can be made, if that is few enough to be worth a warning. Each table,
    /// index and TRUNCATE takes one, and none is used again.
    pub fn few_file_numbers_left(&self) -> Option<u32> {
        let left = self.published.file_numbers_left();
        (left < FILE_NUMBERS_WARNING).then_some(left)
    }

    /// The committed catalog. Sessions with DDL of their own see [`Session::catalog`].
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

    /// Blocks of a table.
    pub fn block_count(&self, table: &TableDef) -> EngineResult<u32> {
        Ok(self.open_heap(table)?.block_count())
    }

    /// Blocks of a table's free space map.
    pub fn map_block_count(&self, table: &TableDef) -> EngineResult<u32> {
        Ok(self.open_heap(table)?.map_block_count())
    }

    /// Blocks of an index.
    pub fn index_block_count(&self, index: &IndexDef) -> EngineResult<u32> {
        Ok(self.open_tree(index)?.block_count())
    }

    /// Writes a checkpoint (`CHECKPOINT`).
    pub fn checkpoint(&self) -> EngineResult<()> {
        self.checkpoints.run(Cause::Requested)
    }

    /// Stops the background work, ends the sessions, writes a checkpoint, marks the directory as cleanly shut down.
    /// Sessions that still exist fail from then on. Dropping the engine without this is safe: the next
    /// start recovers.
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
            // Somebody is still changing things: what he has committed is in the log, the rest is not.
            tracing::warn!("sessions did not end in time: the next start will recover");
            return self.flush_log();
        }
        self.checkpoints.run(Cause::Shutdown)?;
        let trimmed = self.shared.pool.trim();
        self.shared.log.close()?;
        Ok(trimmed?)
    }

    /// Returns when the log is on disk as far as it has been written.
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

    /// Whether a transaction that has changed something is running.
    fn is_busy(&self) -> bool {
        self.shared.procs.watch().iter().any(|session| session.xid.is_some())
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Why the engine accepts no more changes, if it doesn't: the log or the storage has failed.
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
            // Not shut down: leave everything as a crash would, but for the threads.
            self.shared.log.abandon();
        }
    }
}
