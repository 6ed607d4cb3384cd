//! Tables on top of the access methods: rows with their indexes, constraints and conflicts.

pub(crate) mod build;
pub(crate) mod index_key;
mod range;
mod row;

pub use crate::access::btree::Direction;
pub use crate::error::TableError;
pub use crate::transam::LockStrength;
pub use range::KeyRange;
pub use row::{RowBatch, RowBuf, RowOutcome, RowTransactions};
