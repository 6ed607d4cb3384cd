//! Waiting in a loop for what another thread is about to do: a pause for the processor, and a
//! [`Backoff`] that spins, then yields, then sleeps.

/// Tells the processor (or the model checker's scheduler) that this is a busy wait.
#[inline]
pub fn spin_loop() {
    #[cfg(not(any(loom, shuttle, miri)))]
    if !crate::scheduler::yield_now() {
        std::hint::spin_loop();
    }
    #[cfg(any(loom, shuttle, miri))]
    crate::thread::yield_now();
}

/// A wait that spins at first and then lets other threads run.
#[derive(Debug)]
pub struct Backoff {
    round: u32,
    rounds: u32,
    yields: u32,
}

/// Rounds of spinning before a waiter yields: 1 + 2 + .. + 32 pauses. The latch has its own number.
const SPIN_ROUNDS: u32 = 6;

/// The number of yields before a waiter sleeps, and the length of one sleep.
#[cfg(not(any(loom, shuttle, miri)))]
const YIELDS: u32 = 64;
#[cfg(not(any(loom, shuttle, miri)))]
const NAP: std::time::Duration = std::time::Duration::from_micros(50);

impl Backoff {
    /// A wait that starts.
    #[must_use]
    pub const fn new() -> Self {
        Self::up_to(SPIN_ROUNDS)
    }

    /// A wait with `rounds` rounds of spinning, each twice as long as the last. (Models have none.)
    #[must_use]
    pub const fn up_to(rounds: u32) -> Self {
        let rounds = if cfg!(any(loom, shuttle, miri)) { 0 } else { rounds };
        Self { round: 0, rounds, yields: 0 }
    }

    /// Waits a little. Returns `false` at once when the caller should park instead.
    #[inline]
    pub fn spin(&mut self) -> bool {
        if self.round >= self.rounds {
            return false;
        }
        for _ in 0..1u32 << self.round {
            spin_loop();
        }
        self.round += 1;
        true
    }

    /// Waits a little, for a condition on which a thread can't park: spins, then yields, then
    /// sleeps. If the awaited thread has a lower priority, it may run only while this one sleeps.
    #[inline]
    pub fn snooze(&mut self) {
        if !self.spin() {
            self.yield_processor();
        }
    }

    #[cold]
    fn yield_processor(&mut self) {
        #[cfg(not(any(loom, shuttle, miri)))]
        if self.yields >= YIELDS {
            return std::thread::sleep(NAP);
        }
        self.yields = self.yields.saturating_add(1);
        crate::thread::yield_now();
    }

    /// Starts the wait anew.
    #[inline]
    pub fn reset(&mut self) {
        (self.round, self.yields) = (0, 0);
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}
