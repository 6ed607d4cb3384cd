//! The clock of commits: the number of the last one.
//!
//! The number is drawn by a read-modify-write with Release after the transaction's word got its committing
//! mark; it is loaded with Acquire by who takes a snapshot (transam rule 4). The word has a line of its own.

use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::{CachePadded, ordering};

use super::ids::Csn;

/// The clock.
pub(crate) struct CommitClock(CachePadded<AtomicU64>);

impl CommitClock {
    /// A clock at the beginning: all that is committed so far is frozen.
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
