//! A session: it runs one transaction at a time, and does all that statements do to tables.
//!
//! # Order of calls
//!
//! [`begin`](Session::begin); for each statement [`start_statement`](Session::start_statement),
//! reads and changes, [`end_statement`](Session::end_statement); then [`commit`](Session::commit)
//! or [`abort`](Session::abort). After an error in a statement only `abort` undoes what it did:
//! there are no savepoints yet.
//!
//! Before a statement touches a table, it calls [`lock_table`](Session::lock_table). The call also
//! checks that the table's definition is still current. Locks last until the end of the
//! transaction. In READ COMMITTED the first read takes the statement's snapshot, so a statement
//! locks all its tables before it reads any.
//!
//! # Waiting
//!
//! With [`set_wait`](Session::set_wait)`(Wait::Never)` an operation does not wait for a page,
//! another writer of the row, a lock or room in the log. It fails with [`EngineError::WouldBlock`]
//! before it has changed anything. The caller can repeat the same call where waiting is allowed.
//! The next call on an index scan or heap scan resumes the scan.
//!
//! # State
//!
//! All state is private memory of the session: context, transaction, the turn at a row, a copy of
//! the catalog's state, and reusable buffers. With the buffers, a read by key allocates nothing. A
//! session shares only the stop flags that parallel scans check.
//!
//! `transaction`, `turn`, `view` and `stop` hold the parts of that state. They work on the context
//! and know no session. The other modules have the session's methods, by role. Three roles have
//! a type of their own, which borrows the session: [`Ddl`], [`Maintenance`], [`SessionLocks`].

mod commit;
mod ddl;
mod definitions;
mod index;
mod index_run;
mod locks;
mod lookup_many;
mod outcome;
mod parallel_scan;
mod read;
mod row_lock;
mod scan;
mod statement;
mod stop;
mod transaction;
mod turn;
mod vacuum;
mod view;
mod write;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use millpond_buffer::Wait;
use millpond_sync::prefetch::prefetch;

use crate::access::btree::Tids;
use crate::bulk::BulkAccess;
use crate::ctx::Ctx;
use crate::engine::Engine;
use crate::error::{EngineError, EngineResult};
use crate::proc::{Interrupt, ProcHandle};
use crate::sort::temp::TempSpace;
use crate::transam::snapshot::XidStatus;
use crate::transam::{SessionNo, Xid};

pub use commit::{Commit, CommitTicket};
pub use ddl::Ddl;
pub use locks::SessionLocks;
pub use lookup_many::LookupBatch;
pub use parallel_scan::{ParallelScan, ScanWorker};
pub use scan::{HeapScan, IndexScan};
pub use stop::CancelHandle;
pub use transaction::TransactionOptions;
pub use vacuum::{Maintenance, VacuumSummary};

use stop::Stop;
use transaction::Transaction;
use turn::Turn;
use view::CatalogView;

/// Memory that calls reuse.
#[derive(Default)]
struct Scratch {
    key: Vec<u8>,
    tids: Tids,
    row: Vec<u8>,
}

/// A session. It may move between threads; one thread at a time uses it.
pub struct Session {
    engine: Arc<Engine>,
    ctx: Ctx,
    transaction: Transaction,
    view: RefCell<CatalogView>,
    scratch: RefCell<Scratch>,
    /// The statement's turn at a row for which other sessions wait, too.
    turn: Turn,
    /// Flags for the workers of parallel scans.
    stop: Stop,
    vacuum_automatic: Cell<bool>,
    /// Whether it counts towards `max_connections`.
    is_client: bool,
}

impl Engine {
    /// A new session. Fails with `TooManySessions` when `max_connections` sessions exist.
    pub fn session(self: &Arc<Self>) -> EngineResult<Session> {
        self.client_comes()?;
        match Ctx::new(self.shared(), "client backend") {
            Ok(ctx) => Ok(Session::new(Arc::clone(self), ctx, true)),
            Err(error) => {
                self.client_left();
                Err(error)
            }
        }
    }

    /// An internal session, which does not count towards `max_connections`.
    pub(crate) fn internal_session(self: &Arc<Self>, kind: &'static str) -> EngineResult<Session> {
        Ok(Session::new(Arc::clone(self), Ctx::new(self.shared(), kind)?, false))
    }
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, ctx: Ctx, is_client: bool) -> Self {
        Self {
            view: RefCell::new(CatalogView::new(engine.published())),
            engine,
            ctx,
            transaction: Transaction::default(),
            scratch: RefCell::default(),
            turn: Turn::default(),
            stop: Stop::default(),
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

    /// The session's number: its index in the tables of sessions.
    pub fn number(&self) -> SessionNo {
        self.ctx.no()
    }

    /// The session's line in the table of sessions: activity, wait event, process id.
    pub fn proc(&self) -> &ProcHandle {
        self.ctx.proc()
    }

    /// Prefetches the session's memory that a short statement uses. A thread that serves many
    /// sessions in turn would otherwise find it evicted from the processor's near caches. Changes
    /// nothing.
    pub fn prefetch(&self) {
        self.ctx.proc().prefetch();
        self.ctx.locks().prefetch(self.number());
        self.ctx.buffers().prefetch();
        if let Ok(scratch) = self.scratch.try_borrow() {
            prefetch(&scratch.key[..]);
        }
    }

    /// Sets whether operations may wait from now on. In a new session they may.
    pub fn set_wait(&self, wait: Wait) {
        self.ctx.set_wait(wait);
    }

    /// Whether operations may wait.
    pub fn wait(&self) -> Wait {
        self.ctx.wait()
    }

    /// How many pages have been loaded for this session, of any relation: when it needed them, or
    /// ahead.
    pub fn page_loads(&self) -> u64 {
        self.ctx.buffers().loads()
    }

    /// Whether statements read ahead (`effective_io_concurrency` is not 0).
    pub fn reads_ahead(&self) -> bool {
        self.ctx.bulk_access().streams.io_concurrency > 0
    }

    /// The size of the buffer pool, in pages.
    pub fn pool_frames(&self) -> usize {
        self.ctx.pool().frames()
    }

    /// Sets how the session's bulk work uses the buffer pool from now on.
    pub fn set_bulk_access(&self, bulk: BulkAccess) {
        self.ctx.set_bulk_access(bulk);
    }

    /// How the session's bulk work uses the buffer pool.
    pub fn bulk_access(&self) -> BulkAccess {
        self.ctx.bulk_access()
    }

    /// The budget for the session's temporary files (`temp_file_limit`).
    pub fn temp_space(&self) -> &Arc<TempSpace> {
        self.ctx.temp_space()
    }

    /// A handle that cancels this session's statements.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.stop.handle(&self.ctx)
    }

    /// Fails with `Cancelled` if the session has been asked to stop. Long computations call it
    /// regularly.
    #[inline]
    pub fn check_cancel(&self) -> EngineResult<()> {
        self.ctx.check_interrupts()
    }

    /// For a computation that has taken long and is not done. Fails like
    /// [`check_cancel`](Self::check_cancel), and with `WouldBlock` where the session must not wait:
    /// an event loop has other sessions to serve.
    pub fn check_long_work(&self) -> EngineResult<()> {
        self.ctx.check_interrupts()?;
        if self.ctx.may_wait() { Ok(()) } else { Err(EngineError::WouldBlock) }
    }

    /// Why the session has been asked to stop, if it has.
    pub fn interrupt(&self) -> Option<Interrupt> {
        self.ctx.proc().interrupt()
    }

    /// Clears a request to cancel, between statements. Requests to end the session stay.
    pub fn clear_cancel(&self) {
        self.stop.clear(&self.ctx);
    }

    /// The transaction's id, if it has changed anything.
    pub fn xid(&self) -> Option<Xid> {
        self.ctx.proc().xid()
    }

    /// What became of a transaction; `None` if none has begun under this id. May read a page.
    pub fn status_of(&self, xid: Xid) -> EngineResult<Option<XidStatus>> {
        self.engine.transactions().status_if_begun(&self.ctx, xid)
    }

    /// The id that the next transaction gets.
    pub fn next_xid(&self) -> Xid {
        self.engine.transactions().next_xid()
    }

    /// The transaction's id. It gets one if it has none yet, as before its first change.
    pub fn assign_xid(&self) -> EngineResult<Xid> {
        self.ctx.assign_xid()
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
