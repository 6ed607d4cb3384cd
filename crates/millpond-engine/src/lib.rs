//! A synchronous transactional storage engine: log, transactions, locks, heap, B+tree.
#![forbid(unsafe_code)]

pub mod access;
pub mod catalog;
pub mod control;
pub mod engine;
pub mod error;
pub mod lmgr;
pub mod page;
pub mod proc;
pub mod session;
pub mod table;
pub mod transam;
pub mod types;
pub mod wal;

pub use engine::{Engine, EngineConfig};
pub use error::{EngineError, EngineResult};
pub use session::Session;
