//! What the lock manager counts, for `pg_stat_lock`: only what is slow anyway (lmgr rule 10).
//!
//! A lock that is granted at once is not counted: the fast path stays without a store more. Each session
//! counts in a stripe of its own, so counting shares nothing.

use std::time::Duration;

use millpond_sync::counters::StripedCounters;

use super::manager::LockManager;
use super::tag::LockTag;
use crate::transam::SessionNo;

/// Kinds of objects, in the order of [`LockTag::kind_no`].
const KINDS: usize = LockTag::KINDS.len();
/// Counters of a kind.
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

    /// The session got a lock for which it had waited longer than its `deadlock_timeout`.
    #[cold]
    pub(super) fn waited(&self, session: SessionNo, tag: &LockTag, time: Duration) {
        let kind = tag.kind_no() * PER_KIND;
        self.0.add(session.index(), kind + WAITS, 1);
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.add(session.index(), kind + WAIT_US, us);
    }

    /// A weak lock found no slot.
    #[cold]
    pub(super) fn fast_path_exceeded(&self, session: SessionNo, tag: &LockTag) {
        self.0.add(session.index(), tag.kind_no() * PER_KIND + EXCEEDED, 1);
    }
}

/// What has been counted for one kind of object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCounts {
    /// Locks that were granted after a wait longer than `deadlock_timeout`.
    pub waits: u64,
    /// How long those waits were together, in microseconds.
    pub wait_us: u64,
    /// Weak locks that went to the shared table because the session's slots were full.
    pub fast_path_exceeded: u64,
}

/// What has been counted, for each kind of [`LockTag::KINDS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockStats(pub [LockCounts; KINDS]);

impl LockManager {
    /// What has been counted since the start.
    pub fn stats(&self) -> LockStats {
        let sum = |kind: usize, counter: usize| self.counters.0.sum(kind * PER_KIND + counter);
        LockStats(std::array::from_fn(|kind| LockCounts {
            waits: sum(kind, WAITS),
            wait_us: sum(kind, WAIT_US),
            fast_path_exceeded: sum(kind, EXCEEDED),
        }))
    }
}
