//! Releasing locks (lmgr rule 9), and serving their waiters.

use millpond_sync::mutant;
use smallvec::SmallVec;

use super::manager::{LockManager, strong_relation};
use crate::ids::SessionNo;
use crate::lock::LockMode;
use crate::lock::LockTag;
use crate::lock::{Held, LocalLocks, LockOwner, Place};
use crate::proc::ProcHandle;

impl LockManager {
    /// Releases one request. Returns `false` if the owner has not made it.
    pub fn release(
        &self,
        proc: &ProcHandle,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
    ) -> bool {
        let mut local = proc.local_locks().borrow_mut();
        let Some(held) = local.held.get_mut(&(tag, mode)) else { return false };
        let count = held.count(owner);
        if *count == 0 {
            return false;
        }
        *count -= 1;
        if held.is_free() {
            let place = held.place;
            local.held.remove(&(tag, mode));
            self.give_back(proc, &mut local, tag, mode, place);
        }
        true
    }

    /// Releases what the transaction holds.
    pub fn release_transaction(&self, proc: &ProcHandle) {
        if mutant!("lock-of-session-ends-with-transaction") {
            return self.release_all(proc);
        }
        self.release_where(proc, |held| held.by_transaction = 0);
    }

    /// Releases the session's advisory locks (`pg_advisory_unlock_all`), except the transaction's.
    pub fn release_session_locks(&self, proc: &ProcHandle) {
        self.release_where(proc, |held| held.by_session = 0);
    }

    /// Releases everything, at the end of the session.
    pub fn release_all(&self, proc: &ProcHandle) {
        self.release_where(proc, |held| (held.by_transaction, held.by_session) = (0, 0));
    }

    fn release_where(&self, proc: &ProcHandle, change: impl Fn(&mut Held)) {
        let mut local = proc.local_locks().borrow_mut();
        if local.held.is_empty() {
            return;
        }
        let mut freed: SmallVec<[(LockTag, LockMode, Place); 8]> = SmallVec::new();
        local.held.retain(|(tag, mode), held| {
            change(held);
            if held.is_free() {
                freed.push((*tag, *mode, held.place));
            }
            !held.is_free()
        });
        for (tag, mode, place) in freed {
            self.give_back(proc, &mut local, tag, mode, place);
        }
    }

    fn give_back(
        &self,
        proc: &ProcHandle,
        local: &mut LocalLocks,
        tag: LockTag,
        mode: LockMode,
        place: Place,
    ) {
        if let (Place::Slot(slot), LockTag::Relation(relation)) = (place, tag) {
            local.slots_used &= !(1 << slot);
            if self.fast.leave(proc.no(), slot, relation, mode) {
                return;
            }
        }
        self.ungrant(proc.no(), tag, mode);
        if let Some(relation) = strong_relation(&tag, mode) {
            self.fast.lower(relation);
        }
    }

    fn ungrant(&self, session: SessionNo, tag: LockTag, mode: LockMode) {
        let mut partition = self.partition(&tag);
        let held = partition.get_mut(&tag).is_some_and(|entry| entry.ungrant(session, mode));
        debug_assert!(held, "{session} releases {mode} on {tag}, which it does not hold");
        let served = self.serve(&mut partition, &tag);
        drop(partition);
        self.wake(&served);
    }
}
