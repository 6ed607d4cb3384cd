//! How a frame changes hands: claimed and taken away from its page, owned, given to the next page; and frames that are nobody's.
//! The state word's flags and invariants: [`super`].
//!
//! **Why a claim can be taken away.** A session that wants the page need not wait for the claimer, who may
//! have been descheduled. The claimer's number in the word makes its last step, CLAIMED by me to OWNED,
//! fail if its claim was taken away, though others may have claimed the frame since. (That the
//! same claimer may have claimed it again in the same batch does no harm: both claims are older than its barrier.)

use super::{
    CLAIMED, CLAIMER, CLAIMER_SHIFT, DAMAGED, DIRTY, Frame, NO_PAGE, OWNED, PINS, RETIRED, RawPin,
    WRITING,
};
use crate::ids::PageId;
use crate::pins::PinSlots;
use crate::translation::{ABSENT, absent_since};
use millpond_sync::atomic::{AtomicU64, Ordering, fence};
use millpond_sync::{mutant, ordering};

/// Who claims frames: a session, by its number, or the pool itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claimer(u16);

impl Claimer {
    /// The pool, when it discards a fork's pages. One thread at a time.
    pub(crate) const POOL: Self = Self(u16::MAX);

    /// A session. Its number is less than 65,534 (`PoolConfig::check`).
    pub(crate) fn session(number: usize) -> Self {
        debug_assert!(number < usize::from(u16::MAX), "session {number}");
        Self(number as u16)
    }

    fn mark(self) -> u64 {
        CLAIMED | u64::from(self.0) << CLAIMER_SHIFT
    }

    fn has_claimed(self, state: u64) -> bool {
        if mutant!("pool-claims-of-others") {
            return state & CLAIMED != 0;
        }
        state & (CLAIMED | CLAIMER) == self.mark()
    }
}

/// Why a frame could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTake {
    Pinned,
    Busy,
    Dirty,
    Damaged,
}

/// How a page leaves memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// To make room, at that time of the allocation clock. It is clean, so it can be loaded again.
    Evicted { now: u64 },
    /// The same, because its ring has come round. Nobody has judged it, or wanted it: its entry becomes what it was before.
    OutOfRing,
    /// For good, written or not.
    Discarded,
}

/// Whoever calls this is about to store to the bytes of a frame that somebody owns. What made its version odd may have been another
/// thread, from which the frame has come by a freelist, a load that was handed over, or a queue of reads; so that one's release fence
/// says nothing of this thread's stores, nor of those of a kernel that it calls. This one does: it pairs with the acquire fence
/// of `Version::validate`. Whoever has seen any of the bytes sees what this thread knows, and so that the version is odd.
#[inline]
pub(crate) fn fence_before_filling() {
    #[cfg(all(test, not(any(loom, shuttle))))]
    super::FENCED.with(|fenced| fenced.set(fenced.get() + 1));
    if !mutant!("pool-filling-without-fence") {
        fence(Ordering::Release);
    }
}

impl Frame {
    /// Claims an unpinned, clean frame.
    pub(crate) fn claim(&self, by: Claimer) -> Result<(), NoTake> {
        let refuse = |state: u64| {
            if state & PINS != 0 {
                Some(if state & WRITING != 0 { NoTake::Busy } else { NoTake::Pinned })
            } else if state & (OWNED | WRITING | CLAIMED) != 0 {
                Some(NoTake::Busy)
            } else if state & DAMAGED != 0 {
                Some(NoTake::Damaged)
            } else if state & DIRTY != 0 {
                Some(NoTake::Dirty)
            } else {
                None
            }
        };
        let claimed = self.update(|state| refuse(state).is_none().then_some(state | by.mark()));
        claimed.map(|_| ()).map_err(|state| refuse(state).unwrap_or(NoTake::Busy))
    }

    /// The same, if it holds `page`.
    pub(crate) fn claim_clean_from(&self, page: PageId, by: Claimer) -> Result<(), NoTake> {
        self.claim(by)?;
        self.keep_claim_if(page, by)
    }

    /// Claims the frame if it holds `page`, clean or not, damaged or not.
    pub(crate) fn claim_from(&self, page: PageId, by: Claimer) -> Result<(), NoTake> {
        let claimed = self.update(|state| {
            (state & (OWNED | CLAIMED | WRITING | PINS) == 0).then_some(state | by.mark())
        });
        match claimed {
            Ok(_) => self.keep_claim_if(page, by),
            Err(state) if state & (OWNED | CLAIMED | WRITING) == 0 => Err(NoTake::Pinned),
            Err(_) => Err(NoTake::Busy),
        }
    }

    /// Gives back a claim just made unless the frame holds `page`.
    fn keep_claim_if(&self, page: PageId, by: Claimer) -> Result<(), NoTake> {
        // Whoever takes the claim away and gives the frame to another page, makes owning it fail.
        if self.holds(page) {
            return Ok(());
        }
        self.unclaim(by);
        Err(NoTake::Busy)
    }

    /// Gives a claim back, unless it has been taken away; whether it was still there.
    pub(crate) fn unclaim(&self, by: Claimer) -> bool {
        let given = |state| by.has_claimed(state).then_some(state & !(CLAIMED | CLAIMER));
        self.update(given).is_ok()
    }

    /// Takes a claimed frame away from its page: the page's entry becomes absent. `false`: the claim was
    /// taken away, or the page has been changed or is being written; a claim that remains is given back.
    /// The caller has made a heavy barrier since the claim, and found the latch free and no session's pin.
    pub(crate) fn own(&self, by: Claimer, leaves: Leaves) -> bool {
        let (not_now, absent) = match leaves {
            Leaves::Evicted { now } => {
                let busy = if mutant!("pool-own-pinned") { WRITING } else { PINS | WRITING };
                let dirty = if mutant!("pool-own-dirty") { DAMAGED } else { DIRTY | DAMAGED };
                (busy | dirty, absent_since(now))
            }
            Leaves::OutOfRing => (PINS | WRITING | DIRTY | DAMAGED, self.own.entry.before()),
            Leaves::Discarded => (PINS | WRITING, ABSENT),
        };
        let owned =
            self.update(|state| (by.has_claimed(state) && state & not_now == 0).then_some(OWNED));
        match owned {
            Ok(_) => self.empty(absent),
            Err(_) => {
                self.unclaim(by);
            }
        }
        owned.is_ok()
    }

    /// Makes a frame that was never used an owned one without a page.
    pub(crate) fn begin_life(&self) {
        if !self.read.version.is_changing() {
            self.read.version.write_begin();
        }
        self.read.tag.store(NO_PAGE, Ordering::Relaxed);
        self.read.state.store(OWNED, Ordering::Release);
    }

    /// Retires an owned frame: it is nobody's until it comes back.
    pub(crate) fn retire(&self) {
        self.read.state.store(OWNED | RETIRED, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.read.state.load(Ordering::Acquire) & RETIRED != 0
    }

    /// Makes a retired frame the caller's; whether it was retired, and not another's to bring back.
    pub(crate) fn come_back(&self) -> bool {
        let (order, failed) = (Ordering::Acquire, Ordering::Relaxed);
        self.read.state.compare_exchange(OWNED | RETIRED, OWNED, order, failed).is_ok()
    }

    /// The owner is about to store to the frame's bytes.
    #[inline]
    pub(crate) fn before_filling(&self) {
        debug_assert!(self.read.version.is_changing(), "optimistic readers are kept out");
        fence_before_filling();
    }

    /// Whether somebody owns the frame, who may lend its memory: optimistic readers are kept out.
    pub(crate) fn may_be_lent(&self) -> bool {
        self.state() == OWNED && self.read.version.is_changing()
    }

    /// Gives up an owned frame for good: a device may still write to its memory. Nobody gets it, and nobody waits for it, as for
    /// one whose page is damaged.
    pub(crate) fn lose(&self) {
        self.read.tag.store(NO_PAGE, Ordering::Relaxed);
        self.read.state.store(OWNED | DAMAGED, Ordering::Release);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state() & (OWNED | DAMAGED) == OWNED | DAMAGED
    }

    /// Having taken the frame: keeps optimistic readers out and makes the entry of its page `absent`.
    fn empty(&self, absent: u64) {
        // A damaged page's version is odd already.
        if !self.read.version.is_changing() {
            self.read.version.write_begin();
        }
        self.own.entry.make_absent(absent);
    }

    /// Gives an owned frame to a page. It must be pinned until the entry is resident: announced as such by
    /// the caller's session before, or by raw pins. `before`: what the entry was while the page was absent.
    fn publish(&self, page: PageId, (entry, before): (&AtomicU64, u64), usage: u8, raw_pins: u64) {
        debug_assert!(self.state() == OWNED, "published by who doesn't own it");
        self.own.entry.set(entry, before);
        self.read.tag.store(page.raw(), Ordering::Relaxed);
        self.read.usage.store(usage, Ordering::Relaxed);
        // In this order. Somebody may have seen the entry when the page was here before: he can pin and change it once it isn't owned,
        // and this must not end his change. An optimistic reader who comes in between is right: the page is whole.
        if mutant!("pool-publish-state-before-version") {
            self.read.state.store(raw_pins, Ordering::Release);
            return self.read.version.write_end();
        }
        self.read.version.write_end();
        self.read.state.store(raw_pins, ordering!("pool-publish-relaxed", Release));
    }

    /// Gives an owned frame to a page, which the session of these slots has pinned.
    pub(crate) fn publish_pinned(
        &self,
        number: u32,
        slots: &PinSlots,
        page: PageId,
        entry: (&AtomicU64, u64),
        usage: u8,
    ) {
        if !mutant!("pool-publish-before-pin") {
            slots.add(number);
        }
        self.publish(page, entry, usage, 0);
        if mutant!("pool-publish-before-pin") {
            slots.add(number);
        }
    }

    /// Gives an owned frame to a page that no session has asked for. The pin keeps it until its
    /// entry is resident.
    pub(crate) fn publish_kept(
        &self,
        page: PageId,
        entry: (&AtomicU64, u64),
        usage: u8,
    ) -> RawPin<'_> {
        if mutant!("pool-publish-without-raw-pin") {
            self.publish(page, entry, usage, 0);
            return RawPin(None);
        }
        self.publish(page, entry, usage, 1);
        RawPin(Some(self))
    }
}
