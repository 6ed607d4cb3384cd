//! Giving ids to transactions, and making room for their statuses.

use std::time::Duration;

use super::backend::Backend;
use super::transactions::Transactions;
use crate::error::{EngineError, EngineResult};
use crate::ids::Xid;

impl Transactions {
    /// Gives the session's transaction an id, unless it has one.
    pub fn assign(&self, backend: &Backend) -> EngineResult<Xid> {
        let proc = backend.proc();
        if let Some(xid) = proc.xid() {
            return Ok(xid);
        }
        if self.ring.room() <= self.ring.size() / 4 {
            self.make_room(backend)?;
        }
        if self.ring.next() >= Xid::LIMIT {
            return Err(EngineError::LimitExceeded { what: "transaction ids are used up" });
        }
        proc.announce_xid(self.ring.next());
        let xid = self.ring.draw();
        proc.publish_xid(Some(xid));
        Ok(xid)
    }

    /// Retires statuses until there is room for an id of every session.
    fn make_room(&self, backend: &Backend) -> EngineResult<()> {
        let enough = self.procs.capacity() as u64;
        if backend.may_wait()
            && let Some(mut upkeep) = self.upkeep.try_lock()
        {
            self.retire(backend, &mut upkeep)?;
        }
        while self.ring.room() <= enough {
            if !backend.may_wait() {
                return Err(EngineError::WouldBlock);
            }
            backend.check_interrupts()?;
            self.maintain(backend)?;
            if self.ring.room() <= enough {
                // Some session was descheduled between drawing its id and publishing it.
                millpond_sync::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
}
