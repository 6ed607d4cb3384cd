//! Requests for locks: the fast path, the shared table, and the wait if neither grants the lock.

use millpond_sync::atomic::Ordering;
use millpond_sync::{clock, mutant};

use super::deadlock::tell_deadlock;
use super::fast::Noted;
use super::manager::{LockManager, strong_relation};
use super::queue::WAITING;
use super::table::{Request, Waiter};
use crate::lock::{Acquired, LockError, LockMode, LockTag, LockWait};
use crate::lock::{Held, LocalLocks, LockOwner, Place};
use crate::proc::ProcHandle;

/// How far a request got without waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    AlreadyHeld,
    Granted(Place),
    Queued,
}

impl LockManager {
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

    /// Takes back the announcement of a request that was not granted.
    pub(super) fn abandon(&self, tag: &LockTag, mode: LockMode) {
        if let Some(relation) = strong_relation(tag, mode) {
            self.fast.lower(relation);
        }
    }

    /// The fast path: weak modes on relations, in the session's own slots.
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
}
