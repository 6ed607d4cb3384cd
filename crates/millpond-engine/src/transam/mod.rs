//! Transactions: ids, statuses, commit order, snapshots, visibility.

pub mod combo;
pub mod ids;
pub mod snapshot;
pub mod visibility;

pub use combo::ComboCids;
pub use ids::{CommandId, Csn, SessionNo, Xid};
pub use snapshot::{Horizon, Isolation, Snapshot, XidStatus};
