//! Transactions: ids, statuses, commit order, snapshots, visibility.

pub mod ids;
pub mod snapshot;

pub use ids::{CommandId, Csn, SessionNo, Xid};
pub use snapshot::{Horizon, Isolation, Snapshot, XidStatus};
