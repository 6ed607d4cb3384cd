//! Waiting for the end of a transaction: a lock on its id that exists only while someone waits (lmgr rule 6).

use millpond_sync::mutant;

use super::local::LockOwner;
use super::manager::LockManager;
use super::mode::LockMode;
use super::tag::LockTag;
use super::{LockError, LockWait};
use crate::proc::ProcHandle;
use crate::transam::{SessionNo, Xid};

impl LockManager {
    /// Waits for the end of a transaction.
    ///
    /// `is_running` tells, whenever it is asked, whether the transaction is still to end. The lock on
    /// its id comes into being here, on behalf of the session that runs it, and only here (lmgr rule 6).
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

    /// Ends the life of a transaction in the table, for those who wait for it. Its status is set.
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
