//! What a lock is: its object, mode and owner. Also how a request may wait and fail, and a
//! session's own record of the locks that it holds. The lock manager ([`crate::lmgr`]) stands on
//! this, and so do the table of sessions and the errors.

mod local;
pub mod mode;
pub mod tag;

use std::time::Instant;

pub use local::LockOwner;
pub(crate) use local::{Held, LocalLocks, Place};
pub use mode::{LockMode, ModeSet};
pub use tag::LockTag;
pub(crate) use tag::TagHash;

/// How long a request may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// Not at all: [`LockError::WouldBlock`].
    Never,
    /// Until it is granted, cancelled, or the victim of a deadlock.
    Forever,
    /// Until that time, at which it fails with [`LockError::Timeout`].
    Until(Instant),
}

/// What a granted request found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// The session has not held this mode on this object before.
    New,
    /// It held the mode already; the count went up.
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
    /// The wait could never have ended.
    #[error("deadlock detected")]
    Deadlock {
        /// One line per party of the cycle: the waiter, what it waits for, and its blocker.
        detail: String,
    },
    /// `lock_timeout` has passed.
    #[error("canceling statement due to lock timeout")]
    Timeout,
    /// The session was told to stop waiting.
    #[error("canceling statement due to user request")]
    Cancelled,
}
