//! The lock manager: requests.
//!
//! What has to wait is put into a queue here, and waits in [`super::waiting`]. The mutex of a partition is never held while
//! a thread waits for a lock, a page or the log.

use std::time::{Duration, Instant};

use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::sync::{Mutex, MutexGuard};
use millpond_sync::{clock, mutant};
use smallvec::SmallVec;

use super::counters::LockCounters;
use super::deadlock::tell_deadlock;
use super::fast::{FastPath, Noted};
use super::local::{Held, LocalLocks, LockOwner, Place};
use super::mode::LockMode;
use super::table::{Partition, Request, TagHash, Waiter};
use super::tag::LockTag;
use super::waiting::WAITING;
use super::{Acquired, LockError, LockInfo, LockWait};
use crate::proc::{ProcArray, ProcHandle};
use crate::transam::SessionNo;

/// Mutexes of the shared table.
const PARTITIONS: usize = 16;

/// How far a request got without waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    AlreadyHeld,
    Granted(Place),
    Queued,
}

/// What a session in a queue waits for; stable for those who hold all partitions.
pub(super) type Waits = Box<[Mutex<Option<(LockTag, LockMode)>>]>;

/// All locks of a database.
pub struct LockManager {
    pub(super) procs: std::sync::Arc<ProcArray>,
    pub(super) fast: FastPath,
    partitions: [CachePadded<Mutex<Partition>>; PARTITIONS],
    pub(super) waits: Waits,
    deadlock_timeout_us: AtomicU64,
    pub(super) counters: LockCounters,
}

impl LockManager {
    /// A manager for the sessions of `procs`, with PostgreSQL's default `deadlock_timeout` of one second.
    pub fn new(procs: std::sync::Arc<ProcArray>) -> std::sync::Arc<Self> {
        let sessions = procs.capacity();
        std::sync::Arc::new(LockManager {
            procs,
            fast: FastPath::new(sessions),
            partitions: std::array::from_fn(|_| CachePadded::new(Mutex::new(Partition::default()))),
            waits: (0..sessions).map(|_| Mutex::new(None)).collect(),
            deadlock_timeout_us: AtomicU64::new(1_000_000),
            counters: LockCounters::new(sessions),
        })
    }

    /// Sets `deadlock_timeout`: how long a session that has no setting of its own waits before it looks for a
    /// deadlock.
    pub fn set_deadlock_timeout(&self, timeout: Duration) {
        let us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        self.deadlock_timeout_us.store(us, Ordering::Relaxed);
    }

    /// How long this session waits before it looks for a deadlock.
    pub(super) fn deadlock_timeout(&self, proc: &ProcHandle) -> Duration {
        let own = proc.local_locks().borrow().deadlock_timeout;
        own.unwrap_or_else(|| {
            Duration::from_micros(self.deadlock_timeout_us.load(Ordering::Relaxed))
        })
    }

    /// Asks for where the session's weak locks are noted.
    #[inline]
    pub(crate) fn prefetch(&self, session: SessionNo) {
        self.fast.prefetch(session);
    }

    fn partition_no(tag: &LockTag) -> usize {
        use std::hash::BuildHasher;
        (TagHash::default().hash_one(tag) >> 40) as usize % PARTITIONS
    }

    pub(super) fn partition(&self, tag: &LockTag) -> MutexGuard<'_, Partition> {
        self.partitions[Self::partition_no(tag)].lock()
    }

    /// Locks all partitions, in their one order.
    pub(super) fn all_partitions(&self) -> AllPartitions<'_> {
        AllPartitions(self.partitions.iter().map(|p| p.lock()).collect())
    }

    /// Acquires a lock that the end of the transaction releases.
    pub fn acquire(
        &self,
        proc: &ProcHandle,
        tag: LockTag,
        mode: LockMode,
        how: LockWait,
    ) -> Result<Acquired, LockError> {
        self.acquire_for(proc, LockOwner::Transaction, tag, mode, how)
    }

    /// Acquires a lock for the transaction or for the session.
    pub fn acquire_for(
        &self,
        proc: &ProcHandle,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
        how: LockWait,
    ) -> Result<Acquired, LockError> {
        let place = match self.begin(proc, owner, tag, mode, how != LockWait::Never)? {
            Begun::AlreadyHeld => return Ok(Acquired::AlreadyHeld),
            Begun::Granted(place) => place,
            Begun::Queued => {
                let _held = mutant!("lock-wait-under-mutex").then(|| self.partition(&tag));
                if let Err(error) = self.wait(proc, tag, mode, how) {
                    self.abandon(&tag, mode);
                    return Err(error);
                }
                Place::Table
            }
        };
        self.note_held(proc, owner, tag, mode, place);
        Ok(Acquired::New)
    }

    /// The part of a request that does not wait.
    pub(super) fn begin(
        &self,
        proc: &ProcHandle,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
        may_wait: bool,
    ) -> Result<Begun, LockError> {
        let mut local = proc.local_locks().borrow_mut();
        if let Some(held) = local.held.get_mut(&(tag, mode)) {
            if !mutant!("lock-not-counted") {
                *held.count(owner) += 1;
            }
            return Ok(Begun::AlreadyHeld);
        }
        if let Some(place) = self.note_weak(proc, &mut local, &tag, mode) {
            return Ok(Begun::Granted(place));
        }
        if let Some(relation) = strong_relation(&tag, mode) {
            self.fast.raise(relation);
        }
        let begun = self.request(proc, tag, mode, may_wait);
        if begun.is_err() {
            self.abandon(&tag, mode);
        }
        begun
    }

    /// Enters a granted lock into the session's own record.
    pub(super) fn note_held(
        &self,
        proc: &ProcHandle,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
        place: Place,
    ) {
        let mut held = Held { place, by_transaction: 0, by_session: 0 };
        *held.count(owner) = 1;
        proc.local_locks().borrow_mut().held.insert((tag, mode), held);
    }

    /// Undoes what announced a request that was not granted.
    pub(super) fn abandon(&self, tag: &LockTag, mode: LockMode) {
        if let Some(relation) = strong_relation(tag, mode) {
            self.fast.lower(relation);
        }
    }

    /// The fast path: weak modes on relations, in slots of the session's own.
    #[inline]
    fn note_weak(
        &self,
        proc: &ProcHandle,
        local: &mut LocalLocks,
        tag: &LockTag,
        mode: LockMode,
    ) -> Option<Place> {
        let LockTag::Relation(relation) = *tag else { return None };
        if !mode.is_weak() {
            return None;
        }
        match self.fast.note(proc.no(), local.slots_used, relation, mode) {
            Noted::Slot(slot) => {
                local.slots_used |= 1 << slot;
                Some(Place::Slot(slot))
            }
            Noted::Transferred => Some(Place::Table),
            Noted::Full => {
                self.counters.fast_path_exceeded(proc.no(), tag);
                None
            }
            Noted::No => None,
        }
    }

    fn request(
        &self,
        proc: &ProcHandle,
        tag: LockTag,
        mode: LockMode,
        may_wait: bool,
    ) -> Result<Begun, LockError> {
        let mut partition = self.partition(&tag);
        let entry = partition.entry(tag);
        if let Some(relation) = strong_relation(&tag, mode)
            && !mutant!("lock-strong-without-transfer")
        {
            self.fast.collect(relation, |session, mode| entry.grant(session, mode));
        }
        let refused = match entry.request(proc.no(), mode) {
            Request::Granted => return Ok(Begun::Granted(Place::Table)),
            Request::Wait(position) if may_wait => {
                let waiter = Waiter { session: proc.no(), mode, since: clock::now() };
                entry.enqueue(position, waiter);
                *self.waits[proc.no().index()].lock() = Some((tag, mode));
                self.procs.lock_wait(proc.no()).store(WAITING, Ordering::Relaxed);
                return Ok(Begun::Queued);
            }
            Request::Deadlock(other) if may_wait => {
                let detail = self.mutual_detail(proc.no(), tag, mode, other);
                let queries = self.queries([proc.no(), other].into_iter());
                partition.tidy(&tag);
                drop(partition);
                tell_deadlock(&detail, &queries);
                return Err(LockError::Deadlock { detail });
            }
            Request::Wait(_) | Request::Deadlock(_) => LockError::WouldBlock { tag },
        };
        partition.tidy(&tag);
        Err(refused)
    }

    /// Whether the session holds exactly this mode on the object.
    pub fn holds(&self, proc: &ProcHandle, tag: LockTag, mode: LockMode) -> bool {
        proc.local_locks().borrow().held.contains_key(&(tag, mode))
    }

    /// All locks, held and wanted, for pg_locks. The picture of each partition is exact; between
    /// partitions time passes.
    pub fn list(&self) -> Vec<LockInfo> {
        let mut infos = Vec::new();
        let process = |session| self.procs.process_id(session);
        self.fast.list(|session, relation, mode| {
            infos.push(LockInfo {
                tag: LockTag::Relation(relation),
                mode,
                session,
                process_id: process(session),
                granted: true,
                fast_path: true,
                waiting_since: None,
            });
        });
        for partition in &self.partitions {
            for (tag, entry) in partition.lock().iter() {
                let info = |session, mode, since: Option<Instant>| LockInfo {
                    tag: *tag,
                    mode,
                    session,
                    process_id: process(session),
                    granted: since.is_none(),
                    fast_path: false,
                    waiting_since: since,
                };
                for (session, modes) in entry.holders() {
                    infos.extend(modes.iter().map(|mode| info(session, mode, None)));
                }
                infos.extend(entry.queue().map(|w| info(w.session, w.mode, Some(w.since))));
            }
        }
        infos
    }
}

/// The guards of all partitions.
pub(super) struct AllPartitions<'a>(SmallVec<[MutexGuard<'a, Partition>; PARTITIONS]>);

impl AllPartitions<'_> {
    pub(super) fn of(&mut self, tag: &LockTag) -> &mut Partition {
        &mut self.0[LockManager::partition_no(tag)]
    }
}

/// The relation whose weak holders must be called in before a lock of this mode can be judged.
pub(super) fn strong_relation(tag: &LockTag, mode: LockMode) -> Option<u32> {
    match *tag {
        LockTag::Relation(relation) if mode.is_strong() => Some(relation),
        _ => None,
    }
}
