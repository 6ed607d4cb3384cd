//! Errors of the data directory.

use std::io;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another process has it open.
    #[error(
        "data directory {path} is in use by another process{}; stop that one first, or use another directory",
        .pid.map(|pid| format!(" (PID {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The directory.
        path: String,
        /// The other process, if the kernel reports it.
        pid: Option<u32>,
    },
    /// A part of it is missing, so there is nothing to recover from.
    #[error(
        "{path} is missing from the data directory; restore it from a backup (nothing was changed)"
    )]
    Incomplete {
        /// What is missing.
        path: String,
    },
    /// This process has it open already.
    #[error(
        "data directory {path} is already open in this process; use the engine that has it open, or drop that one first"
    )]
    AlreadyOpen {
        /// The directory.
        path: String,
    },
    /// It is not empty and not a data directory.
    #[error(
        "{path} is not empty and is not a Millpond data directory; choose an empty or a new one (nothing was changed)"
    )]
    Foreign {
        /// The directory.
        path: String,
    },
    /// It is not a database, and the caller wants none created.
    #[error("{path} is not a Millpond database: {what}")]
    NotADatabase {
        /// The directory.
        path: String,
        /// How that was found out.
        what: &'static str,
    },
    /// It belongs to another user.
    #[error("data directory \"{path}\" has wrong ownership")]
    Ownership {
        /// The directory.
        path: String,
    },
    /// Users other than its owner have too many permissions.
    #[error("data directory \"{path}\" has invalid permissions")]
    Permissions {
        /// The directory.
        path: String,
    },
    /// A system call failed.
    #[error("could not {what} {path}: {source}")]
    Io {
        /// The action that failed.
        what: &'static str,
        /// The file or directory.
        path: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}
