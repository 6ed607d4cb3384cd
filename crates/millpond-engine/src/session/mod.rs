//! A session: one transaction at a time, and all that statements do to tables.
//!
//! # Order of calls
//!
//! [`begin`](Session::begin); for each statement [`start_statement`](Session::start_statement), reads and
//! changes, [`end_statement`](Session::end_statement); then [`commit`](Session::commit) or
//! [`abort`](Session::abort). After an error in a statement only `abort` undoes what it did: there are
//! no savepoints yet.
//!
//! Before a statement touches a table it calls [`lock_table`](Session::lock_table), which also tells whether
//! the definition is still the current one. Locks last until the end of the transaction. In READ COMMITTED the first read
//! takes the statement's snapshot, so a statement locks all its tables before it reads any.
//!
//! # Waiting
//!
//! With [`set_wait`](Session::set_wait)`(Wait::Never)` an operation that would have to wait (for a page, a
//! row's other writer, a lock, room in the log) fails with [`EngineError::WouldBlock`](crate::EngineError::WouldBlock) instead, before it
//! has changed anything: the same call can be repeated where waiting is allowed. An index scan or heap scan can
//! be resumed with its next call.
//!
//! # State
//!
//! All of it is the session's own memory: the context, the running transaction, a copy of the catalog's
//! state, and scratch memory that makes reads by key free of allocations. Nothing here is shared with other
//! threads but the stop marks that parallel scans look at.

mod ddl;
mod index;
mod read;
mod row_lock;
mod transaction;
mod upkeep;
mod view;
mod write;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millpond_buffer::Wait;
use millpond_sync::prefetch::prefetch;

use crate::access::btree::Tids;
use crate::bulk::BulkAccess;
use crate::ctx::Ctx;
use crate::engine::Engine;
use crate::error::EngineResult;
use crate::lmgr::{LockMode, LockOwner, LockTag};
use crate::proc::{Interrupt, InterruptHandle, ProcHandle};
use crate::sort::temp::TempSpace;
use crate::transam::{SessionNo, Xid};

pub use transaction::{Commit, CommitTicket, TransactionOptions};
pub use upkeep::VacuumSummary;

pub(crate) use index::encode_key as index_key;

use transaction::Transaction;
use view::CatalogView;

/// Interrupts what a session does, from any thread.
#[derive(Clone)]
pub struct CancelHandle {
    interrupts: InterruptHandle,
    stop: Arc<AtomicBool>,
}

impl CancelHandle {
    /// The session's running statement fails soon with `Cancelled`.
    pub fn cancel(&self) {
        self.interrupt(Interrupt::Cancel);
    }

    /// The same for any reason; [`Session::interrupt`] tells the session which.
    pub fn interrupt(&self, interrupt: Interrupt) {
        self.stop.store(true, Ordering::Relaxed);
        self.interrupts.interrupt(interrupt);
    }
}

impl std::fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelHandle").finish_non_exhaustive()
    }
}

/// Memory that is used again and again.
#[derive(Default)]
struct Scratch {
    key: Vec<u8>,
    tids: Tids,
    row: Vec<u8>,
}

/// A session. Moves between threads, but is used by one at a time.
pub struct Session {
    engine: Arc<Engine>,
    ctx: Ctx,
    transaction: Transaction,
    view: RefCell<CatalogView>,
    scratch: RefCell<Scratch>,
    /// The statement's turn at a row that others wait for, too.
    turn: Cell<Option<row_lock::Turn>>,
    /// Interrupted: workers of parallel scans look here.
    stop: Arc<AtomicBool>,
    /// Set when the statement ends; a new one for each parallel scan's statement.
    statement_over: RefCell<Option<Arc<AtomicBool>>>,
    vacuum_automatic: Cell<bool>,
    /// Counts towards `max_connections`.
    is_client: bool,
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, ctx: Ctx, is_client: bool) -> Self {
        Self {
            view: RefCell::new(CatalogView::new(engine.published())),
            engine,
            ctx,
            transaction: Transaction::default(),
            scratch: RefCell::default(),
            turn: Cell::new(None),
            stop: Arc::default(),
            statement_over: RefCell::default(),
            vacuum_automatic: Cell::new(false),
            is_client,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Its number: its slot in the tables of sessions.
    pub fn number(&self) -> SessionNo {
        self.ctx.no()
    }

    /// Its line in the table of sessions: activity, wait event, process id.
    pub fn proc(&self) -> &ProcHandle {
        self.ctx.proc()
    }

    /// Asks the processor for the memory of the session's own that a short statement uses, ahead of one. Who serves many
    /// sessions in turn finds it out of the near caches otherwise. Changes nothing.
    pub fn prefetch(&self) {
        self.ctx.proc().prefetch();
        self.ctx.locks().prefetch(self.number());
        self.ctx.buffers().prefetch();
        if let Ok(scratch) = self.scratch.try_borrow() {
            prefetch(&scratch.key[..]);
        }
    }

    /// Whether operations may wait from now on. A new session's may.
    pub fn set_wait(&self, wait: Wait) {
        self.ctx.set_wait(wait);
    }

    /// Whether operations may wait.
    pub fn wait(&self) -> Wait {
        self.ctx.wait()
    }

    /// How its bulk work uses the buffer pool from now on.
    pub fn set_bulk_access(&self, bulk: BulkAccess) {
        self.ctx.set_bulk_access(bulk);
    }

    /// How its bulk work uses the buffer pool.
    pub fn bulk_access(&self) -> BulkAccess {
        self.ctx.bulk_access()
    }

    /// The room for its temporary files (`temp_file_limit`).
    pub fn temp_space(&self) -> &Arc<TempSpace> {
        self.ctx.temp_space()
    }

    /// How long to wait for locks at most (`lock_timeout`).
    pub fn set_lock_timeout(&self, timeout: Option<Duration>) {
        self.ctx.set_lock_timeout(timeout);
    }

    /// How long to wait for a lock before looking for a deadlock (`deadlock_timeout`).
    pub fn set_deadlock_timeout(&self, timeout: Duration) {
        self.ctx.proc().local_locks().borrow_mut().deadlock_timeout = Some(timeout);
    }

    /// Whether the server's log is told of waits for locks that last longer than that (`log_lock_waits`).
    pub fn set_log_lock_waits(&self, on: bool) {
        self.ctx.proc().local_locks().borrow_mut().logs_waits = on;
    }

    /// A handle that cancels this session's statements.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle {
            interrupts: self.ctx.proc().interrupt_handle(),
            stop: Arc::clone(&self.stop),
        }
    }

    /// Fails with `Cancelled` if the session has been told to stop. Long computations call it now and then.
    pub fn check_cancel(&self) -> EngineResult<()> {
        self.ctx.check_interrupts()
    }

    /// Why the session has been told to stop, if it has.
    pub fn interrupt(&self) -> Option<Interrupt> {
        self.ctx.proc().interrupt()
    }

    /// Takes back a request to cancel (between statements). Requests to end the session stay.
    pub fn clear_cancel(&self) {
        // Who interrupts raises both, this one first: without a request there is nothing to take back, or it is yet to come.
        if self.ctx.proc().clear_statement_interrupts() && self.interrupt().is_none() {
            self.stop.store(false, Ordering::Relaxed);
        }
    }

    /// The transaction's id, if it has changed anything.
    pub fn xid(&self) -> Option<Xid> {
        self.ctx.proc().xid()
    }

    /// Takes any lock, until the end of the transaction or (`session`) of the session.
    pub fn acquire(&self, tag: LockTag, mode: LockMode, session: bool) -> EngineResult<()> {
        let owner = if session { LockOwner::Session } else { LockOwner::Transaction };
        self.ctx.lock_for(owner, tag, mode)?;
        Ok(())
    }

    /// Takes a lock if nobody is in the way (NOWAIT); says whether it did.
    pub fn try_acquire(&self, tag: LockTag, mode: LockMode, session: bool) -> EngineResult<bool> {
        use crate::lmgr::{LockError, LockWait};
        let owner = if session { LockOwner::Session } else { LockOwner::Transaction };
        match self.ctx.locks().acquire_for(self.ctx.proc(), owner, tag, mode, LockWait::Never) {
            Ok(_) => Ok(true),
            Err(LockError::WouldBlock { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives back a lock of the session (advisory locks); false if it has none such.
    pub fn release(&self, tag: LockTag, mode: LockMode) -> bool {
        self.ctx.locks().release(self.ctx.proc(), LockOwner::Session, tag, mode)
    }

    /// Gives back all locks of the session that its transaction does not hold.
    pub fn release_session_locks(&self) {
        self.ctx.locks().release_session_locks(self.ctx.proc());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abort();
        self.ctx.locks().release_all(self.ctx.proc());
        if self.is_client {
            self.engine.client_left();
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("ctx", &self.ctx).finish_non_exhaustive()
    }
}
