//! Waiting for a lock in its queue, and serving those who wait.
//!
//! Every session parks on a word of its own (`ProcArray::lock_wait`), which is [`IDLE`], [`WAITING`] or
//! [`GRANTED`]. It becomes WAITING by its session and GRANTED by whoever serves the queue, both under the
//! partition's mutex; and `validate` of the park reads it under the parking queue's lock, so no wake-up is
//! lost (lmgr rule 5).
//!
//! Failure: a wait that ends by timeout, cancel or deadlock leaves the queue as if it had never been there,
//! and serves those it was ahead of.

use std::time::Duration;

use millpond_sync::atomic::Ordering;
use millpond_sync::{clock, mutant, parking};
use smallvec::SmallVec;

use super::deadlock::Search;
use super::long_wait::{Told, Wait};
use super::manager::LockManager;
use super::mode::LockMode;
use super::table::Partition;
use super::tag::LockTag;
use super::{LockError, LockWait};
use crate::proc::{ProcHandle, WaitEvent};
use crate::transam::SessionNo;

/// The session does not wait for a lock.
pub(super) const IDLE: u32 = 0;
/// It is in a queue.
pub(super) const WAITING: u32 = 1;
/// It was in a queue and has been served.
pub(super) const GRANTED: u32 = 2;

impl LockManager {
    /// Parks until served, or until it is time to give up.
    pub(super) fn wait(
        &self,
        proc: &ProcHandle,
        tag: LockTag,
        mode: LockMode,
        how: LockWait,
    ) -> Result<(), LockError> {
        let _shown = proc.waiting(wait_event(&tag));
        let word = self.procs.lock_wait(proc.no());
        let key = std::ptr::from_ref(word).addr();
        let until = if let LockWait::Until(until) = how { Some(until) } else { None };
        let begun = clock::now();
        let timeout = self.deadlock_timeout(proc);
        let is_logged = proc.local_locks().borrow().logs_waits;
        let wait = Wait { session: proc.no(), tag, mode, begun, timeout, is_logged };
        let mut check_at = begun.checked_add(timeout);
        loop {
            let deadline = match (until, check_at) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let must_wait = || {
                let is_waiting = word.load(Ordering::Acquire) == WAITING;
                (is_waiting && !proc.is_interrupted()) || mutant!("lock-parks-without-look")
            };
            parking::park(key, must_wait, deadline);
            if word.load(Ordering::Acquire) == GRANTED {
                word.store(IDLE, Ordering::Relaxed);
                let waited = clock::since(begun);
                if waited >= timeout || mutant!("lock-counts-short-waits") {
                    self.counters.waited(proc.no(), &tag, waited);
                    self.tell(&wait, Told::Acquired);
                }
                return Ok(());
            }
            let now = clock::now();
            if proc.is_interrupted() {
                return self.give_up(proc, tag, LockError::Cancelled);
            }
            if until.is_some_and(|until| now >= until) {
                return self.give_up(proc, tag, LockError::Timeout);
            }
            if check_at.is_some_and(|at| now >= at) {
                check_at = self.has_waited_long(&wait)?.and_then(|more| now.checked_add(more));
            }
        }
    }

    /// After `deadlock_timeout`: looks for a deadlock and for a vacuum in the background. Returns after how long to do so
    /// again, if at all.
    #[cold]
    fn has_waited_long(&self, wait: &Wait) -> Result<Option<Duration>, LockError> {
        let again = match self.find_deadlock(wait.session) {
            Search::Wait => None,
            Search::Reordered => {
                self.tell(wait, Told::Reordered);
                None
            }
            Search::Again => Some(wait.timeout),
            Search::Victim(detail) => {
                self.tell(wait, Told::Deadlock);
                return Err(LockError::Deadlock { detail });
            }
        };
        if self.procs.lock_wait(wait.session).load(Ordering::Acquire) == WAITING {
            self.stop_autovacuum(wait);
            self.tell(wait, Told::Still);
        }
        Ok(again)
    }

    /// Leaves the queue, unless the lock has been granted in the last moment.
    pub(super) fn give_up(
        &self,
        proc: &ProcHandle,
        tag: LockTag,
        why: LockError,
    ) -> Result<(), LockError> {
        let mut partition = self.partition(&tag);
        let word = self.procs.lock_wait(proc.no());
        if word.load(Ordering::Relaxed) == GRANTED && !mutant!("lock-grant-lost-at-timeout") {
            word.store(IDLE, Ordering::Relaxed);
            return Ok(());
        }
        let served = self.leave_queue(&mut partition, proc.no(), &tag);
        drop(partition);
        self.wake(&served);
        Err(why)
    }

    /// Takes a waiter out of its queue, as if it had never been there.
    pub(super) fn leave_queue(
        &self,
        partition: &mut Partition,
        session: SessionNo,
        tag: &LockTag,
    ) -> SmallVec<[SessionNo; 4]> {
        self.procs.lock_wait(session).store(IDLE, Ordering::Relaxed);
        *self.waits[session.index()].lock() = None;
        if let Some(entry) = partition.get_mut(tag) {
            entry.dequeue(session);
        }
        if mutant!("lock-leaver-serves-nobody") {
            return SmallVec::new();
        }
        self.serve(partition, tag)
    }

    /// Grants what can be granted now; those served are to be [woken](Self::wake) without the mutex.
    pub(super) fn serve(
        &self,
        partition: &mut Partition,
        tag: &LockTag,
    ) -> SmallVec<[SessionNo; 4]> {
        let mut served: SmallVec<[SessionNo; 4]> = SmallVec::new();
        if let Some(entry) = partition.get_mut(tag) {
            entry.serve(|session| served.push(session));
        }
        for session in &served {
            *self.waits[session.index()].lock() = None;
            self.procs.lock_wait(*session).store(GRANTED, Ordering::Release);
        }
        partition.tidy(tag);
        served
    }

    pub(super) fn wake(&self, served: &[SessionNo]) {
        for session in served {
            let word = self.procs.lock_wait(*session);
            parking::unpark_all(std::ptr::from_ref(word).addr());
        }
    }
}

fn wait_event(tag: &LockTag) -> WaitEvent {
    match tag {
        LockTag::Relation(_) => WaitEvent::Relation,
        LockTag::Transaction(_) => WaitEvent::Transaction,
        LockTag::VirtualTransaction(..) => WaitEvent::VirtualTransaction,
        LockTag::Tuple { .. } => WaitEvent::Tuple,
        LockTag::Advisory { .. } => WaitEvent::Advisory,
        LockTag::Object { .. } => WaitEvent::Lock,
    }
}
