#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod access;
pub mod bulk;
pub mod catalog;
pub mod check;
pub mod control;
pub mod ctx;
pub mod engine;
pub mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod lmgr;
pub mod maintenance;
pub mod page;
pub mod proc;
pub mod recovery;
pub mod session;
mod sort;
pub mod table;
#[cfg(test)]
pub(crate) mod testing;
pub mod transam;
pub mod types;
pub mod wal;

pub use bulk::BulkAccess;
pub use ctx::{Ctx, Shared};
pub use engine::{Engine, EngineConfig};
pub use error::{EngineError, EngineResult, relation_file};
pub use millpond_vfs::is_out_of_descriptors;
pub use session::Session;
pub use sort::temp::{TempFile, TempFiles, TempSpace, TempSpaceExceeded};
