//! [`LockManager`]: the state that all requests for locks share.
//!
//! The shared table is divided into partitions, each with a mutex. No thread holds one while it
//! waits for a lock, a page or the log. Requests are in [`super::request`].

use std::time::{Duration, Instant};

use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::LockInfo;
use super::counters::{LockCounters, LockStats};
use super::fast::FastPath;
use super::table::Partition;
use crate::ids::SessionNo;
use crate::lock::{LockMode, LockTag, TagHash};
use crate::proc::{ProcArray, ProcHandle};

/// The number of partitions of the shared table, each with its mutex.
const PARTITIONS: usize = 16;

/// What each queued session waits for. It is stable for a thread that holds all partitions.
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
    /// A manager for the sessions of `procs`, with PostgreSQL's `deadlock_timeout` of one second.
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

    /// Sets the `deadlock_timeout` of sessions without their own: the wait before a deadlock
    /// search.
    pub fn set_deadlock_timeout(&self, timeout: Duration) {
        let us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        self.deadlock_timeout_us.store(us, Ordering::Relaxed);
    }

    /// How long this session waits before it searches for a deadlock.
    pub(super) fn deadlock_timeout(&self, proc: &ProcHandle) -> Duration {
        let own = proc.local_locks().borrow().deadlock_timeout;
        own.unwrap_or_else(|| {
            Duration::from_micros(self.deadlock_timeout_us.load(Ordering::Relaxed))
        })
    }

    /// Prefetches the slots where the session's weak locks are noted.
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

    /// Locks all partitions, in a fixed order.
    pub(super) fn all_partitions(&self) -> AllPartitions<'_> {
        AllPartitions(self.partitions.iter().map(|p| p.lock()).collect())
    }

    /// The counts of slow events since the start.
    pub fn stats(&self) -> LockStats {
        self.counters.stats()
    }

    /// Whether the session holds exactly this mode on the object.
    pub fn holds(&self, proc: &ProcHandle, tag: LockTag, mode: LockMode) -> bool {
        proc.local_locks().borrow().held.contains_key(&(tag, mode))
    }

    /// All locks, held and wanted, for pg_locks. Each partition's part is exact, but the parts are
    /// taken one after the other.
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

/// The relation whose slots must be collected before a request of this mode can be decided.
pub(super) fn strong_relation(tag: &LockTag, mode: LockMode) -> Option<u32> {
    match *tag {
        LockTag::Relation(relation) if mode.is_strong() => Some(relation),
        _ => None,
    }
}
