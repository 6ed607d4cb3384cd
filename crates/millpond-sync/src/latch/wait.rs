//! The latch's slow paths: waiting, and waking the threads whose turn it is.

use std::cell::Cell;

use super::turn::Turn;
use super::word::{DRAINING, FULL, PARKED, READERS, WOKEN, WRITER};
use super::{
    COMPETE, COMPETE_FOR_ALL, GRANTED, IMPATIENT, Latch, MAX_LOSSES, MAX_READERS, WANTS_EXCLUSIVE,
};
use crate::atomic::Ordering;
use crate::hint::Backoff;
use crate::parking::{self, ParkResult, Unparked};
use crate::{mutant, ordering};

/// How long a waiter spins before it parks: 1 + 2 + .. + 128 pauses. That is three microseconds
/// where a pause takes 12 ns, less than parking and waking take. (docs/measurements compares the
/// latch with others at this number.)
const SPIN_ROUNDS: u32 = 8;

impl Latch {
    /// Takes it shared, waiting. `losses` is how often the caller has been woken without getting
    /// the latch. Returns that number at the end.
    #[cold]
    pub(crate) fn wait_shared(&self, mut losses: u32) -> u32 {
        let mut backoff = Backoff::up_to(SPIN_ROUNDS);
        loop {
            if self.try_shared() {
                return losses;
            }
            self.check_room();
            if backoff.spin() {
                continue;
            }
            match self.park_behind_writer(0, losses, &mut 0) {
                Waited::Granted => return losses,
                Waited::Woken => {
                    losses += 1;
                    backoff.reset();
                }
                Waited::Changed => {}
            }
        }
    }

    /// Panics if the latch is full of readers and has no writer.
    fn check_room(&self) {
        let state = self.0.load(Ordering::Relaxed);
        assert!(
            state & (WRITER | FULL) != FULL,
            "a latch is held shared by {MAX_READERS}: guards have been forgotten"
        );
    }

    /// Takes it exclusively, in the same way.
    ///
    /// A woken writer owes something to the threads still parked (rule 2). While `token` is WOKEN,
    /// releases rely on the caller to take the latch and release it. The caller gives WOKEN up in
    /// one of two swaps. One is the swap with which it takes the latch. The other is a swap while
    /// another thread has WRITER set; that thread's release will then look at the queue.
    #[cold]
    pub(crate) fn wait_exclusive(&self, mut losses: u32) -> u32 {
        let mut backoff = Backoff::up_to(SPIN_ROUNDS);
        let mut token = 0;
        loop {
            let state = self.0.load(Ordering::Relaxed);
            if state & WRITER == 0 {
                // Claims the latch even while readers hold it: they leave, and no more come.
                let given_up = if mutant!("latch-claim-keeps-token") { 0 } else { token };
                if self.0.take(state, (state | WRITER) & !given_up).is_ok() {
                    self.drain();
                    return losses;
                }
                continue;
            }
            if backoff.spin() {
                continue;
            }
            match self.park_behind_writer(WANTS_EXCLUSIVE, losses, &mut token) {
                Waited::Granted => {
                    self.drain();
                    return losses;
                }
                Waited::Woken => {
                    losses += 1;
                    backoff.reset();
                }
                Waited::Changed => {}
            }
        }
    }

    /// Parks until a release, if there is a writer to wait for.
    fn park_behind_writer(&self, wants: usize, losses: u32, token: &mut u32) -> Waited {
        let state = self.0.load(Ordering::Relaxed);
        let marked = (state | PARKED) & !*token;
        let is_marked =
            state & WRITER != 0 && (state == marked || self.0.take(state, marked).is_ok());
        if is_marked {
            *token = 0;
            let who = wants | if losses >= MAX_LOSSES { IMPATIENT } else { 0 };
            match parking::park_as(self.key(), who, || self.is_marked()) {
                ParkResult::Unparked(GRANTED) => return Waited::Granted,
                ParkResult::Unparked(woken) => {
                    debug_assert!(who & IMPATIENT == 0, "overtaken too often");
                    if woken == COMPETE_FOR_ALL && wants == WANTS_EXCLUSIVE {
                        *token = WOKEN;
                    }
                    return Waited::Woken;
                }
                // The writer has left: look again.
                _ => {}
            }
        }
        Waited::Changed
    }

    /// Whether a thread may park behind a writer: there is one, and its release will look at the
    /// queue. A thread that parks asks again under the queue's lock.
    pub(super) fn is_marked(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (WRITER | PARKED) == WRITER | PARKED
    }

    /// Waits until the readers of a latch that the caller has claimed have left.
    pub(super) fn drain(&self) {
        let mut backoff = Backoff::up_to(SPIN_ROUNDS);
        loop {
            let state = self.0.load(ordering!("latch-drain-relaxed", Acquire));
            if state & READERS == 0 {
                if state & DRAINING != 0 {
                    self.0.clear(DRAINING);
                }
                return;
            }
            if !backoff.spin() {
                self.park_drainer();
            }
        }
    }

    /// Parks until the last reader leaves. Looks for readers under the queue's lock, with DRAINING
    /// set.
    pub(super) fn park_drainer(&self) -> ParkResult {
        if self.0.load(Ordering::Relaxed) & DRAINING == 0 {
            self.0.set(DRAINING);
        }
        let readers = || self.0.load(Ordering::Relaxed) & READERS != 0;
        parking::park(self.drain_key(), readers, None)
    }

    /// Gives up WRITER and adds `stay` readers (the caller). Then it wakes the threads whose turn
    /// it is, or grants them the latch.
    #[cold]
    pub(super) fn release_and_wake(&self, stay: u32) {
        let mut state = self.0.load(Ordering::Relaxed);
        while state & WOKEN != 0 {
            // A writer has been woken and has not looked yet. Waking more threads would cost this
            // thread a system call each time, and they would only find each other.
            match self.0.give(state, (state & !(WRITER | DRAINING)) + stay) {
                Ok(()) => return,
                Err(now) => state = now,
            }
        }
        let turn = Cell::new(Turn::default());
        let filter = |token: usize| {
            let (next, verdict) = turn.get().consider(token);
            turn.set(next);
            verdict
        };
        let callback = |unparked: Unparked| {
            let turn = turn.get();
            // While WRITER is set, others can only set PARKED. A thread that set it looks again
            // under the queue's lock before it parks.
            let mut state = self.0.load(Ordering::Relaxed);
            loop {
                let new = turn.released(state, stay, unparked.more);
                match self.0.give(state, new) {
                    Ok(()) if turn.grant => return GRANTED,
                    Ok(()) if unparked.more => return COMPETE_FOR_ALL,
                    Ok(()) => return COMPETE,
                    Err(now) => state = now,
                }
            }
        };
        parking::unpark_filter(self.key(), filter, callback);
    }
}

/// How a wait behind a writer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waited {
    /// The caller has the latch; an exclusive caller may still have to wait for readers.
    Granted,
    /// The caller was woken and tries again.
    Woken,
    /// There was nothing to wait for, or the state changed meanwhile: the caller looks again.
    Changed,
}
