//! The slots of all sessions, as whoever wants to take frames looks at them. (The protocol is described in [`super`].)

use super::PinSlots;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use millpond_sync::{audit, mutant};
use std::sync::{Arc, OnceLock};

/// All sessions' pins.
pub(crate) struct PinBoard {
    barriers: Barriers,
    sessions: Box<[OnceLock<Arc<PinSlots>>]>,
    /// Sessions from here on have never existed.
    used: AtomicUsize,
    /// How often the barrier could not be had.
    refused: AtomicU64,
    #[cfg(test)]
    pub(crate) refuse: std::sync::atomic::AtomicBool,
}

impl PinBoard {
    pub(crate) fn new(max_sessions: usize, barriers: Barriers) -> Self {
        Self {
            barriers,
            sessions: (0..max_sessions).map(|_| OnceLock::new()).collect(),
            used: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            #[cfg(test)]
            refuse: false.into(),
        }
    }

    /// The slots of a session that begins. The session that had the number before has left them empty.
    pub(crate) fn slots(&self, session: usize) -> Arc<PinSlots> {
        let slots = || audit::session_owned("pins", || Arc::new(PinSlots::new(self.barriers)));
        let slots = self.sessions[session].get_or_init(slots);
        self.used.fetch_max(session + 1, Ordering::SeqCst);
        slots.clone()
    }

    /// Calls `each` for those of the `claimed` frames that are latched, and then for every pinned frame, once per session
    /// that has it pinned: for each that is in use since before the call's heavy barrier and still is when the call ends,
    /// whether by its latch or by a pin or first by the one and then by the other, and perhaps for others. `false`: the
    /// barrier could not be had.
    #[must_use]
    pub(crate) fn look(
        &self,
        claimed: &[u32],
        is_latched: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32),
    ) -> bool {
        let ordered = self.barrier();
        if ordered {
            if mutant!("pool-look-at-pins-before-latches") {
                self.scan(&mut each);
                claimed.iter().copied().filter(|frame| is_latched(*frame)).for_each(each);
                return ordered;
            }
            // Latches first: who gives one back and keeps the page publishes the pin before.
            claimed.iter().copied().filter(|frame| is_latched(*frame)).for_each(&mut each);
            self.scan(each);
        }
        ordered
    }

    /// The heavy barrier. `false`: it could not be had.
    pub(crate) fn barrier(&self) -> bool {
        let ordered = !self.is_refused() && self.barriers.heavy();
        if !ordered {
            self.complain();
        }
        ordered
    }

    #[cfg(test)]
    fn is_refused(&self) -> bool {
        self.refuse.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[cfg(not(test))]
    fn is_refused(&self) -> bool {
        false
    }

    /// A system that refuses once will refuse each time that somebody needs a frame: the log hears of it at the first,
    /// second, fourth, eighth .. time.
    #[cold]
    fn complain(&self) {
        let times = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        if times.is_power_of_two() {
            tracing::error!(times, "no memory barrier to be had: no page can leave memory");
        }
    }

    /// The same without the barrier: pins just announced may be missed.
    pub(crate) fn scan(&self, mut each: impl FnMut(u32)) {
        let used = self.used.load(Ordering::SeqCst);
        for slots in self.sessions[..used].iter().filter_map(OnceLock::get) {
            slots.scan(&mut each);
        }
    }
}
