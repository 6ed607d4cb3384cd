//! Waits for a transaction's end by a lock on its id, which exists only meanwhile (lmgr rule 6).

use millpond_sync::mutant;

use super::manager::LockManager;
use crate::ids::{SessionNo, Xid};
use crate::lock::LockMode;
use crate::lock::LockOwner;
use crate::lock::LockTag;
use crate::lock::{LockError, LockWait};
use crate::proc::ProcHandle;

impl LockManager {
    /// Waits for the end of a transaction.
    ///
    /// At any time, `is_running` says whether the transaction has still to end. Only this function
    /// enters the lock on its id, on behalf of the session that runs it (lmgr rule 6).
    pub fn wait_for_transaction(
        &self,
        proc: &ProcHandle,
        xid: Xid,
        how: LockWait,
        is_running: impl Fn() -> bool,
    ) -> Result<(), LockError> {
        let tag = LockTag::Transaction(xid);
        let mut partition = self.partition(&tag);
        if !is_running() {
            return Ok(());
        }
        if how == LockWait::Never {
            return Err(LockError::WouldBlock { tag });
        }
        let Some(runner) = self.procs.session_of(xid) else { return Ok(()) };
        let entry = partition.entry(tag);
        if entry.held_by(runner).is_empty() {
            entry.grant(runner, LockMode::Exclusive);
            self.procs.set_xid_awaited(runner);
            if !is_running() && !mutant!("lock-xid-without-second-look") {
                // The runner may have looked at its mark before it was set.
                entry.ungrant(runner, LockMode::Exclusive);
                let served = self.serve(&mut partition, &tag);
                drop(partition);
                self.wake(&served);
                return Ok(());
            }
        }
        drop(partition);
        self.acquire_for(proc, LockOwner::Transaction, tag, LockMode::Share, how)?;
        self.release(proc, LockOwner::Transaction, tag, LockMode::Share);
        Ok(())
    }

    /// Releases the lock on the id of a transaction that has ended, and wakes its waiters. The
    /// transaction's status is already set.
    pub(crate) fn transaction_ended(&self, runner: SessionNo, xid: Xid) {
        let tag = LockTag::Transaction(xid);
        let mut partition = self.partition(&tag);
        if let Some(entry) = partition.get_mut(&tag) {
            entry.ungrant(runner, LockMode::Exclusive);
        }
        let served = self.serve(&mut partition, &tag);
        drop(partition);
        self.wake(&served);
    }
}
