//! What can go wrong with the log.

use std::sync::Arc;

use millpond_buffer::Lsn;

use super::record::EncodeError;

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
    /// Somebody wants to log while the log is being redone.
    #[error("the log takes no records while it is being redone")]
    Recovering,
    /// Insertion would have to wait, and the caller said that it must not.
    #[error("log insertion would have to wait for space")]
    WouldBlock,
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] EncodeError),
    /// Somebody asked for more to be flushed than exists: a page has an LSN from the future.
    #[error("flush up to {wanted} was asked for, but the log ends at {end}")]
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
    /// The data directory is another version's, or its sizes are others than this program's.
    #[error("{what}")]
    Incompatible {
        /// What does not fit.
        what: String,
    },
    /// The log is damaged where it had been durable.
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
