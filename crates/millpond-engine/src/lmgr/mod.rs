//! The lock manager: transactional locks on relations, transactions, rows and application keys.
//!
//! A session asks the [`LockManager`] for a [`LockMode`] on a [`LockTag`]. The rules are in
//! README.md beside this file, cited as `(lmgr rule N)`.

mod counters;
mod deadlock;
mod fast;
mod graph;
mod long_wait;
mod manager;
#[cfg(all(test, any(loom, shuttle)))]
mod models;
mod queue;
#[cfg(all(test, not(any(loom, shuttle))))]
mod reference;
mod release;
mod request;
#[cfg(all(test, not(any(loom, shuttle))))]
mod schedules;
mod table;
#[cfg(test)]
mod tests;
mod waiting;
mod xact;

use std::time::Instant;

use crate::ids::SessionNo;

pub use crate::lock::{Acquired, LockError, LockMode, LockOwner, LockTag, LockWait, ModeSet};
pub use counters::{LockCounts, LockStats};
pub use manager::LockManager;

/// One lock, held or wanted, as pg_locks shows it.
#[derive(Clone, Debug)]
pub struct LockInfo {
    /// The object.
    pub tag: LockTag,
    /// The mode.
    pub mode: LockMode,
    /// The session that holds it or waits for it.
    pub session: SessionNo,
    /// The process id that stands for that session.
    pub process_id: u32,
    /// `true` if it is held, `false` if it is waited for.
    pub granted: bool,
    /// Whether it is noted in one of the session's own slots.
    pub fast_path: bool,
    /// The start of the wait.
    pub waiting_since: Option<Instant>,
}
