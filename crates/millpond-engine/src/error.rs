//! The one error of the engine's parts.
//!
//! Every variant says what happened in terms a statement's author can act on; errors of the parts below are
//! kept as sources, never flattened into text. [`EngineError::WouldBlock`] is not a failure: it asks the caller to
//! repeat the operation where it may wait, and is only ever returned before an operation's first change.

use std::io;

use millpond_buffer::{BufferError, Fork, RelFork, RelationId, StoreError};

use crate::lmgr::{LockError, LockTag};
use crate::recovery::DirectoryError;
use crate::transam::Xid;
use crate::wal::{RedoError, WalError};

/// A result of the engine.
pub type EngineResult<T> = Result<T, EngineError>;

/// Why an operation of the engine did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The operation would have to wait, and its session said that it may not. Nothing was changed.
    #[error("the operation would have to wait")]
    WouldBlock,
    /// The session was told to stop (cancel request, statement timeout, shutdown): its session line says which.
    #[error("canceling statement due to user request")]
    Cancelled,
    /// Each of several transactions waited for the next.
    #[error("deadlock detected")]
    Deadlock {
        /// One line per party: who waits for what, blocked by whom.
        detail: String,
    },
    /// `lock_timeout` passed while waiting for a lock.
    #[error("canceling statement due to lock timeout")]
    LockTimeout,
    /// NOWAIT, and somebody is in the way.
    #[error("could not obtain lock on {tag}")]
    LockNotAvailable {
        /// What was to be locked.
        tag: LockTag,
    },
    /// REPEATABLE READ met a row that changed after the transaction's snapshot.
    #[error("could not serialize access due to concurrent {change}")]
    SerializationFailure {
        /// `update` or `delete`.
        change: &'static str,
    },
    /// A key is in a unique index already.
    #[error("duplicate key value violates unique constraint")]
    UniqueViolation {
        /// The file of the index.
        index: RelationId,
    },
    /// A key does not fit into an index page often enough for a tree.
    #[error("index row size {size} exceeds maximum {limit}")]
    IndexRowTooLarge {
        /// Bytes the entry needs.
        size: usize,
        /// Bytes an entry may have.
        limit: usize,
    },
    /// A row does not fit into a page.
    #[error("row is too big: size {size}, maximum size {limit}")]
    RowTooLarge {
        /// Bytes the row needs.
        size: usize,
        /// Bytes a row may have.
        limit: usize,
    },
    /// A limit of the format was reached.
    #[error("{what}")]
    LimitExceeded {
        /// Which one.
        what: &'static str,
    },
    /// Stored bytes contradict themselves or each other.
    #[error("{place}: {what}")]
    Corruption {
        /// Where: a relation and block, a file, a position in the log.
        place: String,
        /// What is wrong there.
        what: String,
    },
    /// A relation's file is missing, cut short or damaged. Other relations are not affected.
    #[error("could not use {what} (file \"{file}\"): {source}")]
    DamagedFile {
        /// The relation, in words: `table "accounts"`.
        what: String,
        /// The file's path in the data directory.
        file: String,
        /// What is wrong with it.
        #[source]
        source: BufferError,
    },
    /// A commit record was handed to a log that failed before confirming it: only a restart will tell whether
    /// the transaction has committed.
    #[error("the outcome of transaction {xid} is unknown until the server restarts")]
    InDoubt {
        /// The transaction.
        xid: Xid,
    },
    /// `max_connections` and the engine's own workers use up all session slots.
    #[error("sorry, too many clients already")]
    TooManySessions,
    /// A rule of a table or of the catalog forbids it.
    #[error(transparent)]
    Table(#[from] crate::table::TableError),
    /// The engine is being shut down.
    #[error("the database system is shutting down")]
    ShuttingDown,
    /// The buffer pool could not do what was asked of it.
    #[error(transparent)]
    Buffer(BufferError),
    /// The log could not do what was asked of it.
    #[error(transparent)]
    Wal(WalError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The file in which accesses to pages are to be recorded cannot be used.
    #[error("could not record a page trace in {}: {source}", path.display())]
    Trace {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A temporary file cannot be used.
    #[error("could not {what} a temporary file: {source}")]
    TemporaryFile {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A record does not fit the page it is to change.
    #[error(transparent)]
    Redo(#[from] RedoError),
    /// Code of the engine broke its own rule; the transaction is rolled back.
    #[error("internal error: {what}")]
    Internal {
        /// The rule.
        what: &'static str,
    },
}

impl EngineError {
    /// Whether what is stored is at fault, or the device that should give it back; not what merely keeps this process
    /// from reading it, such as a missing permission, and not what is out of room.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Corruption { .. } | Self::Redo(_) | Self::Table(_) => true,
            Self::DamagedFile { .. } | Self::Directory(DirectoryError::Incomplete { .. }) => true,
            Self::Buffer(error) => is_damaged_page(error),
            Self::Wal(WalError::Corrupt { .. } | WalError::Control { .. }) => true,
            Self::Wal(WalError::Io { source, .. }) => millpond_vfs::is_lost(source),
            _ => false,
        }
    }
}

fn is_damaged_page(error: &BufferError) -> bool {
    match error {
        BufferError::BeyondEnd { .. } | BufferError::Damaged { .. } => true,
        BufferError::Store(StoreError::Io { source, .. }) => millpond_vfs::is_lost(source),
        other => other.is_damage(),
    }
}

/// The path of a fork's first file in the data directory.
pub fn relation_file(rel: RelFork) -> String {
    match rel.fork {
        Fork::Main => format!("base/{}", rel.relation),
        fork => format!("base/{}_{}", rel.relation, fork.name()),
    }
}

/// The error of opening a relation's files, which says what relation it is if they are damaged.
pub(crate) fn damaged_relation(
    error: BufferError,
    rel: RelFork,
    what: impl FnOnce() -> String,
) -> EngineError {
    match error.is_damage() {
        true => EngineError::DamagedFile { what: what(), file: relation_file(rel), source: error },
        false => error.into(),
    }
}

impl From<BufferError> for EngineError {
    fn from(error: BufferError) -> Self {
        match error {
            BufferError::WouldBlock => EngineError::WouldBlock,
            other => EngineError::Buffer(other),
        }
    }
}

impl From<WalError> for EngineError {
    fn from(error: WalError) -> Self {
        match error {
            WalError::WouldBlock => EngineError::WouldBlock,
            other => EngineError::Wal(other),
        }
    }
}

impl From<LockError> for EngineError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::WouldBlock { tag } => EngineError::LockNotAvailable { tag },
            LockError::Deadlock { detail } => EngineError::Deadlock { detail },
            LockError::Timeout => EngineError::LockTimeout,
            LockError::Cancelled => EngineError::Cancelled,
        }
    }
}
