//! Snapshots, horizons and transaction statuses.

use crate::ids::{CommandId, Csn, Xid};

/// A view of the database: every commit numbered [`csn`](Self::csn) or less, and the changes of the
/// transaction's own earlier commands.
///
/// It is valid only while its session publishes a number not above [`csn`](Self::csn) (from
/// `Transactions::snapshot` to `Transactions::release_snapshot`). So vacuum keeps the rows it
/// needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The last commit that it sees.
    pub csn: Csn,
    /// The session's own transaction, if it has drawn an id.
    pub own: Option<Xid>,
    /// Own changes with a command id below this one are visible.
    pub command: CommandId,
}

impl Snapshot {
    /// Whether `xid` is the snapshot's own transaction.
    #[inline]
    pub fn is_own(&self, xid: Xid) -> bool {
        self.own == Some(xid)
    }

    /// Whether a commit numbered `csn` is part of this snapshot.
    #[inline]
    pub fn sees(&self, csn: Csn) -> bool {
        csn <= self.csn
    }
}

/// The status of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XidStatus {
    /// Running, or its outcome will be known only after a restart.
    InProgress,
    /// Committed under this number; [`Csn::FROZEN`] when it is older than every snapshot.
    Committed(Csn),
    /// Rolled back, or running when the server went down.
    Aborted,
}

impl XidStatus {
    /// Whether the transaction has committed, whatever its number.
    #[inline]
    pub fn is_committed(self) -> bool {
        matches!(self, XidStatus::Committed(_))
    }
}

/// A bound below which all snapshots agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Horizon {
    /// Every snapshot, held or yet to be taken, sees all commits numbered this or less. So a row
    /// version whose deleter committed at or below it is dead to all.
    pub csn: Csn,
    /// No transaction below this id is running.
    pub oldest_running_xid: Xid,
}

/// Transaction isolation levels. READ UNCOMMITTED behaves as READ COMMITTED, as in PostgreSQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// A new snapshot per statement. A row that changed meanwhile is checked again.
    #[default]
    ReadCommitted,
    /// One snapshot for the transaction. A row that changed meanwhile is SQLSTATE 40001.
    RepeatableRead,
}
