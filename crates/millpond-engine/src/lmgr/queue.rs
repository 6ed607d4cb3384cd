//! Serving the queue of a lock, and leaving it.
//!
//! Every session parks on its own word (`ProcArray::lock_wait`), which is [`IDLE`], [`WAITING`] or
//! [`GRANTED`]. The session itself sets it to WAITING. The thread that serves the queue sets it to
//! GRANTED. Both hold the partition's mutex (lmgr rule 5).

use millpond_sync::atomic::Ordering;
use millpond_sync::{mutant, parking};
use smallvec::SmallVec;

use super::manager::LockManager;
use super::table::Partition;
use crate::ids::SessionNo;
use crate::lock::LockTag;

/// The session does not wait for a lock.
pub(super) const IDLE: u32 = 0;
/// The session is in a queue.
pub(super) const WAITING: u32 = 1;
/// The session was in a queue and has been served.
pub(super) const GRANTED: u32 = 2;

impl LockManager {
    /// Removes a waiter from its queue, as if it had never been there. Returns the served sessions.
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

    /// Grants what can be granted now. The caller [wakes](Self::wake) these, without the mutex.
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
