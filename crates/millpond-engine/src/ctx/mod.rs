//! The context of an operation: one session's view of everything shared.
//!
//! One thread at a time uses a context (it is `Send`, not `Sync`). What it does not share by design
//! is session memory. Access methods take `&Ctx`.

mod heap_session;
mod rings;

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use millpond_sync::clock;

use millpond_buffer::trace::TraceFile;
use millpond_buffer::{BackendKind, BufferPool, Wait};

use crate::bulk::BulkAccess;
use crate::error::{EngineError, EngineResult};
use crate::lmgr::{Acquired, LockManager, LockMode, LockOwner, LockTag, LockWait};
use crate::proc::ProcArray;
use crate::sort::temp::{TempFiles, TempSpace};
use crate::transam::{Backend, SessionNo, Transactions, Xid};
use crate::wal::{Log, Logging};

pub use heap_session::HeapSession;

/// What all contexts of a database share.
#[derive(Clone)]
pub struct Shared {
    /// The buffer pool.
    pub pool: Arc<BufferPool>,
    /// The log.
    pub log: Arc<Log>,
    /// Transactions.
    pub txns: Arc<Transactions>,
    /// Locks.
    pub locks: Arc<LockManager>,
    /// The lines of all sessions.
    pub procs: Arc<ProcArray>,
    /// How bulk work uses the pool, unless a session overrides it.
    pub bulk_access: BulkAccess,
    /// Temporary files.
    pub temp_files: Arc<TempFiles>,
    /// The page access trace, if one is recorded.
    pub trace: Option<Arc<TraceFile>>,
}

impl Shared {
    /// Creates a lock manager, and uses defaults for the rest.
    pub fn new(
        pool: Arc<BufferPool>,
        log: Arc<Log>,
        procs: Arc<ProcArray>,
        txns: Arc<Transactions>,
    ) -> Self {
        let locks = LockManager::new(Arc::clone(&procs));
        let (bulk_access, temp_files) = (BulkAccess::default(), Arc::default());
        Self { pool, log, txns, locks, procs, bulk_access, temp_files, trace: None }
    }
}

/// The context of a session.
pub struct Ctx {
    shared: Shared,
    backend: Backend,
    bulk_access: Cell<BulkAccess>,
    temp_space: Arc<TempSpace>,
    lock_timeout: Cell<Option<Duration>>,
    heap: HeapSession,
}

impl Ctx {
    /// A context for a new session; `kind` is its name in pg_stat_activity (`client backend`).
    pub fn new(shared: &Shared, kind: &'static str) -> EngineResult<Ctx> {
        let buffers = shared.pool.session()?;
        buffers.set_backend_kind(backend_kind(kind));
        buffers.set_io_timing(shared.bulk_access.io_timing);
        let proc = shared.procs.register(kind)?;
        proc.set_pool_session(buffers.number());
        let (pool, log) = (Arc::clone(&shared.pool), Arc::clone(&shared.log));
        let backend = Backend::new(pool, log, Arc::clone(&shared.locks), proc, buffers);
        Ok(Ctx {
            backend,
            shared: shared.clone(),
            bulk_access: Cell::new(shared.bulk_access),
            temp_space: Arc::default(),
            lock_timeout: Cell::new(None),
            heap: HeapSession::default(),
        })
    }

    /// The budget for the session's temporary files.
    pub fn temp_space(&self) -> &Arc<TempSpace> {
        &self.temp_space
    }

    /// What all contexts share.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Transactions.
    #[inline]
    pub fn txns(&self) -> &Arc<Transactions> {
        &self.shared.txns
    }

    /// How the session's bulk work uses the pool.
    pub fn bulk_access(&self) -> BulkAccess {
        self.bulk_access.get()
    }

    /// Sets how the session's bulk work uses the pool from now on.
    pub fn set_bulk_access(&self, bulk: BulkAccess) {
        self.bulk_access.set(bulk);
        self.buffers().set_io_timing(bulk.io_timing);
    }

    /// Sets `lock_timeout`; with `None`, waits have no limit.
    pub fn set_lock_timeout(&self, timeout: Option<Duration>) {
        self.lock_timeout.set(timeout);
    }

    /// How long a lock request that starts now may wait.
    #[inline]
    pub fn lock_wait(&self) -> LockWait {
        if !self.may_wait() {
            return LockWait::Never;
        }
        match self.lock_timeout.get().and_then(|timeout| clock::now().checked_add(timeout)) {
            Some(until) => LockWait::Until(until),
            None => LockWait::Forever,
        }
    }

    /// The session's state for heap operations.
    #[inline]
    pub fn heap(&self) -> &HeapSession {
        &self.heap
    }

    /// The running transaction's id; draws one if it has none yet.
    #[inline]
    pub fn assign_xid(&self) -> EngineResult<Xid> {
        match self.proc().xid() {
            Some(xid) => Ok(xid),
            None => self.txns().assign(self),
        }
    }

    /// Acquires a lock for the transaction. Waits if the session may.
    pub fn lock(&self, tag: LockTag, mode: LockMode) -> EngineResult<Acquired> {
        self.lock_for(LockOwner::Transaction, tag, mode)
    }

    /// Acquires a lock for the transaction or for the session. Waits if the session may.
    pub fn lock_for(
        &self,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
    ) -> EngineResult<Acquired> {
        let acquired = self.locks().acquire_for(self.proc(), owner, tag, mode, self.lock_wait());
        acquired.map_err(|error| self.lock_error(error.into()))
    }

    /// Acquires a lock at once or fails (NOWAIT).
    pub fn lock_nowait(&self, tag: LockTag, mode: LockMode) -> EngineResult<Acquired> {
        Ok(self.locks().acquire(self.proc(), tag, mode, LockWait::Never)?)
    }

    /// Waits for the end of another transaction, if the session may wait.
    pub fn wait_for_xid(&self, xid: Xid) -> EngineResult<()> {
        let waited = self.txns().wait_for(self, xid, self.lock_wait());
        waited.map_err(|error| self.lock_error(error))
    }

    /// In a session that may not wait, an unavailable lock means: try again where waiting is
    /// allowed.
    fn lock_error(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::LockNotAvailable { .. } if !self.may_wait() => EngineError::WouldBlock,
            other => other,
        }
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        // A session that ends during a transaction rolls it back.
        let shared = self.shared.clone();
        shared.txns.abort(self, &[]);
        shared.locks.release_all(self.proc());
    }
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx").field("session", &self.no()).field("xid", &self.proc().xid()).finish()
    }
}

impl Deref for Ctx {
    type Target = Backend;

    #[inline]
    fn deref(&self) -> &Backend {
        &self.backend
    }
}

impl Logging for Ctx {
    fn log(&self) -> &Log {
        Logging::log(&self.backend)
    }
    fn stripe(&self) -> SessionNo {
        self.backend.stripe()
    }
    fn wait(&self) -> Wait {
        self.backend.wait()
    }
}

/// The kind under which `pg_stat_io` counts a session's I/O.
pub(crate) fn backend_kind(kind: &str) -> BackendKind {
    match kind {
        "client backend" => BackendKind::Client,
        crate::proc::AUTOVACUUM_WORKER => BackendKind::Autovacuum,
        "background writer" => BackendKind::BackgroundWriter,
        "checkpointer" => BackendKind::Checkpointer,
        // Includes parallel workers, as in PostgreSQL.
        _ => BackendKind::Other,
    }
}
