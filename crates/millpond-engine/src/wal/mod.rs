//! The write-ahead log. A page changes only by a log record ([`record`]), which [`Log`] makes
//! durable before the page may reach its file. The README.md of this folder has the rules.

pub mod apply;
mod companions;
mod config;
pub mod end_record;
mod files;
mod flush;
mod flusher;
mod flushing;
pub mod forks;
mod group;
mod insert;
mod insertion;
mod log;
mod own_redo;
mod page_edit;
pub mod reader;
pub mod record;
mod segments;
mod stats;
pub mod storage;
pub mod storage_record;
mod store;

pub use crate::error::{RedoError, WalError};
pub use apply::{Logging, log_and_apply};
pub use config::{LogConfig, LogStart};
pub use files::FileLogStore;
pub use insert::Inserted;
pub use log::Log;
pub use own_redo::own_redo_of;
pub use page_edit::{PageEdit, PageTarget, RedoOf, RmgrRedo};
pub use record::{BlockRef, Decoded, ImageMode, Record, RmgrId};
pub use stats::{LogStats, LogWrites};
pub use store::{CONTROL_COPY_BYTES, LogStore};

/// Kinds of records of the log itself ([`RmgrId::Log`]).
pub mod info {
    /// Fills a reservation whose images were decided before a checkpoint began.
    pub const NOOP: u8 = 0;
    /// A checkpoint begins here. Its position is the redo point.
    pub const CHECKPOINT_START: u8 = 1;
    /// The checkpoint is complete.
    pub const CHECKPOINT_END: u8 = 2;
    /// Says only up to where the log is durable, after the last record of a burst.
    pub const DURABLE: u8 = 3;
    /// Overwrites bytes of its pages. Each block's data: any number of (offset: 2 bytes, length: 2
    /// bytes, that many bytes).
    pub const WRITE: u8 = 4;
    /// A part of a checkpoint's table of forks ([`forks`](super::forks)).
    pub const FORKS: u8 = 5;
}

#[cfg(all(test, any(loom, shuttle)))]
mod models;
#[cfg(test)]
mod tests;
