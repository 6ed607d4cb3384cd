//! The commit clock: the last commit number drawn. The commit of that number may not be complete.
//!
//! A committer first sets the committing mark in its transaction's status word (word.rs). Then it
//! draws its number: a read-modify-write of the clock, which needs Release. Then it stores the
//! number in the status word. A snapshot is a load of the clock with Acquire. So a reader whose
//! snapshot includes a number sees the mark or the number in the status word (transam rule 4).
//!
//! Only transactions that have changed something draw numbers. The clock is not durable: each start
//! begins it anew (transam rule 10). The clock has a cache line of its own.

use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::{CachePadded, ordering};

use crate::ids::Csn;

/// The clock.
pub(crate) struct CommitClock(CachePadded<AtomicU64>);

impl CommitClock {
    /// A clock at the start of a run: all earlier commits are frozen.
    pub(crate) fn new() -> Self {
        CommitClock(CachePadded::new(AtomicU64::new(Csn::FROZEN.0)))
    }

    /// The last number drawn.
    #[inline]
    pub(crate) fn load(&self) -> Csn {
        Csn(self.0.load(Ordering::Acquire))
    }

    /// Draws the next number.
    pub(crate) fn draw(&self) -> Csn {
        Csn(self.0.fetch_add(1, ordering!("transam-number-relaxed", AcqRel)) + 1)
    }
}
