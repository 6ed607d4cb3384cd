#![doc = include_str!("../README.md")]
//!
//! ## Where to start among the items
//!
//! | to | begin with |
//! |---|---|
//! | make a pool | [`PoolConfig`], [`BufferPool::new`] |
//! | choose where pages live | [`FileStore`], [`MemoryStore`], or [`PageStore`] for your own |
//! | connect a log | [`LogFlush`], or [`NoLog`] |
//! | name things | [`RelationId`], [`Fork`], [`BlockNumber`], [`PageId`], [`Lsn`] |
//! | reach pages | [`BufferPool::session`], [`BufferPool::relation`], [`BufferSession`] |
//! | read | [`BufferSession::read`], [`PinnedPage`], [`SharedPage`], [`PageRead`] |
//! | change | [`ExclusivePage`], [`PageChange`] |
//! | scan, load, vacuum | [`ReadStream`], [`Ring`] |
//! | write back | [`BufferPool::write_dirty`], [`Reclaimer`] |
//! | recover | [`BufferSession::pin_or_zero`] |
//! | change the size | [`BufferPool::resize`] |
//! | watch | [`BufferPool::stats`], [`BufferPool::frame_infos`], [`trace`] |
//! | simulate replacement | [`policy`] |
#![deny(unsafe_code)]

mod arena;
mod config;
mod core;
mod error;
mod guard;
mod ids;
mod log;
mod page;
pub mod policy;
mod pool;
mod read;
mod read_stream;
mod reclaimer;
mod replacement;
mod session;
mod stats;
pub mod store;
mod threads;
pub mod trace;
mod write_back;

pub use self::core::relation::RelHandle;
pub use config::{AccessStrategy, PoolConfig, RingSizes, Wait};
pub use error::BufferError;
pub use guard::{ExclusivePage, PageChange, PinnedPage, SharedPage};
pub use ids::{BlockNumber, Fork, Lsn, PageId, RelFork, RelationId};
pub use log::{LogFlush, LogFlushError, NoLog};
pub use page::PageRead;
pub use page::words::{PAGE_WORDS, PageView, PageWords};
pub use page::{
    ChecksumMismatch, PageBytes, compute_checksum, is_new, page_lsn, set_checksum, verify_checksum,
};
pub use pool::{BufferPool, FrameInfo};
pub use read_stream::{ReadStream, StreamOptions};
pub use reclaimer::Reclaimer;
pub use replacement::ring::Ring;
pub use session::BufferSession;
pub use stats::{BackendKind, IoByContext, IoContext, IoCounts, PoolStats};
#[cfg(feature = "file-store")]
pub use store::{FileStore, FileStoreOptions, IoMethod};
pub use store::{MemoryStore, PageBuffer, PageStore, PendingRead, PendingWrite, StoreError};
pub use write_back::async_write::WriteProgress;

/// The size of a page in bytes: 8192, unless the crate was built with another one.
///
/// The environment variable `MILLPOND_PAGE_SIZE` sets it at build time, to a power of two from 4096
/// to 65536. A program sets it for all its builds in `.cargo/config.toml`:
///
/// ```toml
/// [env]
/// MILLPOND_PAGE_SIZE = "16384"
/// ```
///
/// A program whose format needs a certain size says so, and then fails to compile with another:
///
/// ```
/// const _: () = assert!(millpond_buffer::PAGE_SIZE.is_multiple_of(4096));
/// ```
///
/// A store keeps no note of the size. Files of pages of another size fail their checksums.
// (It is small under Miri, which takes microseconds for each byte.)
pub const PAGE_SIZE: usize = match option_env!("MILLPOND_PAGE_SIZE") {
    _ if cfg!(miri) => 512,
    Some(text) => page_size_of(text),
    None => 8192,
};

/// The page size that a text gives; a build fails with any other text.
const fn page_size_of(text: &str) -> usize {
    match usize::from_str_radix(text, 10) {
        Ok(size) if size.is_power_of_two() && size >= 4096 && size <= 65_536 => size,
        _ => panic!("MILLPOND_PAGE_SIZE must be 4096, 8192, 16384, 32768 or 65536"),
    }
}

/// The most pages that one read joins: 256 kB.
pub const MAX_COMBINE: u32 = 32;

/// The largest number of frames a pool can have.
pub const MAX_FRAMES: usize = 1 << 31;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, shuttle))]
mod shuttle_tests;
