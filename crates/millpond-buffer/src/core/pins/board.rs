//! The pin slots of all sessions, for sessions that take frames. (Protocol: see [`super`].)

use super::PinSlots;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use millpond_sync::{audit, mutant};
use std::sync::{Arc, OnceLock};

/// All sessions' pins.
pub(crate) struct PinBoard {
    barriers: Barriers,
    sessions: Box<[OnceLock<Arc<PinSlots>>]>,
    /// No session with this number or a higher one has ever existed.
    used: AtomicUsize,
    /// How often the kernel refused the heavy barrier.
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

    /// The slots of a session that begins. The last session with this number has left them empty.
    pub(crate) fn slots(&self, session: usize) -> Arc<PinSlots> {
        let slots = || audit::session_owned("pins", || Arc::new(PinSlots::new(self.barriers)));
        let slots = self.sessions[session].get_or_init(slots);
        self.used.fetch_max(session + 1, Ordering::SeqCst);
        slots.clone()
    }

    /// Calls `each` for the latched ones of the `claimed` frames, and then for every pinned frame,
    /// once per session that has it pinned. The call misses no frame that is in use from before the
    /// heavy barrier until the call ends: by a latch, by a pin, or first by the one and then by the
    /// other. It may report others, too. `false`: the kernel refused the barrier.
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
            // Latches first: a holder publishes the pin that replaces its latch before the release.
            claimed.iter().copied().filter(|frame| is_latched(*frame)).for_each(&mut each);
            self.scan(each);
        }
        ordered
    }

    /// The heavy barrier. `false`: the kernel refused it.
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

    /// A system that refuses once refuses each time that a session needs a frame. So only the
    /// first, second, fourth, eighth, ... refusal is logged.
    #[cold]
    fn complain(&self) {
        let times = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        if times.is_power_of_two() {
            tracing::error!(times, "the kernel refused membarrier, so no page can be evicted");
        }
    }

    /// Scans without the barrier: it may miss pins that were just announced.
    pub(crate) fn scan(&self, mut each: impl FnMut(u32)) {
        let used = self.used.load(Ordering::SeqCst);
        for slots in self.sessions[..used].iter().filter_map(OnceLock::get) {
            slots.scan(&mut each);
        }
    }
}
