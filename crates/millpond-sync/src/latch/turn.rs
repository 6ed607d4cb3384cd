//! Which parked threads a release wakes ([`Turn`]), and the latch's word after that release.
//!
//! A turn is the readers at the head of the queue, and the first writer behind them. If one of
//! these threads is impatient, the release hands the latch to the whole turn. The readers hold it,
//! and the writer has claimed it. Otherwise it only wakes them, and they compete with newcomers.
//!
//! This is for releases that clear WRITER: `unlock_exclusive` and `downgrade`. While WOKEN is set,
//! such a release wakes no thread and does not come here. The last reader that leaves a claimed
//! latch wakes the claimer in `unlock_shared`. [`super`] has the word's layout.
//!
//! The functions only compute. A release calls them under the queue's lock. It calls
//! [`Turn::released`] again after each failed swap.

use super::word::{PARKED, READERS, WOKEN, WRITER};
use super::{IMPATIENT, WANTS_EXCLUSIVE};
use crate::parking::Filter;

/// The threads that a release wakes, in order of arrival: readers up to the first writer, and that
/// writer.
#[derive(Clone, Copy, Default)]
pub(super) struct Turn {
    /// How many readers are among them.
    pub(super) readers: u32,
    /// Whether a writer is among them.
    pub(super) writer: bool,
    /// Whether they are handed the latch, because one of them is impatient. Otherwise they compete.
    pub(super) grant: bool,
}

impl Turn {
    /// Considers the next thread in the queue.
    pub(super) fn consider(mut self, token: usize) -> (Self, Filter) {
        if self.writer {
            return (self, Filter::Stop);
        }
        self.grant |= token & IMPATIENT != 0;
        if token & WANTS_EXCLUSIVE != 0 {
            self.writer = true;
        } else {
            self.readers += 1;
        }
        (self, Filter::Unpark)
    }

    /// The word after a release. WRITER is cleared for the releaser *and* set if a writer gets the
    /// latch: the set wins. `stay` readers are added for the releaser. `more`: threads remain.
    pub(super) fn released(self, state: u32, stay: u32, more: bool) -> u32 {
        debug_assert!(state & WRITER != 0, "not held or claimed exclusively");
        debug_assert!(state & WOKEN == 0, "a waiter has been woken already");
        debug_assert!(self.writer || !more, "left behind");
        let mut new = (state & READERS) + stay;
        if more {
            new |= PARKED;
            if !self.grant {
                new |= WOKEN;
            }
        }
        if self.grant {
            new += self.readers;
            if self.writer {
                new |= WRITER;
            }
        }
        new
    }
}
