//! Transactions: ids, statuses, snapshots, horizons, and their parts on disk.
//!
//! The parts are the commit clock, the ring of statuses with its overflow ([`super::ring`]), the
//! lines of the sessions ([`crate::proc`]) and the clog pages ([`super::clog`]). Commit and
//! rollback are in [`super::commit`], new ids in [`super::assign`]. Retirement, checkpoints and
//! recovery are in [`super::retire`].

use std::sync::Arc;
use std::sync::OnceLock;

use millpond_buffer::{BufferPool, RelHandle, RelationId};
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use millpond_sync::sync::Mutex;

use super::backend::Backend;
use super::chunk::CHUNK;
use super::overflow::Found;
use super::ring::StatusRing;
use super::row_locks::{Lockers, MAX_SHARED_ROWS, RowLocks, RowVersion};
use super::snapshot::{Horizon, XidStatus};
use super::upkeep::{Recovered, Upkeep};
use super::{clock::CommitClock, clog, csn_pages};
use crate::error::{EngineError, EngineResult};
use crate::ids::{Csn, Xid};
use crate::lmgr::{LockError, LockWait};
use crate::proc::ProcArray;
use crate::wal::storage::create_fork;

/// Statuses that the ring holds by default: two megabytes.
pub const DEFAULT_RING_SIZE: usize = 1 << 18;

/// The most statuses that the overflow keeps in memory for old snapshots: eight megabytes. Further
/// ones go to the commit number file.
pub const DEFAULT_OLD_STATUSES: usize = 1 << 20;

fn chunks(statuses: usize) -> usize {
    statuses.div_ceil(CHUNK as usize)
}

/// All transactions of a database.
pub struct Transactions {
    pub(super) procs: Arc<ProcArray>,
    pub(super) ring: StatusRing,
    pub(super) clock: CommitClock,
    /// The last computed horizon. It stays valid for ever; it is exact only for a moment.
    horizon: CachePadded<(AtomicU64, AtomicU64)>,
    clog: OnceLock<RelHandle>,
    csn_file: OnceLock<RelHandle>,
    /// The most chunks that the overflow keeps in memory.
    pub(super) kept_chunks: AtomicUsize,
    /// Pages written to the commit number file.
    pub(super) spilled_pages: AtomicU64,
    row_locks: RowLocks,
    pub(super) upkeep: Mutex<Upkeep>,
    pub(super) recovered: Mutex<Option<Recovered>>,
    /// The log has failed while commits waited for it. Their outcome is unknown until a restart.
    pub(super) in_doubt: AtomicBool,
    /// Files that could not be removed at once.
    pub(super) undropped: Mutex<Vec<RelationId>>,
}

impl Transactions {
    /// The transactions of a database whose next id is at least `next`. Recovery, or a start
    /// without it, ends with [`finish_recovery`](Self::finish_recovery).
    pub fn new(procs: Arc<ProcArray>, ring_size: usize, next: Xid) -> Arc<Self> {
        Self::with_shared_rows(procs, ring_size, next, MAX_SHARED_ROWS)
    }

    /// The same, with room for `shared_rows` rows that several transactions hold.
    pub(crate) fn with_shared_rows(
        procs: Arc<ProcArray>,
        ring_size: usize,
        next: Xid,
        shared_rows: usize,
    ) -> Arc<Self> {
        // Each session may draw one id between checking for room and drawing.
        let ring_size = ring_size.max(4 * procs.capacity());
        let next = next.max(Xid::FIRST);
        Arc::new(Transactions {
            ring: StatusRing::new(ring_size, next),
            clock: CommitClock::new(),
            horizon: CachePadded::new((AtomicU64::new(Csn::FROZEN.0), AtomicU64::new(next.0))),
            clog: OnceLock::new(),
            csn_file: OnceLock::new(),
            kept_chunks: AtomicUsize::new(chunks(DEFAULT_OLD_STATUSES)),
            spilled_pages: AtomicU64::new(0),
            row_locks: RowLocks::new(shared_rows),
            upkeep: Mutex::default(),
            recovered: Mutex::new(Some(Recovered::new(next))),
            in_doubt: AtomicBool::new(false),
            undropped: Mutex::default(),
            procs,
        })
    }

    /// Sets how many old statuses stay in memory, rounded up to whole pages of them.
    pub(crate) fn keep_in_memory(&self, statuses: usize) {
        self.kept_chunks.store(chunks(statuses), Ordering::Relaxed);
    }

    /// The number of pages of old statuses that were written to the commit number file since the
    /// start.
    pub fn spilled_pages(&self) -> u64 {
        self.spilled_pages.load(Ordering::Relaxed)
    }

    /// The status pages, opened at first use.
    pub(super) fn clog(&self, backend: &Backend) -> EngineResult<&RelHandle> {
        if let Some(rel) = self.clog.get() {
            return Ok(rel);
        }
        // Only if the log does not know it. Else a missing file is damage, not a new database.
        if backend.log().forks().get(clog::CLOG).is_none() {
            create_fork(backend, backend.pool(), Xid::INVALID, clog::CLOG)?;
        }
        let rel = backend.pool().relation(clog::CLOG)?;
        Ok(self.clog.get_or_init(|| rel))
    }

    /// The commit number file, created at first use.
    pub(super) fn csn_file(&self, pool: &Arc<BufferPool>) -> EngineResult<&RelHandle> {
        if let Some(rel) = self.csn_file.get() {
            return Ok(rel);
        }
        pool.create(csn_pages::CSN_FILE)?;
        let rel = pool.relation(csn_pages::CSN_FILE)?;
        Ok(self.csn_file.get_or_init(|| rel))
    }

    /// The status of a transaction. Waits while a commit draws its number. May read a page.
    pub fn status(&self, backend: &Backend, xid: Xid) -> EngineResult<XidStatus> {
        if !xid.is_normal() {
            return Ok(XidStatus::Committed(Csn::FROZEN));
        }
        let mut looked_at = None;
        loop {
            let place = match self.ring.find(xid) {
                Found::Status(status) => return Ok(status),
                Found::Clog => return self.settled_status(backend, xid),
                Found::Spilled(place) => place,
                Found::Unknown => {
                    return Err(EngineError::Corruption {
                        place: format!("transaction {xid}"),
                        what: format!("was never begun: the next is {}", self.ring.next()),
                    });
                }
            };
            let rel = self.csn_file(backend.pool())?;
            if let Some(status) = csn_pages::read(backend, rel, place, xid)? {
                return Ok(status);
            }
            // Its chunk was forgotten; look again. The same place twice is damage.
            if looked_at.replace(place) == Some(place) {
                return Err(EngineError::Corruption {
                    place: csn_pages::CSN_FILE.page(place.block).to_string(),
                    what: format!("commit numbers of another chunk than {}", place.chunk),
                });
            }
        }
    }

    /// The status of a transaction by any number; `None` if none has begun under it.
    pub fn status_if_begun(&self, backend: &Backend, xid: Xid) -> EngineResult<Option<XidStatus>> {
        // Ids only grow, so one that has begun now stays known.
        if xid >= self.ring.next() { Ok(None) } else { self.status(backend, xid).map(Some) }
    }

    /// The status of a transaction that has ended and whose number no snapshot needs.
    fn settled_status(&self, backend: &Backend, xid: Xid) -> EngineResult<XidStatus> {
        let committed = clog::has_committed(backend, self.clog(backend)?, xid)?;
        Ok(if committed { XidStatus::Committed(Csn::FROZEN) } else { XidStatus::Aborted })
    }

    /// Whether a transaction is still in progress.
    fn is_running(&self, xid: Xid) -> bool {
        xid.is_normal() && matches!(self.ring.find(xid), Found::Status(XidStatus::InProgress))
    }

    /// Takes a snapshot: the number of the last commit that it sees. Vacuum keeps what it needs
    /// until [`release_snapshot`](Self::release_snapshot).
    #[inline]
    pub fn snapshot(&self, backend: &Backend) -> Csn {
        backend.proc().publish_snapshot(|| self.clock.load())
    }

    /// Gives a snapshot back.
    pub fn release_snapshot(&self, backend: &Backend, csn: Csn) {
        backend.proc().withdraw_snapshot(csn);
    }

    /// The number of the last commit.
    pub fn last_csn(&self) -> Csn {
        self.clock.load()
    }

    /// The next id to be drawn.
    pub fn next_xid(&self) -> Xid {
        self.ring.next()
    }

    /// The current horizon. Reads the line of every session.
    pub fn horizon(&self) -> Horizon {
        let (csn, xid) = (self.clock.load(), self.ring.next());
        let csn = self.procs.oldest_snapshot(csn);
        let oldest_running_xid = self.procs.oldest_xid(xid);
        self.horizon.0.fetch_max(csn.0, Ordering::AcqRel);
        self.horizon.1.fetch_max(oldest_running_xid.0, Ordering::AcqRel);
        self.recent_horizon()
    }

    /// The last computed horizon: it may lag behind, but is never wrong, and costs two loads.
    #[inline]
    pub fn recent_horizon(&self) -> Horizon {
        Horizon {
            csn: Csn(self.horizon.0.load(Ordering::Acquire)),
            oldest_running_xid: Xid(self.horizon.1.load(Ordering::Acquire)),
        }
    }

    /// The running transactions that hold a row version, apart from its xmax. Call this and
    /// [`set_lockers`](Self::set_lockers) under the exclusive latch of the version's page, and only
    /// if the version has the flag XMAX_IS_MULTI.
    pub fn lockers(&self, row: &RowVersion) -> Lockers {
        let mut lockers = self.row_locks.get(row);
        lockers.retain(|locker| self.is_running(locker.xid));
        lockers
    }

    /// Records the holders of a row version, apart from its xmax.
    pub fn set_lockers(&self, row: RowVersion, lockers: Lockers) -> EngineResult<()> {
        self.row_locks.set(row, lockers, |xid| self.is_running(xid))
    }

    /// Removes row lock holders whose transactions have ended.
    pub(super) fn sweep_row_locks(&self) {
        self.row_locks.sweep(|xid| self.is_running(xid));
    }

    /// The number of row versions with recorded holders apart from xmax.
    pub fn shared_rows(&self) -> usize {
        self.row_locks.len()
    }

    /// Waits for a transaction to end.
    pub fn wait_for(&self, backend: &Backend, xid: Xid, how: LockWait) -> EngineResult<()> {
        debug_assert_ne!(backend.proc().xid(), Some(xid), "a transaction cannot wait for itself");
        while self.is_running(xid) {
            if self.in_doubt.load(Ordering::Acquire) {
                return Err(EngineError::InDoubt { xid });
            }
            backend
                .locks()
                .wait_for_transaction(backend.proc(), xid, how, || self.is_running(xid))
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
