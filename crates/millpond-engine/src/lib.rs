//! A synchronous transactional storage engine: log, transactions, locks, heap, B+tree.
#![forbid(unsafe_code)]

pub mod access;
pub mod error;
pub mod lmgr;
pub mod page;
pub mod transam;
pub mod types;
pub mod wal;

pub use error::{EngineError, EngineResult};
