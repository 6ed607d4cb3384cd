//! Waiting for a lock in its queue.
//!
//! A session parks on its own word, whose values are in [`super::queue`]. `validate` of the park
//! reads the word under the parking queue's lock, so no wake-up is lost (lmgr rule 5).
//!
//! Failure: a wait that ends by timeout, cancel or deadlock leaves the queue as if it had never
//! been there. The session then serves the waiters behind it.

use std::time::Duration;

use millpond_sync::atomic::Ordering;
use millpond_sync::{clock, mutant, parking};

use super::deadlock::Search;
use super::long_wait::{Told, Wait};
use super::manager::LockManager;
use super::queue::{GRANTED, IDLE, WAITING};
use crate::lock::LockMode;
use crate::lock::LockTag;
use crate::lock::{LockError, LockWait};
use crate::proc::{ProcHandle, WaitEvent};

impl LockManager {
    /// Parks until the session is served, or has to give up.
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

    /// After `deadlock_timeout`: searches for a deadlock and for a background vacuum. Returns the
    /// time after which to do so again, or `None`.
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

    /// Leaves the queue, unless the lock has been granted at the last moment.
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
