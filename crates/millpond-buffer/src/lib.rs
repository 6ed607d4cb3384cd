#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod ahead;
mod arena;
mod behind;
mod buffers;
mod claims;
mod config;
mod contained;
mod error;
mod evict;
mod frame;
mod freelist;
mod guard;
mod ids;
mod inspect;
mod latched;
mod load;
mod log;
mod overdue;
mod page;
mod page_read;
mod pins;
pub mod policy;
mod pool;
mod processors;
mod reclaim;
mod relation;
mod resize;
mod ring;
mod scratch;
mod session;
mod stats;
pub mod store;
mod stream;
pub mod trace;
mod translation;
mod turns;
mod words;
mod write;

pub use ahead::MAX_COMBINE;
pub use arena::{PAGE_WORDS, PageWords};
pub use config::{PoolConfig, Wait};
pub use error::BufferError;
pub use guard::{ExclusivePage, PageChange, PinnedPage, SharedPage};
pub use ids::{BlockNumber, Fork, Lsn, PageId, RelFork, RelationId};
pub use inspect::FrameInfo;
pub use log::{LogFlush, LogFlushError, NoLog};
pub use page::{PageBytes, compute_checksum, is_new, page_lsn, set_checksum, verify_checksum};
pub use page_read::PageRead;
pub use pool::BufferPool;
pub use reclaim::Reclaimer;
pub use relation::RelHandle;
pub use ring::{AccessStrategy, Ring, RingSizes};
pub use session::BufferSession;
pub use stats::{BackendKind, IoByContext, IoContext, IoCounts, PoolStats};
#[cfg(feature = "file-store")]
pub use store::{FileStore, FileStoreOptions, IoMethod};
pub use store::{MemoryStore, PageBuffer, PageStore, PendingRead, PendingWrite, StoreError};
pub use stream::{ReadStream, StreamOptions};
pub use words::PageView;
pub use write::WriteProgress;

/// The size of a page in bytes. (A small one under Miri, which takes microseconds for each byte.)
pub const PAGE_SIZE: usize = if cfg!(miri) { 512 } else { 8192 };

/// The largest number of frames a pool can have.
pub const MAX_FRAMES: usize = 1 << 31;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, shuttle))]
mod shuttle_tests;
