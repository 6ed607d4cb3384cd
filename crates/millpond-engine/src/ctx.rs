//! What an operation of the engine works with: one session's view of everything shared.
//!
//! A context belongs to one thread at a time (it is `Send`, not `Sync`), and everything in it that is not
//! shared by design is session memory. Access methods take `&Ctx`.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use millpond_sync::{clock, mutant};

use millpond_buffer::trace::TraceFile;
use millpond_buffer::{BackendKind, BufferPool, BufferSession, Wait};

use crate::access::Tid;
use crate::access::heap::HeapSession;
use crate::bulk::BulkAccess;
use crate::error::{EngineError, EngineResult};
use crate::lmgr::{Acquired, LockManager, LockMode, LockOwner, LockTag, LockWait};
use crate::proc::{ProcArray, ProcHandle};
use crate::sort::temp::{TempFiles, TempSpace};
use crate::transam::visibility::Fates;
use crate::transam::{
    ComboCids, CommandId, CommitDelay, LockStrength, PendingCommit, SessionNo, Transactions, Xid,
    XidStatus,
};
use crate::wal::{Log, Logging};

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
    /// How bulk work uses the pool unless a session says otherwise.
    pub bulk_access: BulkAccess,
    /// Temporary files.
    pub temp_files: Arc<TempFiles>,
    /// Where accesses to pages are recorded, if they are.
    pub trace: Option<Arc<TraceFile>>,
}

impl Shared {
    /// With locks of its own, and what is usual for everything else.
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
    /// Dropped before `buffers`, whose number it shows.
    proc: ProcHandle,
    buffers: BufferSession,
    wait: Cell<Wait>,
    bulk_access: Cell<BulkAccess>,
    temp_space: Arc<TempSpace>,
    lock_timeout: Cell<Option<Duration>>,
    commit_delay: Cell<CommitDelay>,
    combos: RefCell<ComboCids>,
    heap: HeapSession,
    pending_commit: RefCell<Option<PendingCommit>>,
}

impl Ctx {
    /// A context for a new session; `kind` is what pg_stat_activity calls it (`client backend`).
    pub fn new(shared: &Shared, kind: &'static str) -> EngineResult<Ctx> {
        let buffers = shared.pool.session()?;
        buffers.set_backend_kind(backend_kind(kind));
        buffers.set_io_timing(shared.bulk_access.io_timing);
        let proc = shared.procs.register(kind)?;
        proc.set_pool_session(buffers.number());
        Ok(Ctx {
            proc,
            buffers,
            shared: shared.clone(),
            wait: Cell::new(Wait::Allowed),
            bulk_access: Cell::new(shared.bulk_access),
            temp_space: Arc::default(),
            lock_timeout: Cell::new(None),
            commit_delay: Cell::default(),
            combos: RefCell::default(),
            heap: HeapSession::default(),
            pending_commit: RefCell::new(None),
        })
    }

    /// The room for the session's temporary files.
    pub fn temp_space(&self) -> &Arc<TempSpace> {
        &self.temp_space
    }

    /// What is shared.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The buffer pool.
    #[inline]
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.shared.pool
    }

    /// The session's access to the buffer pool.
    #[inline]
    pub fn buffers(&self) -> &BufferSession {
        &self.buffers
    }

    /// The log.
    #[inline]
    pub fn log(&self) -> &Arc<Log> {
        &self.shared.log
    }

    /// Transactions.
    #[inline]
    pub fn txns(&self) -> &Arc<Transactions> {
        &self.shared.txns
    }

    /// Locks.
    #[inline]
    pub fn locks(&self) -> &Arc<LockManager> {
        &self.shared.locks
    }

    /// The session's own line.
    #[inline]
    pub fn proc(&self) -> &ProcHandle {
        &self.proc
    }

    /// The session's number.
    #[inline]
    pub fn no(&self) -> SessionNo {
        self.proc.no()
    }

    /// Whether operations may wait; if not, they answer [`EngineError::WouldBlock`] before their first change.
    #[inline]
    pub fn wait(&self) -> Wait {
        self.wait.get()
    }

    /// Says whether operations may wait.
    pub fn set_wait(&self, wait: Wait) {
        self.wait.set(wait);
    }

    /// Whether operations may wait.
    #[inline]
    pub fn may_wait(&self) -> bool {
        matches!(self.wait.get(), Wait::Allowed)
    }

    /// How the session's bulk work uses the pool.
    pub fn bulk_access(&self) -> BulkAccess {
        self.bulk_access.get()
    }

    /// Says how the session's bulk work uses the pool from now on.
    pub fn set_bulk_access(&self, bulk: BulkAccess) {
        self.bulk_access.set(bulk);
        self.buffers.set_io_timing(bulk.io_timing);
    }

    /// Sets `lock_timeout`; `None` waits for ever.
    pub fn set_lock_timeout(&self, timeout: Option<Duration>) {
        self.lock_timeout.set(timeout);
    }

    /// Sets `commit_delay` and `commit_siblings`.
    pub fn set_commit_delay(&self, delay: CommitDelay) {
        self.commit_delay.set(delay);
    }

    /// How long this session, if it leads a group of commits now, lets others join.
    pub fn commit_pause(&self) -> Duration {
        let CommitDelay { delay, siblings } = self.commit_delay.get();
        if delay.is_zero() || !self.shared.procs.has_siblings(self.no(), siblings) {
            return Duration::ZERO;
        }
        delay
    }

    /// How long a lock request that starts now may wait.
    pub fn lock_wait(&self) -> LockWait {
        if !self.may_wait() {
            return LockWait::Never;
        }
        match self.lock_timeout.get().and_then(|timeout| clock::now().checked_add(timeout)) {
            Some(until) => LockWait::Until(until),
            None => LockWait::Forever,
        }
    }

    /// What the session keeps for heap operations.
    #[inline]
    pub fn heap(&self) -> &HeapSession {
        &self.heap
    }

    /// The combo command ids of the running transaction.
    pub fn combos(&self) -> &RefCell<ComboCids> {
        &self.combos
    }

    /// The commit that waits for the log, if any.
    pub(crate) fn pending_commit(&self) -> &RefCell<Option<PendingCommit>> {
        &self.pending_commit
    }

    /// The running transaction's id, drawn now if it has none yet.
    #[inline]
    pub fn assign_xid(&self) -> EngineResult<Xid> {
        match self.proc.xid() {
            Some(xid) => Ok(xid),
            None => self.txns().assign(self),
        }
    }

    /// Fails if somebody has asked the session to stop.
    #[inline]
    pub fn check_interrupts(&self) -> EngineResult<()> {
        self.proc.check_interrupts()
    }

    /// Acquires a lock for the transaction, waiting as the session may.
    pub fn lock(&self, tag: LockTag, mode: LockMode) -> EngineResult<Acquired> {
        self.lock_for(LockOwner::Transaction, tag, mode)
    }

    /// Acquires a lock for the transaction or for the session, waiting as the session may.
    pub fn lock_for(
        &self,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
    ) -> EngineResult<Acquired> {
        let acquired = self.locks().acquire_for(&self.proc, owner, tag, mode, self.lock_wait());
        acquired.map_err(|error| self.lock_error(error.into()))
    }

    /// Acquires a lock at once or fails (NOWAIT).
    pub fn lock_nowait(&self, tag: LockTag, mode: LockMode) -> EngineResult<Acquired> {
        Ok(self.locks().acquire(&self.proc, tag, mode, LockWait::Never)?)
    }

    /// Waits for the end of another transaction, as the session may.
    pub fn wait_for_xid(&self, xid: Xid) -> EngineResult<()> {
        let waited = self.txns().wait_for(self, xid, self.lock_wait());
        waited.map_err(|error| self.lock_error(error))
    }

    /// Waits until transaction `xid` no longer stands in the way of changing or locking a row, in the queue for that
    /// row (lmgr rule 8). Hold the result until the row has been looked at again and changed, so that nobody who came
    /// later is first; who wants what does not exclude this may. No latch may be held.
    pub fn wait_for_row(
        &self,
        relation: u32,
        tid: Tid,
        wanted: LockStrength,
        xid: Xid,
    ) -> EngineResult<RowTurn<'_>> {
        let tag = LockTag::Tuple { relation, block: tid.block.0, offset: tid.offset };
        // Modes that exclude each other as the strengths do.
        let mode = match wanted {
            LockStrength::KeyShare => LockMode::AccessShare,
            LockStrength::Share => LockMode::RowShare,
            LockStrength::NoKeyUpdate => LockMode::Exclusive,
            LockStrength::Update => LockMode::AccessExclusive,
        };
        if !mutant!("lock-row-without-turn") {
            self.lock(tag, mode)?;
        }
        let turn = RowTurn { ctx: self, tag, mode };
        self.wait_for_xid(xid)?;
        Ok(turn)
    }

    /// Gives up a turn that was kept.
    pub(crate) fn end_turn(&self, turn: KeptTurn) {
        self.locks().release(&self.proc, LockOwner::Transaction, turn.tag, turn.mode);
    }

    /// In a session that may not wait, "somebody is in the way" means "try again where you may".
    fn lock_error(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::LockNotAvailable { .. } if !self.may_wait() => EngineError::WouldBlock,
            other => other,
        }
    }
}

/// A turn that is kept beyond a [`RowTurn`]'s life. The end of the transaction gives it up at the latest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptTurn {
    tag: LockTag,
    mode: LockMode,
}

impl RowTurn<'_> {
    /// Keeps the turn until [`Ctx::end_turn`].
    pub(crate) fn keep(self) -> KeptTurn {
        let kept = KeptTurn { tag: self.tag, mode: self.mode };
        std::mem::forget(self);
        kept
    }
}

/// A session's turn at a row that several want to change; given up when dropped.
pub struct RowTurn<'a> {
    ctx: &'a Ctx,
    tag: LockTag,
    mode: LockMode,
}

impl Drop for RowTurn<'_> {
    fn drop(&mut self) {
        let (locks, proc) = (self.ctx.locks(), self.ctx.proc());
        locks.release(proc, LockOwner::Transaction, self.tag, self.mode);
    }
}

impl Fates for Ctx {
    fn status(&self, xid: Xid) -> EngineResult<XidStatus> {
        self.txns().status(self, xid)
    }

    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)> {
        self.combos.borrow().pair(id)
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        // A session that ends in the middle of a transaction rolls it back.
        let shared = self.shared.clone();
        shared.txns.abort(self, &[]);
        shared.locks.release_all(&self.proc);
    }
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx").field("session", &self.no()).field("xid", &self.proc.xid()).finish()
    }
}

impl Logging for Ctx {
    fn log(&self) -> &Log {
        &self.shared.log
    }
    fn stripe(&self) -> SessionNo {
        self.proc.no()
    }
    fn wait(&self) -> Wait {
        self.wait.get()
    }
}

/// As what `pg_stat_io` counts a session's input and output.
pub(crate) fn backend_kind(kind: &str) -> BackendKind {
    match kind {
        "client backend" => BackendKind::Client,
        crate::proc::AUTOVACUUM_WORKER => BackendKind::Autovacuum,
        "background writer" => BackendKind::BackgroundWriter,
        "checkpointer" => BackendKind::Checkpointer,
        // Parallel workers among them, as in PostgreSQL.
        _ => BackendKind::Other,
    }
}
