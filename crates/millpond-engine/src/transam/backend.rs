//! A session as transactions see it: its access to pool, log and locks, and its line in the table
//! of sessions. It remembers what belongs to its transaction. [`Ctx`](crate::ctx::Ctx) adds what
//! access methods need.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_buffer::{BufferPool, BufferSession, Lsn, RelationId, Wait};
use millpond_sync::clock;

use super::combo::ComboCids;
use crate::error::EngineResult;
use crate::ids::SessionNo;
use crate::lmgr::LockManager;
use crate::proc::ProcHandle;
use crate::wal::{Log, Logging, WalError};

/// How long the leader of a group of commits lets others join.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommitDelay {
    /// The pause (`commit_delay`).
    pub delay: Duration,
    /// The leader pauses only if at least this many other transactions are active: they have
    /// changed something, and wait for no lock (`commit_siblings`).
    pub siblings: usize,
}

/// What a session remembers between the two halves of a commit.
#[derive(Debug)]
pub(crate) struct PendingCommit {
    pub(super) end: Lsn,
    pub(super) files: Vec<RelationId>,
}

/// One session's part in transactions. (PostgreSQL calls a session's process its backend.) One
/// thread at a time uses it.
pub struct Backend {
    pool: Arc<BufferPool>,
    log: Arc<Log>,
    locks: Arc<LockManager>,
    /// Declared before `buffers`, so that it is dropped first: it shows the number of that session.
    proc: ProcHandle,
    buffers: BufferSession,
    wait: Cell<Wait>,
    commit_delay: Cell<CommitDelay>,
    /// When a commit that this session waited for was durable.
    committed: Cell<Option<Instant>>,
    combos: RefCell<ComboCids>,
    pending_commit: RefCell<Option<PendingCommit>>,
}

impl Backend {
    /// A session without a transaction. `proc` and `buffers` are its own.
    pub(crate) fn new(
        pool: Arc<BufferPool>,
        log: Arc<Log>,
        locks: Arc<LockManager>,
        proc: ProcHandle,
        buffers: BufferSession,
    ) -> Self {
        Self {
            pool,
            log,
            locks,
            proc,
            buffers,
            wait: Cell::new(Wait::Allowed),
            commit_delay: Cell::default(),
            committed: Cell::default(),
            combos: RefCell::default(),
            pending_commit: RefCell::new(None),
        }
    }

    /// The buffer pool.
    #[inline]
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// The session's access to the buffer pool.
    #[inline]
    pub fn buffers(&self) -> &BufferSession {
        &self.buffers
    }

    /// The log.
    #[inline]
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Locks.
    #[inline]
    pub fn locks(&self) -> &Arc<LockManager> {
        &self.locks
    }

    /// The session's line in the table of sessions.
    #[inline]
    pub fn proc(&self) -> &ProcHandle {
        &self.proc
    }

    /// The session's number.
    #[inline]
    pub fn no(&self) -> SessionNo {
        self.proc.no()
    }

    /// Whether operations may wait. If not, they return
    /// [`EngineError::WouldBlock`](crate::EngineError::WouldBlock) before their first change.
    #[inline]
    pub fn wait(&self) -> Wait {
        self.wait.get()
    }

    /// Sets whether operations may wait.
    pub fn set_wait(&self, wait: Wait) {
        self.wait.set(wait);
    }

    /// Whether operations may wait.
    #[inline]
    pub fn may_wait(&self) -> bool {
        matches!(self.wait.get(), Wait::Allowed)
    }

    /// Sets `commit_delay` and `commit_siblings`.
    pub fn set_commit_delay(&self, delay: CommitDelay) {
        self.commit_delay.set(delay);
    }

    /// Returns once the log is durable up to `upto`, the end of this session's commit.
    pub(crate) fn flush_commit(&self, upto: Lsn) -> Result<(), WalError> {
        let worked = self.committed.get().map_or(Duration::ZERO, clock::since);
        let flushed = self.log.flush_commit(upto, worked, || self.commit_pause());
        self.committed.set(Some(clock::now()));
        flushed
    }

    /// How long this session lets others join if it leads a group commit now.
    pub fn commit_pause(&self) -> Duration {
        let CommitDelay { delay, siblings } = self.commit_delay.get();
        if delay.is_zero() || !self.proc.array().has_siblings(self.no(), siblings) {
            return Duration::ZERO;
        }
        delay
    }

    /// The combo command ids of the running transaction.
    pub fn combos(&self) -> &RefCell<ComboCids> {
        &self.combos
    }

    /// The commit that waits for the log, if any.
    pub(crate) fn pending_commit(&self) -> &RefCell<Option<PendingCommit>> {
        &self.pending_commit
    }

    /// Fails if the session has been asked to stop.
    #[inline]
    pub fn check_interrupts(&self) -> EngineResult<()> {
        self.proc.check_interrupts()
    }
}

impl Logging for Backend {
    fn log(&self) -> &Log {
        &self.log
    }
    fn stripe(&self) -> SessionNo {
        self.proc.no()
    }
    fn wait(&self) -> Wait {
        self.wait.get()
    }
}
