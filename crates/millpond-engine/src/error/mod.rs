//! The error type of the engine, and those of its parts that it holds.
//!
//! Each variant says what happened in terms that the author of a statement can act on. Errors of
//! lower layers are kept as sources, never flattened into text. [`EngineError::WouldBlock`] is not
//! a failure: it asks the caller to repeat the operation where it may wait. An operation returns it
//! only before its first change.

mod directory;
mod table;
mod wal;

use std::io;

use millpond_buffer::{BufferError, Fork, RelFork, RelationId, StoreError};

use crate::ids::Xid;
use crate::lock::{LockError, LockTag};

pub use directory::DirectoryError;
pub use table::TableError;
pub use wal::{EncodeError, RedoError, WalError};

/// A result of the engine.
pub type EngineResult<T> = Result<T, EngineError>;

/// Why an operation of the engine did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The operation would have to wait, and its session may not. Nothing was changed.
    #[error("the operation would have to wait")]
    WouldBlock,
    /// The session was asked to stop (cancel request, statement timeout, shutdown). Its session
    /// line says which.
    #[error("canceling statement due to user request")]
    Cancelled,
    /// Several transactions wait for each other in a cycle.
    #[error("deadlock detected")]
    Deadlock {
        /// One line per party: its process, the lock it waits for, and the process that blocks it.
        detail: String,
    },
    /// `lock_timeout` passed while waiting for a lock.
    #[error("canceling statement due to lock timeout")]
    LockTimeout,
    /// NOWAIT, and another session holds a conflicting lock.
    #[error("could not obtain lock on {tag}")]
    LockNotAvailable {
        /// The object to be locked.
        tag: LockTag,
    },
    /// A REPEATABLE READ transaction met a row that changed after the transaction's snapshot.
    #[error("could not serialize access due to concurrent {change}")]
    SerializationFailure {
        /// `update` or `delete`.
        change: &'static str,
    },
    /// A key is already in a unique index.
    #[error("duplicate key value violates unique constraint")]
    UniqueViolation {
        /// The file of the index.
        index: RelationId,
    },
    /// A key is so long that a page would hold too few entries for a tree.
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
    /// A limit was reached.
    #[error("{what}")]
    LimitExceeded {
        /// Which limit.
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
    /// A relation's file is missing, too short or damaged. Other relations are not affected.
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
    /// The log received a commit record and failed before it confirmed it. Only a restart can tell
    /// whether the transaction has committed.
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
    Table(#[from] TableError),
    /// The engine is being shut down.
    #[error("the database system is shutting down")]
    ShuttingDown,
    /// The buffer pool reports an error.
    #[error(transparent)]
    Buffer(BufferError),
    /// The log reports an error.
    #[error(transparent)]
    Wal(WalError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The file for the page access trace cannot be used.
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
        /// What the engine tried to do.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A log record does not fit the page that it changes.
    #[error(transparent)]
    Redo(#[from] RedoError),
    /// The engine violated one of its own rules; the transaction is rolled back.
    #[error("internal error: {what}")]
    Internal {
        /// What contradicts the rule.
        what: &'static str,
    },
}

impl EngineError {
    /// Whether the stored data is at fault, or the device that should return it. False for what
    /// only keeps this process from reading, such as a missing permission, and for a lack of space.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Corruption { .. } | Self::Redo(_) => true,
            Self::Table(error) => matches!(error, TableError::Damaged { .. }),
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

/// The error of opening a relation's files. It names the relation if they are damaged.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::tuple::DamagedTuple;

    #[test]
    fn only_a_damaged_row_is_damage_among_errors_of_tables() {
        let source = DamagedTuple { column: 0, columns: 1 };
        let damaged = TableError::Damaged { table: "t".to_owned(), source };
        assert!(EngineError::from(damaged).is_damage());
        assert!(!EngineError::from(TableError::UndefinedRelation("t".to_owned())).is_damage());
    }
}
