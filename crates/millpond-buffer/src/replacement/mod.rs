//! Replacement: frames are taken from their pages, for other pages or for good.
//!
//! [`Backoff`] says how long a session waits for frames that other threads hold.

use millpond_sync::thread;

pub(crate) mod evict;
pub(crate) mod owned;
pub(crate) mod refill;
pub(crate) mod reuse;
pub(crate) mod ring;
pub(crate) mod vacate;
pub(crate) mod victim_batch;

/// How often to yield before sleeping.
const YIELDS: usize = if cfg!(any(miri, shuttle)) { 10 } else { 64 };
/// How often to sleep while sessions have all frames pinned: one of them may be about to unpin.
const NAPS_WHEN_PINNED: usize = if cfg!(test) { 1 } else { 5 };
/// How often to sleep in total: long enough for a descheduled thread on a busy machine, or a
/// device.
const NAPS: usize = if cfg!(shuttle) { 20 } else { 10_000 };
const NAP: std::time::Duration = std::time::Duration::from_millis(1);

/// A session's wait for frames that other threads hold, and when it gives up.
#[derive(Default)]
pub(crate) struct Backoff {
    yields: usize,
    naps: usize,
    /// Naps in a row that found all frames pinned. One look is not enough. It sees the frames one
    /// after the other, and they may never have been pinned all at one time.
    naps_when_pinned: usize,
}

impl Backoff {
    pub(crate) fn has_yielded(&self) -> bool {
        self.yields >= YIELDS
    }

    /// Waits a little; returns `false` at once if further waiting is of no use.
    pub(crate) fn wait(&mut self, all_pinned: bool) -> bool {
        self.naps_when_pinned = if all_pinned { self.naps_when_pinned + 1 } else { 0 };
        if !all_pinned && !self.has_yielded() {
            self.yields += 1;
            thread::yield_now();
            return true;
        }
        self.naps += 1;
        if self.naps > NAPS || self.naps_when_pinned > NAPS_WHEN_PINNED {
            return false;
        }
        thread::sleep(NAP);
        true
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// A look that finds an unpinned frame restarts the count, whether a nap or a yield follows it.
    #[test]
    fn unpinned_frame_restarts_count_of_naps() {
        let mut patience = Backoff::default();
        for _ in 0..2 * YIELDS {
            assert!(patience.wait(true), "the first of a row");
            assert!(patience.wait(false), "not all are pinned");
        }
        (0..NAPS_WHEN_PINNED).for_each(|_| assert!(patience.wait(true)));
        assert!(!patience.wait(true), "the row is long enough");
    }
}
