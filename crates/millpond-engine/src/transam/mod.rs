//! Transactions: ids, statuses, commit order, snapshots, visibility. README.md in this directory has the rules.

mod clock;
pub mod clog;
pub mod combo;
mod commit;
mod csn_pages;
pub mod ids;
#[cfg(all(test, loom))]
mod models;
mod overflow;
pub mod record;
mod ring;
pub mod row_locks;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod transactions;
mod upkeep;
pub mod visibility;
mod word;

pub use combo::ComboCids;
pub(crate) use commit::PendingCommit;
pub use commit::{CommitDelay, Durability, LoggedCommit};
pub use ids::{CommandId, Csn, SessionNo, Xid};
pub(crate) use record::files_to_drop;
pub use row_locks::{LockStrength, Locker, Lockers, RowVersion};
pub use snapshot::{Horizon, Isolation, Snapshot, XidStatus};
pub use transactions::{DEFAULT_RING_SIZE, Transactions};
