//! The latch: a short lock on memory, shared or exclusive, in one 32-bit word.
//!
//! ```text
//!  31       30       29         28                            0
//! +--------+--------+----------+-----------------------------+
//! | WRITER | PARKED | DRAINING |           readers           |
//! +--------+--------+----------+-----------------------------+
//! ```
//!
//! | WRITER | readers | meaning |
//! |---|---|---|
//! | 0 | 0 | free |
//! | 0 | n | held shared by n |
//! | 1 | n | claimed by one writer that waits until the n readers are gone; nobody else gets in |
//! | 1 | 0 | held exclusively |
//!
//! PARKED: threads may be parked on the latch's address, waiting for WRITER to go away. DRAINING: the
//! claiming writer is parked on the address plus one, waiting for the last reader; never set without
//! WRITER and cleared by that writer alone.
//!
//! **Waiting.** Acquiring is a compare-and-swap; a waiter spins a little, then parks. Who releases
//! exclusively with PARKED set wakes, in the order of arrival, readers up to and including the first
//! writer. Threads that arrive meanwhile may overtake those being woken, so a latch is never idle while
//! somebody wants it. But a waiter that lost [`MAX_LOSSES`] times parks as *impatient*: when its turn
//! comes, the releaser hands it the latch instead of letting it compete (rule 3). Readers can't keep a
//! writer out, since they don't get past WRITER.
//!
//! **No lost wake-up** (rule 2). A thread parks only if WRITER and PARKED are both set when looked at
//! under the queue's lock; the releaser clears WRITER, and PARKED if nobody remains, under that same
//! lock. Threads remain behind only if a writer was woken; that writer claims the latch, or parks
//! again behind somebody who holds it, and either way a later release wakes the rest.
//!
//! **Memory ordering.** Acquiring is *acquire*, releasing *release*; a writer that waited for readers
//! loads the count with *acquire*, which pairs with each reader's release.
//!
//! The latch is raw: it has no guard and no data, and does not care which thread releases it.

use crate::atomic::{AtomicU32, Ordering};
use crate::hint::Backoff;
use crate::parking::{self, Filter, ParkResult, Unparked};
use std::cell::Cell;

pub use crate::version::Version;

const WRITER: u32 = 1 << 31;
const PARKED: u32 = 1 << 30;
const DRAINING: u32 = 1 << 29;
const READERS: u32 = DRAINING - 1;

/// How often a woken waiter may lose to newcomers before the latch is handed to it.
pub const MAX_LOSSES: u32 = 2;

// Tokens of parked threads: what they want and whether they are impatient.
const WANTS_EXCLUSIVE: usize = 1;
const IMPATIENT: usize = 2;

// Tokens given to woken threads.
const COMPETE: usize = 0;
const GRANTED_SHARED: usize = 1;
const GRANTED_EXCLUSIVE: usize = 2;

/// A shared/exclusive latch.
#[derive(Debug)]
pub struct Latch(AtomicU32);

impl Latch {
    /// A free latch.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A free latch.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Takes it shared if no writer holds or claims it.
    #[inline]
    #[must_use]
    pub fn try_shared(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        while state & WRITER == 0 {
            match self.weak_swap(state, state + 1) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes it shared.
    #[inline]
    pub fn shared(&self) {
        if !self.try_shared() {
            self.shared_slow();
        }
    }

    /// Gives it back.
    #[inline]
    pub fn unlock_shared(&self) {
        let before = self.0.fetch_sub(1, Ordering::Release);
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
            match self.weak_swap(state, state | WRITER) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes it exclusively.
    #[inline]
    pub fn exclusive(&self) {
        if !self.try_exclusive() {
            self.exclusive_slow();
        }
    }

    /// Gives it back.
    #[inline]
    pub fn unlock_exclusive(&self) {
        let swapped = self.0.compare_exchange(WRITER, 0, Ordering::Release, Ordering::Relaxed);
        if swapped.is_err() {
            self.unlock_exclusive_slow();
        }
    }

    /// Turns an exclusive hold into a shared one, without letting a writer in between.
    pub fn downgrade(&self) {
        let swapped = self.0.compare_exchange(WRITER, 1, Ordering::Release, Ordering::Relaxed);
        if swapped.is_err() {
            self.release_and_wake(1);
        }
    }

    /// Whether somebody holds or claims it exclusively. Only a hint unless that is the caller.
    #[inline]
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WRITER != 0
    }

    /// Whether anybody holds it. Only a hint.
    #[inline]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (WRITER | READERS) != 0
    }

    #[inline]
    fn weak_swap(&self, from: u32, to: u32) -> Result<(), u32> {
        let swapped = self.0.compare_exchange_weak(from, to, Ordering::Acquire, Ordering::Relaxed);
        swapped.map(|_| ())
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn drain_key(&self) -> usize {
        self.key() + 1
    }

    #[cold]
    fn shared_slow(&self) {
        let mut backoff = Backoff::new();
        let mut losses = 0;
        loop {
            if self.try_shared() {
                return;
            }
            if backoff.spin() {
                continue;
            }
            match self.park_behind_writer(0, losses) {
                Some(GRANTED_SHARED) => return,
                Some(_) => {
                    losses += 1;
                    backoff.reset();
                }
                None => {}
            }
        }
    }

    #[cold]
    fn exclusive_slow(&self) {
        let mut backoff = Backoff::new();
        let mut losses = 0;
        loop {
            let state = self.0.load(Ordering::Relaxed);
            if state & WRITER == 0 {
                // Claims it even while readers are in: they leave, and no more come.
                if self.weak_swap(state, state | WRITER).is_ok() {
                    return self.drain();
                }
                continue;
            }
            if backoff.spin() {
                continue;
            }
            match self.park_behind_writer(WANTS_EXCLUSIVE, losses) {
                Some(GRANTED_EXCLUSIVE) => return,
                Some(_) => {
                    losses += 1;
                    backoff.reset();
                }
                None => {}
            }
        }
    }

    /// Parks until a release, if there is a writer to wait for. `None`: look again.
    fn park_behind_writer(&self, wants: usize, losses: u32) -> Option<usize> {
        let state = self.0.load(Ordering::Relaxed);
        if state & WRITER == 0 {
            return None;
        }
        if state & PARKED == 0 && self.weak_swap(state, state | PARKED).is_err() {
            return None;
        }
        let token = wants | if losses >= MAX_LOSSES { IMPATIENT } else { 0 };
        let valid = || {
            let state = self.0.load(Ordering::Relaxed);
            state & (WRITER | PARKED) == WRITER | PARKED
        };
        match parking::park_with(self.key(), token, valid, None) {
            ParkResult::Unparked(token) => Some(token),
            ParkResult::Invalid | ParkResult::TimedOut => None,
        }
    }

    /// Having claimed the latch, waits until its readers are gone.
    fn drain(&self) {
        let mut backoff = Backoff::new();
        loop {
            let state = self.0.load(Ordering::Acquire);
            if state & READERS == 0 {
                if state & DRAINING != 0 {
                    self.0.fetch_and(!DRAINING, Ordering::Relaxed);
                }
                return;
            }
            if backoff.spin() {
                continue;
            }
            if state & DRAINING == 0 {
                self.0.fetch_or(DRAINING, Ordering::Relaxed);
            }
            let valid = || self.0.load(Ordering::Relaxed) & READERS != 0;
            parking::park(self.drain_key(), valid, None);
        }
    }

    #[cold]
    fn unlock_exclusive_slow(&self) {
        self.release_and_wake(0);
    }

    /// Clears WRITER, adds `readers` of our own, and wakes or grants whose turn it is.
    fn release_and_wake(&self, readers: u32) {
        let turn = Cell::new(Turn::default());
        let filter = |token: usize| {
            let (next, verdict) = turn.get().consider(token, readers == 0);
            turn.set(next);
            verdict
        };
        let callback = |unparked: Unparked| {
            let Turn { grant, readers: granted, .. } = turn.get();
            let mut keep = if unparked.more { PARKED } else { 0 };
            let mut add = readers;
            match grant {
                GRANTED_EXCLUSIVE => keep |= WRITER,
                GRANTED_SHARED => add += granted,
                _ => debug_assert_eq!(grant, COMPETE),
            }
            // While WRITER is set others can only set PARKED; and whoever has just done so looks
            // again under the queue's lock before it parks. DRAINING and readers are zero.
            let mut state = self.0.load(Ordering::Relaxed);
            loop {
                let new = (state & keep) + add;
                let swapped =
                    self.0.compare_exchange_weak(state, new, Ordering::Release, Ordering::Relaxed);
                match swapped {
                    Ok(_) => return grant,
                    Err(now) => state = now,
                }
            }
        };
        parking::unpark_filter(self.key(), filter, callback);
    }
}

/// Whom a release wakes.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// What the woken threads are told.
    grant: usize,
    /// How many readers are among them.
    readers: u32,
    /// Whether a writer is among them.
    writer: bool,
    /// Whether the head of the queue has been looked at.
    begun: bool,
}

impl Turn {
    /// Looks at the next thread in the queue.
    fn consider(mut self, token: usize, may_grant_exclusive: bool) -> (Self, Filter) {
        if self.writer {
            return (self, Filter::Stop);
        }
        let wants_exclusive = token & WANTS_EXCLUSIVE != 0;
        if !self.begun && token & IMPATIENT != 0 {
            if !wants_exclusive {
                self.grant = GRANTED_SHARED;
            } else if may_grant_exclusive {
                self.grant = GRANTED_EXCLUSIVE;
            }
        }
        self.begun = true;
        if wants_exclusive {
            self.writer = true;
        } else {
            self.readers += 1;
        }
        (self, Filter::Unpark)
    }
}

impl Default for Latch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
