//! How long a session waits for frames that others hold, and when it gives up.

use millpond_sync::thread;

/// How often to let others run before sleeping.
const YIELDS: usize = if cfg!(any(miri, shuttle)) { 10 } else { 64 };
/// How often to sleep while sessions have all frames pinned: one may be about to unpin.
const NAPS_WHEN_PINNED: usize = if cfg!(test) { 1 } else { 5 };
/// How often to sleep in all: for as long as a thread on a crowded machine, or a device, may take.
const NAPS: usize = if cfg!(shuttle) { 20 } else { 10_000 };
const NAP: std::time::Duration = std::time::Duration::from_millis(1);

/// How long a session has waited for frames that others hold.
#[derive(Default)]
pub(super) struct Patience {
    yields: usize,
    naps: usize,
    /// In a row: what was seen frame by frame, while others went on, need not have been so at any one time.
    naps_when_pinned: usize,
}

impl Patience {
    pub(super) fn has_yielded(&self) -> bool {
        self.yields >= YIELDS
    }

    /// Waits a little; `false`, at once, if that is of no more use.
    pub(super) fn wait(&mut self, all_pinned: bool) -> bool {
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

    /// A look that finds a frame which nobody has pinned begins the count anew, whether a nap or a yield follows it.
    #[test]
    fn looks_that_find_all_pinned_count_in_a_row() {
        let mut patience = Patience::default();
        for _ in 0..2 * YIELDS {
            assert!(patience.wait(true), "the first of a row");
            assert!(patience.wait(false), "not all are pinned");
        }
        (0..NAPS_WHEN_PINNED).for_each(|_| assert!(patience.wait(true)));
        assert!(!patience.wait(true), "the row is long enough");
    }
}
