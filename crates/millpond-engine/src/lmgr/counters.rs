//! The lock manager's counters, for `pg_stat_lock`. They count slow events only (lmgr rule 10).
//!
//! A lock that is granted at once is not counted, so the fast path has no additional store. Each
//! session counts in its own stripe, so counting shares nothing.

use std::time::Duration;

use millpond_sync::counters::StripedCounters;

use crate::ids::SessionNo;
use crate::lock::LockTag;

/// The number of kinds of objects, in the order of [`LockTag::kind_no`].
const KINDS: usize = LockTag::KINDS.len();
/// The counters of one kind.
const WAITS: usize = 0;
const WAIT_US: usize = 1;
const EXCEEDED: usize = 2;
const PER_KIND: usize = 3;

/// The counters of all sessions.
pub(super) struct LockCounters(StripedCounters<{ KINDS * PER_KIND }>);

impl LockCounters {
    pub(super) fn new(sessions: usize) -> Self {
        LockCounters(StripedCounters::new(sessions))
    }

    /// The counts since the start.
    pub(super) fn stats(&self) -> LockStats {
        let sum = |kind: usize, counter: usize| self.0.sum(kind * PER_KIND + counter);
        LockStats(std::array::from_fn(|kind| LockCounts {
            waits: sum(kind, WAITS),
            wait_us: sum(kind, WAIT_US),
            fast_path_exceeded: sum(kind, EXCEEDED),
        }))
    }

    /// Counts a lock that the session got after a wait longer than its `deadlock_timeout`.
    #[cold]
    pub(super) fn waited(&self, session: SessionNo, tag: &LockTag, time: Duration) {
        let kind = tag.kind_no() * PER_KIND;
        self.0.add(session.index(), kind + WAITS, 1);
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.add(session.index(), kind + WAIT_US, us);
    }

    /// Counts a weak lock that found no slot.
    #[cold]
    pub(super) fn fast_path_exceeded(&self, session: SessionNo, tag: &LockTag) {
        self.0.add(session.index(), tag.kind_no() * PER_KIND + EXCEEDED, 1);
    }
}

/// The counts for one kind of object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCounts {
    /// Locks that were granted after a wait longer than `deadlock_timeout`.
    pub waits: u64,
    /// The sum of those waits, in microseconds.
    pub wait_us: u64,
    /// Weak locks that went to the shared table because the session's slots were full.
    pub fast_path_exceeded: u64,
}

/// The counts for each kind of [`LockTag::KINDS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockStats(pub [LockCounts; KINDS]);
