//! A shared buffer pool whose hot reads write to no shared memory. See the crate's README.
#![deny(unsafe_code)]

mod config;
mod error;
mod ids;
mod log;
mod page_read;
pub mod store;

pub use config::{PoolConfig, Wait};
pub use error::BufferError;
pub use ids::{BlockNumber, Fork, Lsn, PageId, RelFork, RelationId};
pub use log::{LogFlush, LogFlushError, NoLog};
pub use page_read::PageRead;
pub use store::{FileStore, FileStoreOptions, MemoryStore, PageStore, StoreError};

/// The size of a page in bytes.
pub const PAGE_SIZE: usize = 8192;

/// The largest number of frames a pool can have.
pub const MAX_FRAMES: usize = 1 << 31;
