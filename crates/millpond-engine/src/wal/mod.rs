//! The log: what is changed is first written here (see README.md in this directory for the rules).

pub mod apply;
mod config;
mod error;
mod files;
mod flush;
mod flusher;
pub mod forks;
mod group;
mod insertion;
mod log;
pub mod reader;
pub mod record;
pub mod rmgr;
mod segments;
mod stats;
pub mod storage;
mod store;

pub use apply::{Logging, PageBytes, PageEdit, RedoError, RmgrRedo, log_and_apply};
pub use config::{LogConfig, LogStart};
pub use error::WalError;
pub use files::FileLogStore;
pub use log::{Inserted, Log};
pub use record::{BlockRef, Decoded, ImageMode, Record, RmgrId};
pub use stats::{LogStats, LogWrites};
pub use store::{CONTROL_COPY_BYTES, LogStore};

/// Kinds of records of the log itself ([`RmgrId::Log`]).
pub mod info {
    /// Fills a reservation whose images had been decided before a checkpoint began.
    pub const NOOP: u8 = 0;
    /// A checkpoint begins here; its position is the redo point.
    pub const CHECKPOINT_START: u8 = 1;
    /// The checkpoint is complete.
    pub const CHECKPOINT_END: u8 = 2;
    /// Says only how far the log is durable, after the last record of a burst.
    pub const DURABLE: u8 = 3;
    /// Overwrites bytes of its pages: each block's data is any number of (offset: 2 bytes, length: 2
    /// bytes, that many bytes).
    pub const WRITE: u8 = 4;
    /// A part of what a checkpoint knows of forks ([`forks`](super::forks)).
    pub const FORKS: u8 = 5;
}

#[cfg(all(test, any(loom, shuttle)))]
mod models;
#[cfg(test)]
mod tests;
