//! Tables: rows with their indexes, constraints and conflicts, on top of the access methods.

pub(crate) mod build;
mod error;
mod row;
mod scan;

pub use error::TableError;
pub use row::{LockStrength, RowBatch, RowBuf, RowOutcome};
pub use scan::{Direction, HeapScan, IndexScan, KeyRange, ParallelScan, ScanWorker};
