//! Tables: rows with their indexes, constraints and conflicts, on top of the access methods.

pub(crate) mod build;
mod error;
mod index_run;
mod row;
mod scan;

pub use crate::transam::LockStrength;
pub use error::TableError;
pub use row::{RowBatch, RowBuf, RowOutcome};
pub use scan::{Direction, HeapScan, IndexScan, KeyRange, ParallelScan, ScanWorker};
