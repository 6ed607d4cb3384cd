//! Transactions: ids, statuses, snapshots, horizons, and what outlives memory.
//!
//! The parts are the clock of commits, the ring of statuses with its overflow ([`super::ring`]), the lines of
//! the sessions ([`crate::proc`]) and the clog pages ([`super::clog`]). The ends of transactions are in
//! [`super::commit`], the service of checkpoints and of recovery in [`super::upkeep`].

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use millpond_buffer::{BufferPool, RelHandle, RelationId};
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use millpond_sync::sync::Mutex;

use super::ids::{Csn, Xid};
use super::ring::{Found, StatusRing};
use super::row_locks::{Lockers, MAX_SHARED_ROWS, RowLocks, RowVersion};
use super::snapshot::{Horizon, XidStatus};
use super::upkeep::{Recovered, Upkeep};
use super::{clock::CommitClock, clog, csn_pages};
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::lmgr::{LockError, LockWait};
use crate::proc::ProcArray;
use crate::wal::storage::create_fork;

/// Statuses that the ring holds unless configured otherwise: two megabytes.
pub const DEFAULT_RING_SIZE: usize = 1 << 18;

/// Chunks of statuses that have left the ring and are kept in memory for old snapshots: eight megabytes. Further ones go to
/// the commit number file.
const KEPT_CHUNKS: usize = 1 << 10;

/// All transactions of a database.
pub struct Transactions {
    pub(super) procs: Arc<ProcArray>,
    pub(super) ring: StatusRing,
    pub(super) clock: CommitClock,
    /// The last horizon computed: true for ever, exact for a moment.
    horizon: CachePadded<(AtomicU64, AtomicU64)>,
    clog: OnceLock<RelHandle>,
    csn_file: OnceLock<RelHandle>,
    /// How many chunks the overflow keeps in memory.
    pub(super) kept_chunks: AtomicUsize,
    row_locks: RowLocks,
    pub(super) upkeep: Mutex<Upkeep>,
    pub(super) recovered: Mutex<Option<Recovered>>,
    /// The log has failed while commits waited for it: their outcome is unknown until a restart.
    pub(super) in_doubt: AtomicBool,
    /// Files that could not be removed at once.
    pub(super) undropped: Mutex<Vec<RelationId>>,
}

impl Transactions {
    /// The transactions of a database whose next id is at least `next`; recovery, or a start without any,
    /// ends with [`finish_recovery`](Self::finish_recovery).
    pub fn new(procs: Arc<ProcArray>, ring_size: usize, next: Xid) -> Arc<Self> {
        Self::with_shared_rows(procs, ring_size, next, MAX_SHARED_ROWS)
    }

    /// The same, with room for so many rows that several transactions hold.
    pub(crate) fn with_shared_rows(
        procs: Arc<ProcArray>,
        ring_size: usize,
        next: Xid,
        shared_rows: usize,
    ) -> Arc<Self> {
        // Each session may draw one id between looking for room and drawing.
        let ring_size = ring_size.max(4 * procs.capacity());
        let next = next.max(Xid::FIRST);
        Arc::new(Transactions {
            ring: StatusRing::new(ring_size, next),
            clock: CommitClock::new(),
            horizon: CachePadded::new((AtomicU64::new(Csn::FROZEN.0), AtomicU64::new(next.0))),
            clog: OnceLock::new(),
            csn_file: OnceLock::new(),
            kept_chunks: AtomicUsize::new(KEPT_CHUNKS),
            row_locks: RowLocks::new(shared_rows),
            upkeep: Mutex::default(),
            recovered: Mutex::new(Some(Recovered::new(next))),
            in_doubt: AtomicBool::new(false),
            undropped: Mutex::default(),
            procs,
        })
    }

    /// The status pages, opened at first use.
    pub(super) fn clog(&self, ctx: &Ctx) -> EngineResult<&RelHandle> {
        if let Some(rel) = self.clog.get() {
            return Ok(rel);
        }
        // Only where the log knows of none: a file that is missing is damage, not a new database.
        if ctx.log().forks().get(clog::CLOG).is_none() {
            create_fork(ctx, ctx.pool(), Xid::INVALID, clog::CLOG)?;
        }
        let rel = ctx.pool().relation(clog::CLOG)?;
        Ok(self.clog.get_or_init(|| rel))
    }

    /// The commit number file, made at first use.
    pub(super) fn csn_file(&self, pool: &Arc<BufferPool>) -> EngineResult<&RelHandle> {
        if let Some(rel) = self.csn_file.get() {
            return Ok(rel);
        }
        pool.create(csn_pages::CSN_FILE)?;
        let rel = pool.relation(csn_pages::CSN_FILE)?;
        Ok(self.csn_file.get_or_init(|| rel))
    }

    /// Gives the session's transaction an id, unless it has one.
    pub fn assign(&self, ctx: &Ctx) -> EngineResult<Xid> {
        let proc = ctx.proc();
        if let Some(xid) = proc.xid() {
            return Ok(xid);
        }
        if self.ring.room() <= self.ring.size() / 4 {
            self.make_room(ctx)?;
        }
        if self.ring.next() >= Xid::LIMIT {
            return Err(EngineError::LimitExceeded { what: "transaction ids are used up" });
        }
        proc.announce_xid(self.ring.next());
        let xid = self.ring.draw();
        proc.publish_xid(Some(xid));
        Ok(xid)
    }

    /// Retires statuses until there is room for an id of every session.
    fn make_room(&self, ctx: &Ctx) -> EngineResult<()> {
        let enough = self.procs.capacity() as u64;
        if ctx.may_wait()
            && let Some(mut upkeep) = self.upkeep.try_lock()
        {
            self.retire(ctx, &mut upkeep)?;
        }
        while self.ring.room() <= enough {
            if !ctx.may_wait() {
                return Err(EngineError::WouldBlock);
            }
            ctx.check_interrupts()?;
            self.maintain(ctx)?;
            if self.ring.room() <= enough {
                // Some session lost the processor between drawing its id and publishing it.
                millpond_sync::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// The fate of a transaction. Waits out the instant in which a commit draws its number; may
    /// have to read a status page.
    pub fn status(&self, ctx: &Ctx, xid: Xid) -> EngineResult<XidStatus> {
        if !xid.is_normal() {
            return Ok(XidStatus::Committed(Csn::FROZEN));
        }
        let mut looked_at = None;
        loop {
            let place = match self.ring.find(xid) {
                Found::Status(status) => return Ok(status),
                Found::Clog => return self.settled_status(ctx, xid),
                Found::Spilled(place) => place,
                Found::Unknown => {
                    return Err(EngineError::Corruption {
                        place: format!("transaction {xid}"),
                        what: format!("was never begun: the next is {}", self.ring.next()),
                    });
                }
            };
            let rel = self.csn_file(ctx.pool())?;
            if let Some(status) = csn_pages::read(ctx, rel, place, xid)? {
                return Ok(status);
            }
            // Its chunk was forgotten meanwhile, unless it is looked for in the same place again.
            if looked_at.replace(place) == Some(place) {
                return Err(EngineError::Corruption {
                    place: csn_pages::CSN_FILE.page(place.block).to_string(),
                    what: format!("commit numbers of another chunk than {}", place.chunk),
                });
            }
        }
    }

    /// The fate of a transaction that has ended and whose number nobody asks for.
    fn settled_status(&self, ctx: &Ctx, xid: Xid) -> EngineResult<XidStatus> {
        let committed = clog::has_committed(ctx, self.clog(ctx)?, xid)?;
        Ok(if committed { XidStatus::Committed(Csn::FROZEN) } else { XidStatus::Aborted })
    }

    /// Whether a transaction is still to end.
    fn is_running(&self, xid: Xid) -> bool {
        xid.is_normal() && matches!(self.ring.find(xid), Found::Status(XidStatus::InProgress))
    }

    /// Takes a snapshot: the number of the last commit that it sees. Vacuum leaves alone what it needs
    /// until [`release_snapshot`](Self::release_snapshot).
    #[inline]
    pub fn snapshot(&self, ctx: &Ctx) -> Csn {
        ctx.proc().publish_snapshot(|| self.clock.load())
    }

    /// Gives a snapshot back.
    pub fn release_snapshot(&self, ctx: &Ctx, csn: Csn) {
        ctx.proc().withdraw_snapshot(csn);
    }

    /// The number of the last commit.
    pub fn last_csn(&self) -> Csn {
        self.clock.load()
    }

    /// The next id to be drawn.
    pub fn next_xid(&self) -> Xid {
        self.ring.next()
    }

    /// What no snapshot can see any more. Looks at the line of every session.
    pub fn horizon(&self) -> Horizon {
        let (csn, xid) = (self.clock.load(), self.ring.next());
        let csn = self.procs.oldest_snapshot(csn);
        let oldest_running_xid = self.procs.oldest_xid(xid);
        self.horizon.0.fetch_max(csn.0, Ordering::AcqRel);
        self.horizon.1.fetch_max(oldest_running_xid.0, Ordering::AcqRel);
        self.recent_horizon()
    }

    /// The last horizon that somebody has computed: behind, but never wrong, and free.
    #[inline]
    pub fn recent_horizon(&self) -> Horizon {
        Horizon {
            csn: Csn(self.horizon.0.load(Ordering::Acquire)),
            oldest_running_xid: Xid(self.horizon.1.load(Ordering::Acquire)),
        }
    }

    /// Who holds a row version besides its xmax, as far as their transactions run. To be asked and told under the
    /// exclusive latch of the version's page, if the version has the flag XMAX_IS_MULTI.
    pub fn lockers(&self, row: &RowVersion) -> Lockers {
        let mut lockers = self.row_locks.get(row);
        lockers.retain(|locker| self.is_running(locker.xid));
        lockers
    }

    /// Notes who holds a row version besides its xmax.
    pub fn set_lockers(&self, row: RowVersion, lockers: Lockers) -> EngineResult<()> {
        self.row_locks.set(row, lockers, |xid| self.is_running(xid))
    }

    /// Forgets holders of rows whose transactions have ended.
    pub(super) fn sweep_row_locks(&self) {
        self.row_locks.sweep(|xid| self.is_running(xid));
    }

    /// Row versions whose holders besides xmax are noted.
    pub fn shared_rows(&self) -> usize {
        self.row_locks.len()
    }

    /// Waits for a transaction to end.
    pub fn wait_for(&self, ctx: &Ctx, xid: Xid, how: LockWait) -> EngineResult<()> {
        debug_assert_ne!(ctx.proc().xid(), Some(xid), "a transaction cannot wait for itself");
        while self.is_running(xid) {
            if self.in_doubt.load(Ordering::Acquire) {
                return Err(EngineError::InDoubt { xid });
            }
            ctx.locks()
                .wait_for_transaction(ctx.proc(), xid, how, || self.is_running(xid))
                .map_err(|error| match error {
                    LockError::WouldBlock { tag } => EngineError::LockNotAvailable { tag },
                    other => other.into(),
                })?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Transactions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transactions")
            .field("next", &self.ring.next())
            .field("retired", &self.ring.retired())
            .field("last_csn", &self.clock.load())
            .finish_non_exhaustive()
    }
}
