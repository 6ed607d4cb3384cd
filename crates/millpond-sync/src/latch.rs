//! The latch: a short lock on memory (rule 4), shared or exclusive, in one 32-bit word.
//!
//! ```text
//!  31       30       29         28      27  (at most 2^27)    0
//! +--------+--------+----------+-------+---------------------+
//! | WRITER | PARKED | DRAINING | WOKEN |       readers       |
//! +--------+--------+----------+-------+---------------------+
//! ```
//!
//! | WRITER | readers | name | meaning |
//! |---|---|---|---|
//! | 0 | 0 | free | |
//! | 0 | n | shared | n readers hold it |
//! | 1 | n | claimed | one writer waits until the n readers have left; no other thread gets in |
//! | 1 | 0 | exclusive | one writer holds it |
//!
//! - PARKED, in any state: threads may be parked on the latch's address, until WRITER is cleared.
//!   Without PARKED there are none: a thread that is about to park must set it first.
//! - DRAINING, when claimed (or exclusive, for a moment): the claimer may be parked on the address
//!   plus one, until the last reader leaves. Only the claimer sets DRAINING, and clears it before
//!   or together with WRITER. So it is never set when the latch is free or shared.
//! - WOKEN: a release has woken a writer and left threads parked. Until that writer has looked at
//!   the latch, releases wake no thread. Without WOKEN, a release that finds PARKED wakes threads.
//!
//! | operation | from | to | wakes |
//! |---|---|---|---|
//! | `shared` | free, shared | shared | |
//! | | shared by 2^27 | the same | panics |
//! | | claimed, exclusive | the same, PARKED | parks |
//! | `unlock_shared` | shared | shared, free | |
//! | | claimed | claimed, exclusive | the claimer, by the last reader, if DRAINING |
//! | `exclusive` | free | exclusive | |
//! | | shared | claimed (DRAINING) | parks, until it is exclusive |
//! | | claimed, exclusive | the same, PARKED | parks |
//! | `unlock_exclusive` | exclusive | free | the queue's head, if PARKED (WOKEN if some are left) |
//! | | exclusive, WOKEN | free, WOKEN | no thread |
//! | | exclusive, PARKED | shared, claimed, exclusive | handed to the woken, if one is impatient |
//! | `downgrade` | exclusive | as `unlock_exclusive`, plus one reader | the same |
//!
//! `models/coverage.rs` has the table for every combination of flags, each with the model that
//! reaches it.
//!
//! **Waiting.** Acquiring is a compare-and-swap. A waiter spins about as long as parking takes,
//! then parks, so no thread spins for long on a holder that does not run. A thread that releases
//! exclusively with PARKED set wakes waiters in the order of arrival: readers up to and including
//! the first writer. Threads that arrive meanwhile may overtake those being woken, so a latch is
//! idle only when no running thread wants it. While WOKEN is set, releases leave the queue to the
//! woken writer, and do not pay for further wake-ups. So one wake-up is under way at a time, for
//! any number of threads and however long the woken one waits for a processor.
//!
//! **Overtaking is bounded** (rule 3). A waiter that was woken [`MAX_LOSSES`] times and lost to
//! newcomers parks as *impatient*. When its turn comes, the release hands the latch to all threads
//! that it wakes. Readers then hold it, and a writer behind them has it claimed. So no thread is
//! woken more often than that without getting the latch. Each release that wakes at all wakes at
//! least the queue's head, and later arrivals queue behind. Readers cannot keep a writer out,
//! because they don't get past its claim. Writers cannot keep a reader out, because each release
//! moves it forward.
//!
//! **No lost wake-up** (rules 1 and 2). A thread parks only if it sees both WRITER and PARKED set
//! under the queue's lock. The releaser clears WRITER under that same lock, and PARKED if no thread
//! remains. Threads remain only behind a woken writer. Then that writer was handed the latch, or
//! WOKEN is set.
//!
//! The woken writer clears WOKEN by the very swap with which it claims the latch. Or it clears
//! WOKEN while another thread holds the latch, and marks that it parks again. Either way there is a
//! holder, whose release finds PARKED without WOKEN and wakes the rest. A claimer sets DRAINING,
//! then checks under its queue's lock whether there are readers. The last reader sees the flag, or
//! the claimer sees that it has left.
//!
//! **Memory ordering.** Acquiring is *acquire*, releasing *release*. A writer that waited for
//! readers loads the count with *acquire*, which pairs with each reader's release. A thread that is
//! handed the latch is woken by the releaser; the wake-up gives the same ordering.
//!
//! **Too many readers.** A forgotten guard ([`std::mem::forget`]) leaves its hold in the count for
//! ever. The count has a bound, because the flags follow it in the word: a latch with
//! [`MAX_READERS`] is full. Then [`Latch::try_shared`] refuses, and [`Latch::shared`] panics with
//! nothing taken. A downgrade begins at zero. A release that hands the latch to parked readers adds
//! one for each; above the bound there is room for all threads.
//!
//! **Failure.** The latch allocates nothing, and closures that run under the queue's lock do not
//! panic. Only a full latch panics, before anything has been taken.
//!
//! The latch is raw: it has no guard and no data, and any thread may release it. A condition that a
//! caller checked before it waited may no longer hold afterwards.

mod turn;
mod wait;
mod word;

use crate::atomic::Ordering;
use crate::mutant;
use crate::parking;
use word::{DRAINING, FULL, READERS, WRITER, Word};

pub use crate::version::Version;
#[cfg(all(test, any(loom, shuttle)))]
pub(crate) use word::recording;

/// How often a woken waiter may lose to newcomers before it is handed the latch. (Models: once.)
pub const MAX_LOSSES: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 2 };

/// The number of shared holds at which a latch is full.
pub const MAX_READERS: u32 = FULL;

// Tokens of parked threads: what a thread wants, and whether it is impatient.
const WANTS_EXCLUSIVE: usize = 1;
const IMPATIENT: usize = 2;

// Tokens given to woken threads: try again, or the latch is yours.
const COMPETE: usize = 0;
const GRANTED: usize = 1;
/// Try again. Threads remain parked, and no release wakes them before the woken writer has looked.
const COMPETE_FOR_ALL: usize = 2;

/// A shared/exclusive latch.
#[derive(Debug)]
pub struct Latch(Word);

impl Latch {
    /// A free latch.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(Word::new())
    }

    /// A free latch.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(Word::new())
    }

    /// Takes it shared if no writer holds or claims it, and fewer than [`MAX_READERS`] hold it.
    #[inline]
    #[must_use]
    pub fn try_shared(&self) -> bool {
        let keeps_out = if mutant!("latch-without-bound") { WRITER } else { WRITER | FULL };
        let mut state = self.0.load(Ordering::Relaxed);
        while state & keeps_out == 0 {
            match self.0.take(state, state + 1) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes it shared.
    ///
    /// # Panics
    ///
    /// If [`MAX_READERS`] hold it, because guards have been forgotten. Nothing has been taken then.
    #[inline]
    pub fn shared(&self) {
        may_switch();
        if !self.try_shared() {
            self.wait_shared(0);
        }
    }

    /// Releases a shared hold.
    #[inline]
    pub fn unlock_shared(&self) {
        let before = self.0.leave();
        debug_assert!(before & READERS != 0, "not held shared");
        if before & (READERS | DRAINING) == (1 | DRAINING) {
            parking::unpark_all(self.drain_key());
        }
    }

    /// Takes it exclusively if no thread holds it.
    #[inline]
    #[must_use]
    pub fn try_exclusive(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        while state & (WRITER | READERS) == 0 {
            match self.0.take(state, state | WRITER) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes it exclusively.
    #[inline]
    pub fn exclusive(&self) {
        may_switch();
        if !self.try_exclusive() {
            self.wait_exclusive(0);
        }
    }

    /// Releases an exclusive hold.
    #[inline]
    pub fn unlock_exclusive(&self) {
        if self.0.give(WRITER, 0).is_err() {
            self.release_and_wake(0);
        }
    }

    /// Turns an exclusive hold into a shared one, without letting a writer in between.
    pub fn downgrade(&self) {
        if self.0.give(WRITER, 1).is_err() {
            self.release_and_wake(1);
        }
    }

    /// Whether any thread holds it. This is only a hint, unless the caller has made sure of the
    /// order. If the answer is `false`, the caller sees all that earlier holders did.
    #[inline]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire) & (WRITER | READERS) != 0
    }

    /// For tests: adds `holds` shared holds that nothing releases, as if that many guards had been
    /// forgotten. No writer may hold or claim the latch meanwhile.
    #[doc(hidden)]
    pub fn forget_shared(&self, holds: u32) {
        self.0.add_readers(holds);
    }

    /// The raw word, for tests.
    #[cfg(test)]
    pub(crate) fn word(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn drain_key(&self) -> usize {
        self.key() + 1
    }
}

/// In a simulation with debug assertions, the scheduler may run another thread here.
#[inline(always)]
fn may_switch() {
    crate::scheduler::hot_point();
}

impl Default for Latch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
