//! A synchronous transactional storage engine: log, transactions, locks, heap, B+tree.
#![forbid(unsafe_code)]

pub mod access;
pub mod error;
pub mod lmgr;
pub mod transam;
pub mod wal;
pub mod types;

pub use error::{EngineError, EngineResult};
