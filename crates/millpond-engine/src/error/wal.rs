//! Errors of the log.

use std::sync::Arc;

use millpond_buffer::Lsn;

/// An error of the log.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WalError {
    /// The log stopped for good after a failed write or sync; nothing is retried (wal rule 7).
    #[error("the log has stopped: {why}; restart to recover")]
    Stopped {
        /// What failed.
        why: Arc<str>,
    },
    /// No room for another segment. Nothing was written; the transaction can be rolled back.
    #[error("no space left for the log: {0}")]
    DiskFull(#[source] Arc<std::io::Error>),
    /// A record was to be inserted while the log is being redone.
    #[error("cannot insert into the log during recovery")]
    Recovering,
    /// Insertion would have to wait, and the caller must not wait.
    #[error("log insertion would have to wait for space")]
    WouldBlock,
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] EncodeError),
    /// A flush beyond the end of the log was requested: a page has an LSN from the future.
    #[error("cannot flush the log up to {wanted}: it ends at {end}")]
    BeyondEnd {
        /// What was asked for.
        wanted: Lsn,
        /// Where the log ends.
        end: Lsn,
    },
    /// A file of the log could not be read, created or removed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The control file is damaged.
    #[error("{what}")]
    Control {
        /// What is wrong with it.
        what: String,
    },
    /// The data directory belongs to another version, or its sizes differ from this program's.
    #[error("{what}")]
    Incompatible {
        /// What does not fit.
        what: String,
    },
    /// The log is damaged at a place that had been durable.
    #[error("the log is corrupt at {at}: {what}")]
    Corrupt {
        /// Where.
        at: Lsn,
        /// What was found.
        what: String,
    },
}

impl WalError {
    /// Wraps an I/O error.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { what: what.into(), source: Arc::new(source) }
    }
}

/// Why a record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The record is longer than the log accepts.
    #[error("log record of {bytes} bytes is longer than the limit of {limit} bytes")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many blocks.
    #[error("log record refers to {0} blocks, at most 255 are possible")]
    TooManyBlocks(usize),
    /// The data of one block is too long.
    #[error("log record has {0} bytes of data for one block, at most 65535 are possible")]
    BlockDataTooLong(usize),
}

/// A record cannot be applied to a page: one of the two is not as expected.
#[derive(Clone, Debug, thiserror::Error)]
#[error("redo failed: {what}")]
pub struct RedoError {
    /// What does not fit.
    pub what: String,
}

impl RedoError {
    /// An error with this explanation.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}
