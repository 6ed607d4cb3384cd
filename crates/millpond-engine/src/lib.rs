#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod access;
mod autovacuum;
pub mod bulk;
pub mod catalog;
pub mod check;
pub mod config;
pub mod control;
pub mod ctx;
pub mod engine;
pub mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod ids;
pub mod lmgr;
pub mod lock;
pub mod maintenance;
pub mod page;
pub mod proc;
pub mod recovery;
pub mod rmgr;
pub mod session;
mod sort;
mod startup;
pub mod table;
#[cfg(test)]
pub(crate) mod testing;
pub mod timeout;
pub mod transam;
pub mod wal;

// The formats on disk (docs/file-format.md) are for pages of this size.
const _: () = assert!(
    millpond_buffer::PAGE_SIZE == 8192 || cfg!(miri),
    "millpond-engine needs pages of 8192 bytes: build it without MILLPOND_PAGE_SIZE"
);

pub use bulk::BulkAccess;
pub use config::EngineConfig;
pub use ctx::{Ctx, Shared};
pub use engine::Engine;
pub use error::{EngineError, EngineResult, relation_file};
/// The types of columns, and their values.
pub use millpond_types as types;
pub use millpond_vfs::is_out_of_descriptors;
pub use session::Session;
pub use sort::heap::{MergeHeap, SortedRun};
pub use sort::temp::{TempFile, TempFiles, TempSpace, TempSpaceExceeded};
