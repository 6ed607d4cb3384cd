//! Transactions: ids, statuses, commit order, snapshots, visibility.

pub mod combo;
pub mod ids;
mod ring;
pub mod snapshot;
pub mod visibility;
mod word;

pub use combo::ComboCids;
pub use ids::{CommandId, Csn, SessionNo, Xid};
pub use snapshot::{Horizon, Isolation, Snapshot, XidStatus};
