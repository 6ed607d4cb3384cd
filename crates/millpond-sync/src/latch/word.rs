//! The latch's word: its layout, and every change of it. Under a model checker each change is
//! recorded, so that models can compare what happened with the table of transitions.

use crate::atomic::{AtomicU32, Ordering};
use crate::ordering;

pub(super) const WRITER: u32 = 1 << 31;
pub(super) const PARKED: u32 = 1 << 30;
pub(super) const DRAINING: u32 = 1 << 29;
pub(super) const WOKEN: u32 = 1 << 28;
pub(super) const READERS: u32 = WOKEN - 1;
/// The number of readers at which the latch is full. It is the highest bit of their count, so one
/// test of the word finds both it and WRITER.
pub(super) const FULL: u32 = 1 << 27;

// A release that hands the latch to parked readers does not check the bound: there are fewer
// threads than counts above it.
const _: () = assert!(FULL & READERS == FULL && READERS - FULL >= 1 << 22);

/// See the description of [`crate::latch`].
#[derive(Debug)]
pub(super) struct Word(AtomicU32);

impl Word {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline]
    pub(super) fn load(&self, ordering: Ordering) -> u32 {
        self.0.load(ordering)
    }

    /// Compares and swaps, with *acquire*; may fail spuriously.
    #[inline]
    pub(super) fn take(&self, from: u32, to: u32) -> Result<(), u32> {
        self.0.compare_exchange_weak(from, to, Ordering::Acquire, Ordering::Relaxed)?;
        record(from, to);
        Ok(())
    }

    /// Compares and swaps, with *release*.
    #[inline]
    pub(super) fn give(&self, from: u32, to: u32) -> Result<(), u32> {
        self.0.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed)?;
        record(from, to);
        Ok(())
    }

    /// Removes one reader. Returns the word before.
    #[inline]
    pub(super) fn leave(&self) -> u32 {
        let before = self.0.fetch_sub(1, ordering!("latch-leave-relaxed", Release));
        record(before, before.wrapping_sub(1));
        before
    }

    pub(super) fn set(&self, flag: u32) {
        let before = self.0.fetch_or(flag, Ordering::Relaxed);
        record(before, before | flag);
    }

    pub(super) fn clear(&self, flag: u32) {
        let before = self.0.fetch_and(!flag, Ordering::Relaxed);
        record(before, before & !flag);
    }

    /// Adds readers that no thread will release.
    pub(super) fn add_readers(&self, readers: u32) {
        self.0.fetch_add(readers, Ordering::Relaxed);
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn store(&self, word: u32) {
        self.0.store(word, Ordering::Relaxed);
    }
}

#[cfg(not(all(test, any(loom, shuttle))))]
#[inline(always)]
fn record(_from: u32, _to: u32) {}

#[cfg(all(test, any(loom, shuttle)))]
use recording::record;

/// The record of transitions. A model checker runs all threads on one thread of the system.
#[cfg(all(test, any(loom, shuttle)))]
pub(crate) mod recording {
    use super::{DRAINING, PARKED, READERS, WOKEN, WRITER};
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static SEEN: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    }

    /// Returns the recorded transitions and clears the record.
    pub(crate) fn take() -> BTreeSet<String> {
        SEEN.take()
    }

    pub(super) fn record(from: u32, to: u32) {
        SEEN.with_borrow_mut(|seen| {
            seen.insert(format!("{} > {}", name(from), name(to)));
            if let Some(event) = token(from, to) {
                seen.insert(event.to_owned());
            }
        });
    }

    /// The event of WOKEN in this change, if there is one, whatever the other bits are.
    fn token(from: u32, to: u32) -> Option<&'static str> {
        let gives_up = from & !to & WRITER != 0;
        match (from & WOKEN != 0, to & WOKEN != 0) {
            (false, true) => Some("a writer is woken"),
            (true, false) if to & !from & WRITER != 0 => Some("the woken writer claims"),
            (true, false) => Some("the woken writer parks again"),
            (true, true) if gives_up => Some("a release leaves it to the woken writer"),
            _ => None,
        }
    }

    /// `free`, `shared`, `claimed` or `exclusive`, with `P` for PARKED and `D` for DRAINING.
    fn name(word: u32) -> String {
        let hold = match (word & WRITER != 0, word & READERS != 0) {
            (false, false) => "free",
            (false, true) => "shared",
            (true, true) => "claimed",
            (true, false) => "exclusive",
        };
        let parked = if word & PARKED != 0 { " P" } else { "" };
        let draining = if word & DRAINING != 0 { " D" } else { "" };
        format!("{hold}{parked}{draining}")
    }
}
