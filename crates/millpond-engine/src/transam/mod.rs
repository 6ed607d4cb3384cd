//! Transactions: ids, statuses, commit order, snapshots. README.md here has the rules.

mod assign;
mod backend;
mod chunk;
mod clock;
pub mod clog;
pub mod combo;
mod commit;
mod csn_pages;
#[cfg(all(test, loom))]
mod models;
mod overflow;
mod retire;
mod ring;
pub mod row_locks;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod transactions;
mod upkeep;
mod word;

pub use crate::ids::{CommandId, Csn, SessionNo, Xid};
pub use backend::{Backend, CommitDelay};
pub use combo::ComboCids;
pub use commit::{Durability, LoggedCommit};
pub use row_locks::{LockStrength, Locker, Lockers, RowVersion};
pub use snapshot::{Horizon, Isolation, Snapshot, XidStatus};
pub use transactions::{DEFAULT_OLD_STATUSES, DEFAULT_RING_SIZE, Transactions};
