//! What a session itself knows of the locks it holds, so that only the first request for a mode and its last release reach
//! shared memory (lmgr rule 2). Session memory, seen by nobody else.

use std::collections::HashMap;
use std::time::Duration;

use super::mode::LockMode;
use super::table::TagHash;
use super::tag::LockTag;

/// Who gives a lock back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockOwner {
    /// The end of the transaction, at the latest.
    Transaction,
    /// The end of the session, or an explicit release (session advisory locks).
    Session,
}

/// Where a held lock is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In a slot of the session's own, unless a strong locker has transferred it.
    Slot(u8),
    /// In the shared table.
    Table,
}

/// A lock that the session holds, and how often it has asked for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) place: Place,
    pub(crate) by_transaction: u32,
    pub(crate) by_session: u32,
}

impl Held {
    pub(crate) fn count(&mut self, owner: LockOwner) -> &mut u32 {
        match owner {
            LockOwner::Transaction => &mut self.by_transaction,
            LockOwner::Session => &mut self.by_session,
        }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.by_transaction == 0 && self.by_session == 0
    }
}

/// The locks of one session.
#[derive(Default, Debug)]
pub(crate) struct LocalLocks {
    pub(crate) held: HashMap<(LockTag, LockMode), Held, TagHash>,
    /// Bits of the fast-path slots that the session has filled and not left since.
    pub(crate) slots_used: u16,
    /// The session's own `deadlock_timeout`.
    pub(crate) deadlock_timeout: Option<Duration>,
    /// The session's `log_lock_waits`.
    pub(crate) logs_waits: bool,
}
