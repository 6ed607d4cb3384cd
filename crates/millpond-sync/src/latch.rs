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
//! | 0 | n | shared | held shared by n |
//! | 1 | n | claimed | by one writer that waits until the n readers are gone; nobody else gets in |
//! | 1 | 0 | exclusive | held exclusively |
//!
//! | PARKED | DRAINING | when | meaning |
//! |---|---|---|---|
//! | 1 | | any | threads may be parked on the latch's address, until WRITER is given up |
//! | 0 | | any | none are; who is about to park must set it first |
//! | | 1 | claimed; exclusive for a moment | the claimer may be parked on the address plus one, until the last reader leaves |
//! | | 1 | free, shared | never: set by the claimer alone, and cleared before or with WRITER |
//!
//! | WOKEN | meaning |
//! |---|---|
//! | 1 | a release has woken a writer and left threads parked; until that writer has looked, releases wake nobody |
//! | 0 | a release that finds PARKED wakes |
//!
//! | operation | from | to | wakes |
//! |---|---|---|---|
//! | `shared` | free, shared | shared | |
//! | | shared by 2^27 | the same | panics |
//! | | claimed, exclusive | the same, PARKED | parks |
//! | `unlock_shared` | shared | shared, free | |
//! | | claimed | claimed, exclusive | the claimer, if it was the last reader and DRAINING is set |
//! | `exclusive` | free | exclusive | |
//! | | shared | claimed (DRAINING) | parks, until it is exclusive |
//! | | claimed, exclusive | the same, PARKED | parks |
//! | `upgrade` | shared | exclusive, claimed (DRAINING) | parks, until it is exclusive |
//! | | claimed | the same | fails |
//! | `unlock_exclusive` | exclusive | free | the first in the queue, if PARKED (WOKEN, if some are left) |
//! | | exclusive, WOKEN | free, WOKEN | nobody |
//! | | exclusive, PARKED | shared, claimed, exclusive | hands it to the first in the queue, if they are impatient |
//! | `downgrade` | exclusive | as `unlock_exclusive`, with one reader more | the same |
//! | a deadline, parked behind WRITER | any | PARKED cleared by the last | |
//! | a deadline, claimed | claimed, or exclusive just now | as `unlock_exclusive`; an upgrader remains a reader | the same |
//!
//! (`models/coverage.rs` has the same for every combination of flags, each with the model in which it is seen.)
//!
//! **Waiting.** Acquiring is a compare-and-swap; a waiter spins a little (about as long as parking takes), then
//! parks, so nobody spins on a holder that does not run. Who releases exclusively with PARKED set wakes, in
//! the order of arrival, readers up to and including the first writer. Threads that arrive meanwhile may
//! overtake those being woken, so a latch is idle only when nobody who runs wants it. Nor do they pay for waking
//! more: while WOKEN is set the queue is the woken writer's business, so one wake-up is under way at a time, however
//! many threads there are and however long the woken one waits for a processor.
//!
//! **Overtaking is bounded** (rule 3). A waiter that was woken [`MAX_LOSSES`] times and lost to newcomers parks as
//! *impatient*. When its turn comes, the latch is handed to all who are woken with it: readers hold it, a writer
//! behind them has it claimed. So nobody is woken in vain more often than that. In the queue, each
//! release that wakes wakes at least the first, and who comes later is behind. Readers cannot keep a writer out, since
//! they don't get past its claim; nor writers a reader, since each release of theirs moves it forward.
//!
//! **No lost wake-up** (rules 1 and 2). A thread parks only if WRITER and PARKED are both set when looked at
//! under the queue's lock; the releaser clears WRITER, and PARKED if nobody remains, under that same
//! lock. Threads remain behind only if a writer was woken, and then WOKEN is set. That writer clears it by the very
//! swap with which it claims the latch, or marks, while another holds it, that it parks again (or would, but for its
//! deadline): either way there is a holder then, whose release finds PARKED without WOKEN and wakes the rest.
//! A claimer sets DRAINING and then looks, under its queue's lock, whether there are readers; the last reader
//! either sees the flag or is not seen.
//!
//! **Memory ordering.** Acquiring is *acquire*, releasing *release*; a writer that waited for readers
//! loads the count with *acquire*, which pairs with each reader's release. Who is handed the latch is
//! woken by the releaser, which orders as much.
//!
//! **Too many readers.** A guard that is forgotten ([`std::mem::forget`]) leaves its hold in the
//! count for ever. The flags follow the count in the word, so it has a bound: a latch with
//! [`MAX_READERS`] is full. [`Latch::try_shared`] refuses then, and [`Latch::shared`] panics with
//! nothing taken. An upgrade lowers the count, and a downgrade begins at zero. A release that hands
//! the latch to parked readers adds one for each; there is room for all threads above the bound.
//!
//! **Failure.** The latch allocates nothing, and closures that run under the queue's lock do not
//! panic. A latch that is full is a panic, before anything has been taken.
//!
//! The latch is raw: it has no guard and no data, and does not care which thread releases it. What a caller has
//! checked before it waited may no longer hold after it; only an upgrade keeps it true.

mod turn;
mod wait;
mod word;

use crate::atomic::Ordering;
use crate::mutant;
use crate::parking;
use std::time::Instant;
use word::{DRAINING, FULL, READERS, WRITER, Word};

pub use crate::version::Version;
#[cfg(all(test, any(loom, shuttle)))]
pub(crate) use word::recording;

/// How often a woken waiter may lose to newcomers before the latch is handed to it. (Once in models, so that they
/// get there.)
pub const MAX_LOSSES: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 2 };

/// How many may hold a latch shared at a time.
pub const MAX_READERS: u32 = FULL;

// Tokens of parked threads: what they want and whether they are impatient.
const WANTS_EXCLUSIVE: usize = 1;
const IMPATIENT: usize = 2;

// Tokens given to woken threads: try again, or the latch is yours.
const COMPETE: usize = 0;
const GRANTED: usize = 1;
/// Try again; threads remain parked, and no release wakes them before the writer among the woken has looked.
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
    /// If [`MAX_READERS`] hold it: guards of it have been forgotten. Nothing has been taken then.
    #[inline]
    pub fn shared(&self) {
        may_switch();
        if !self.try_shared() {
            self.wait_shared(0, None);
        }
    }

    /// Takes it shared, unless the deadline passes first. Panics as [`Latch::shared`] does.
    #[must_use]
    pub fn try_shared_until(&self, deadline: Instant) -> bool {
        self.try_shared() || self.wait_shared(0, Some(deadline)).is_some()
    }

    /// Gives it back.
    #[inline]
    pub fn unlock_shared(&self) {
        let before = self.0.leave();
        debug_assert!(before & READERS != 0, "not held shared");
        if before & (READERS | DRAINING) == (1 | DRAINING) {
            parking::unpark_all(self.drain_key());
        }
    }

    /// Takes it exclusively if nobody holds it.
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
            self.wait_exclusive(0, None);
        }
    }

    /// Takes it exclusively, unless the deadline passes first.
    #[must_use]
    pub fn try_exclusive_until(&self, deadline: Instant) -> bool {
        self.try_exclusive() || self.wait_exclusive(0, Some(deadline)).is_some()
    }

    /// Gives it back.
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

    /// Turns the caller's shared hold into an exclusive one if it is the only hold and nobody claims the
    /// latch. Otherwise the caller still holds it shared.
    #[must_use]
    pub fn try_upgrade(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        while state & (WRITER | READERS) == 1 {
            match self.0.take(state, (state - 1) | WRITER) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Turns the caller's shared hold into an exclusive one, waiting for the other readers to leave; no
    /// writer gets in between.
    ///
    /// `false`, at once, if another thread claims the latch already. That may be another upgrader, which
    /// waits for this caller's hold: so of two upgraders one succeeds and the other fails. Who failed
    /// still holds the latch shared, and must give it back before it waits for anything.
    #[must_use]
    pub fn upgrade(&self) -> bool {
        self.claim_for_upgrade() && self.drain(1, None)
    }

    /// Like [`Latch::upgrade`], unless the deadline passes first: then the caller still holds the latch
    /// shared, and has held it all the time.
    #[must_use]
    pub fn try_upgrade_until(&self, deadline: Instant) -> bool {
        self.claim_for_upgrade() && self.drain(1, Some(deadline))
    }

    /// Whether anybody holds it. Only a hint, unless the caller has made sure of the order; but if not, the caller sees
    /// all that those did who held it before.
    #[inline]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire) & (WRITER | READERS) != 0
    }

    /// For tests: so many hold it shared more, and never give it back, as if so many guards of it
    /// had been forgotten. No writer holds or claims it meanwhile.
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

/// In a simulation with debug assertions, another thread may go on here.
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
