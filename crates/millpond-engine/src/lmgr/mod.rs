//! The lock manager: transactional locks on relations, transactions, rows and application keys.

mod counters;
mod deadlock;
mod fast;
mod graph;
mod local;
mod long_wait;
mod manager;
pub mod mode;
#[cfg(all(test, any(loom, shuttle)))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod reference;
mod release;
#[cfg(all(test, not(any(loom, shuttle))))]
mod schedules;
mod table;
pub mod tag;
#[cfg(test)]
mod tests;
mod waiting;
mod xact;

use std::time::Instant;

use crate::transam::SessionNo;

pub use counters::{LockCounts, LockStats};
pub(crate) use local::LocalLocks;
pub use local::LockOwner;
pub use manager::LockManager;
pub use mode::{LockMode, ModeSet};
pub(crate) use table::TagHash;
pub use tag::LockTag;

/// How long a request may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// Not at all: [`LockError::WouldBlock`].
    Never,
    /// Until it is granted, cancelled, or the victim of a deadlock.
    Forever,
    /// Until then, when it fails with [`LockError::Timeout`].
    Until(Instant),
}

/// What a granted request found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// The session has not held this mode on this object before.
    New,
    /// It held it already; the count went up.
    AlreadyHeld,
}

/// Why a lock was not granted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LockError {
    /// Another session is in the way and the request may not wait.
    #[error("could not obtain lock on {tag}")]
    WouldBlock {
        /// The object.
        tag: LockTag,
    },
    /// Waiting longer would never have helped.
    #[error("deadlock detected")]
    Deadlock {
        /// One line per party of the cycle: who waits for what, blocked by whom.
        detail: String,
    },
    /// `lock_timeout` has passed.
    #[error("canceling statement due to lock timeout")]
    Timeout,
    /// The session was told to stop waiting.
    #[error("canceling statement due to user request")]
    Cancelled,
}

/// One lock, held or wanted, as pg_locks shows it.
#[derive(Clone, Debug)]
pub struct LockInfo {
    /// The object.
    pub tag: LockTag,
    /// The mode.
    pub mode: LockMode,
    /// Whose it is.
    pub session: SessionNo,
    /// The process id that stands for that session.
    pub process_id: u32,
    /// Held, or else waited for.
    pub granted: bool,
    /// Noted in a slot of the session's own.
    pub fast_path: bool,
    /// Since when it is waited for.
    pub waiting_since: Option<Instant>,
}
