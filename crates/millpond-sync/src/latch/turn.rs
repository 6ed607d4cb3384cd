//! Whose turn it is when the latch is released, and what the word becomes: pure functions.

use super::word::{PARKED, READERS, WOKEN, WRITER};
use super::{IMPATIENT, WANTS_EXCLUSIVE};
use crate::parking::Filter;

/// Whom a release wakes: readers up to and including the first writer, in the order of arrival.
#[derive(Clone, Copy, Default)]
pub(super) struct Turn {
    /// How many readers are among them.
    pub(super) readers: u32,
    /// Whether a writer is among them.
    pub(super) writer: bool,
    /// Whether they are given the latch instead of competing for it: one of them is impatient.
    pub(super) grant: bool,
}

impl Turn {
    /// Looks at the next thread in the queue.
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

    /// The word after a release. WRITER is cleared for who releases *and* set for whom it is granted to:
    /// the set wins. `stay` readers are added for who releases; `more`: threads remain parked.
    pub(super) fn released(self, state: u32, stay: u32, more: bool) -> u32 {
        debug_assert!(state & WRITER != 0, "not held or claimed exclusively");
        debug_assert!(state & WOKEN == 0, "somebody has been woken already");
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
