//! Pins against evictors: how a session pins a page, and how an evictor sees all sessions' pins.
//!
//! **Pin against eviction** (rule 12). Each side announces and then looks ([`Barriers`]):
//!
//! ```text
//! session                             evictor, for a batch of frames
//! slot := frame                       each state := CLAIMED by me (compare-and-swap)
//! light barrier                       heavy barrier, one for the batch
//! state CLAIMED or OWNED,             any slot with the frame?
//!   or another tag?                     give the frame back
//!   step back, or take the claim away
//! ```
//!
//! Either the session sees the claim, or the evictor sees the pin. If a session announces a pin and
//! then finds the frame unclaimed, every later claimer sees the slot. So no session can take the
//! frame until the slot is empty.
//!
//! A shared latch is such an announcement, too (rule 13). To replace it by a pin, its holder stores
//! the slot first and then releases the latch. The evictor looks at the latch first (acquire) and
//! then at the slots. So an evictor that finds the latch free finds the slot.

use super::{Added, PinSlots};
use crate::core::frame::{Frame, NoPin};
use crate::ids::PageId;
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
    /// heavy barrier until the call ends. The use may be a latch, a pin, or first the one and then
    /// the other. It may report others, too. `false`: the kernel refused the barrier.
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

impl PinSlots {
    /// Pins a page that seems to be in a frame: announces the pin, and then looks whether the frame
    /// still has the page (rule 12).
    #[inline]
    pub(crate) fn pin(&self, number: u32, frame: &Frame, page: PageId) -> Result<Added, NoPin> {
        let pinned = match self.add(number) {
            Added::First => frame.admit(page).map(|()| Added::First),
            // A pinned frame keeps its page, so an entry seen now is up to date. But the caller may
            // have read the entry before the pin.
            Added::Again if mutant!("pool-second-pin-without-tag") || frame.holds(page) => {
                return Ok(Added::Again);
            }
            Added::Again => Err(NoPin::Changed),
        };
        if pinned.is_err() {
            self.remove(number);
        }
        pinned
    }

    /// Gives an owned frame to a page, and pins it for this session. `entry`: the page's entry, and
    /// its value while the page was absent.
    pub(crate) fn publish(
        &self,
        number: u32,
        frame: &Frame,
        page: PageId,
        entry: (&AtomicU64, u64),
        usage: u8,
    ) {
        if !mutant!("pool-publish-before-pin") {
            self.add(number);
        }
        frame.publish(page, entry, usage, 0);
        if mutant!("pool-publish-before-pin") {
            self.add(number);
        }
    }

    /// Releases the shared latch of a page's frame and keeps the page by a pin (rule 13): a new
    /// one, unless it `is_pinned` already. Calls `frame` after adding the pin.
    #[inline(always)]
    pub(crate) fn unlatch<'f>(
        &self,
        number: u32,
        is_pinned: bool,
        frame: impl FnOnce() -> &'f Frame,
    ) {
        // The pin first: an evictor looks at latches and then at pins.
        if !is_pinned && !mutant!("pool-unlatch-before-pin") {
            self.add(number);
        }
        frame().latch().unlock_shared();
        if !is_pinned && mutant!("pool-unlatch-before-pin") {
            self.add(number);
        }
    }
}
