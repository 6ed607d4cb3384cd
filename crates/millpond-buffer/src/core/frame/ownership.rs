//! How a frame and its page change. The frame is claimed, taken from its page, owned, and given to
//! the next page. The page is changed. Also frames that are retired or lost, and pins of no
//! session. For the state word's flags and invariants see [`super`].
//!
//! **Why a claim can be taken away.** A session that wants the page need not wait for the claimer,
//! which may have been descheduled. The claimer's last step is from "CLAIMED by me" to OWNED. It
//! fails if the claim was taken away, even if others have claimed the frame since, because the word
//! has the claimer's number. (The same claimer may have claimed the frame again in the same batch.
//! That is safe: both claims are older than its barrier.)
//!
//! [`Change`] is a change of a page: what it does to the state word and the version of the page's
//! frame. The caller holds the frame's exclusive latch, and does the following ([`super`] has the
//! state):
//!
//! 1. [`Change::begin`] sets DIRTY. The log record does not exist yet, so a checkpoint that starts
//!    after the record finds the page dirty.
//! 2. [`Change::writes`], before the first store to the page, makes the version odd. That keeps
//!    optimistic readers out.
//! 3. [`Change::end`] makes the version even. The page is whole.
//!
//! A change that has stored nothing leaves the version as it is. Its caller may clear DIRTY again
//! ([`Change::leaves_it_clean`]). A change that has stored something and does not end leaves the
//! version odd. By that, the holder of the latch notices it, and marks the page as damaged
//! (`guard.rs`, `guard/change.rs`).

use super::{
    CHECKPOINT, CLAIMED, CLAIMER, CLAIMER_SHIFT, DAMAGED, DIRTY, Frame, NO_PAGE, NoPin, OWNED,
    PINS, RETIRED, WRITING,
};
use crate::arena::fence_before_filling;
use crate::core::page_table::{ABSENT, absent_since};
use crate::ids::PageId;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::{mutant, ordering};

/// A claimer of frames: a session, by its number, or the pool itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claimer(u16);

impl Claimer {
    /// The pool, when it discards a fork's pages. Only one thread at a time does so.
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
    /// Evicted, at this time of the allocation clock. It is clean, so it can be loaded again.
    Evicted { now: u64 },
    /// Evicted, clean, because its ring has come round. The policy has not judged the page, so its
    /// entry becomes what it was before.
    OutOfRing,
    /// Discarded for good, dirty or not.
    Discarded,
}

/// A pin that belongs to no session. The frame's state counts it; dropping this gives it back.
pub(crate) struct RawPin<'a>(Option<&'a Frame>);

impl<'a> RawPin<'a> {
    /// Takes over a pin that was handed over.
    pub(crate) fn resume(frame: &'a Frame) -> Self {
        Self(Some(frame))
    }
}

impl Drop for RawPin<'_> {
    #[inline]
    fn drop(&mut self) {
        let Some(frame) = self.0 else { return };
        let before = frame.read.state.fetch_sub(1, ordering!("pool-raw-unpin-relaxed", Release));
        debug_assert!(before & PINS != 0, "unpinned too often");
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
        // If another session took the claim away and the frame went to another page, owning it
        // fails.
        if self.holds(page) {
            return Ok(());
        }
        self.unclaim(by);
        Err(NoTake::Busy)
    }

    /// Gives a claim back, unless it has been taken away. Returns whether it was still there.
    pub(crate) fn unclaim(&self, by: Claimer) -> bool {
        let given = |state| by.has_claimed(state).then_some(state & !(CLAIMED | CLAIMER));
        self.update(given).is_ok()
    }

    /// Takes a claimed frame from its page, whose entry becomes absent. `false`: the claim was
    /// taken away, or the page has been changed or is being written; a claim that remains is given
    /// back. The caller has made a heavy barrier since the claim, and has then found the latch free
    /// and no session's pin.
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

    /// Turns a frame that was never used into an owned one without a page.
    pub(crate) fn begin_life(&self) {
        if !self.read.version.is_changing() {
            self.read.version.write_begin();
        }
        self.read.tag.store(NO_PAGE, Ordering::Relaxed);
        self.read.state.store(OWNED, Ordering::Release);
    }

    /// Retires an owned frame: no thread uses it until it comes back.
    pub(crate) fn retire(&self) {
        self.read.state.store(OWNED | RETIRED, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.read.state.load(Ordering::Acquire) & RETIRED != 0
    }

    /// Makes a retired frame the caller's. `false`: it was not retired, or another thread has
    /// brought it back.
    pub(crate) fn come_back(&self) -> bool {
        let (order, failed) = (Ordering::Acquire, Ordering::Relaxed);
        self.read.state.compare_exchange(OWNED | RETIRED, OWNED, order, failed).is_ok()
    }

    /// Call this before the owner stores to the frame's bytes.
    #[inline]
    pub(crate) fn before_filling(&self) {
        debug_assert!(self.read.version.is_changing(), "optimistic readers are kept out");
        fence_before_filling();
    }

    /// Whether the frame is owned and optimistic readers are kept out, so that its memory may be
    /// lent.
    pub(crate) fn may_be_lent(&self) -> bool {
        self.state() == OWNED && self.read.version.is_changing()
    }

    /// Gives up an owned frame for good, because a device may still write to its memory. No session
    /// gets it or waits for it, as with a frame whose page is damaged.
    pub(crate) fn lose(&self) {
        self.read.tag.store(NO_PAGE, Ordering::Relaxed);
        self.read.state.store(OWNED | DAMAGED, Ordering::Release);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state() & (OWNED | DAMAGED) == OWNED | DAMAGED
    }

    /// Empties a frame just owned: keeps optimistic readers out and makes its page's entry
    /// `absent`.
    fn empty(&self, absent: u64) {
        // A damaged page's version is odd already.
        if !self.read.version.is_changing() {
            self.read.version.write_begin();
        }
        self.own.entry.make_absent(absent);
    }

    /// Gives an owned frame to a page. The frame must be pinned until the entry is resident: the
    /// caller's session has announced a pin before, or `raw_pins` is not 0. `before`: the entry's
    /// value while the page was absent.
    pub(crate) fn publish(
        &self,
        page: PageId,
        (entry, before): (&AtomicU64, u64),
        usage: u8,
        raw_pins: u64,
    ) {
        debug_assert!(self.state() == OWNED, "only the owner may publish a frame");
        self.own.entry.set(entry, before);
        self.read.tag.store(page.raw(), Ordering::Relaxed);
        self.read.usage.store(usage, Ordering::Relaxed);
        // The version first, then the state. A session may have seen the entry when the page was
        // here before. It can pin and change the page once the frame isn't OWNED, and this
        // `write_end` must not end its change. An optimistic reader in between is safe: the page is
        // whole.
        if mutant!("pool-publish-state-before-version") {
            self.read.state.store(raw_pins, Ordering::Release);
            return self.read.version.write_end();
        }
        self.read.version.write_end();
        self.read.state.store(raw_pins, ordering!("pool-publish-relaxed", Release));
    }

    /// Pins the frame, whatever it holds, by a count in its state. A claim stays in place, but its
    /// claimer will fail to own the frame.
    #[inline]
    pub(crate) fn pin_any(&self) -> Result<RawPin<'_>, NoPin> {
        let pinned = self.update(|state| (state & (OWNED | DAMAGED) == 0).then_some(state + 1));
        match pinned {
            Ok(_) => Ok(RawPin(Some(self))),
            Err(state) if state & OWNED != 0 => Err(NoPin::Changed),
            Err(_) => Err(NoPin::Damaged),
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

impl Frame {
    /// Marks the page dirty; returns whether it was clean. The caller holds the exclusive latch. A
    /// page that is being written does not count as clean, so that the caller does not take the
    /// mark back. If the write fails, the page must be as dirty as before.
    #[inline]
    pub(crate) fn mark_dirty(&self) -> bool {
        if self.read.state.load(Ordering::Relaxed) & DIRTY != 0 {
            return false;
        }
        self.read.state.fetch_or(DIRTY, Ordering::AcqRel) & (DIRTY | WRITING) == 0
    }

    /// Takes back [`Frame::mark_dirty`]. The caller holds the exclusive latch and has changed
    /// nothing.
    pub(crate) fn unmark_dirty(&self) {
        self.read.state.fetch_and(!(DIRTY | CHECKPOINT), Ordering::AcqRel);
    }

    pub(crate) fn mark_damaged(&self) {
        self.read.state.fetch_or(DAMAGED, Ordering::AcqRel);
    }
}

/// A change of the page in a frame, under the frame's exclusive latch. A change that does not end
/// leaves the version odd.
pub(crate) struct Change<'f> {
    frame: &'f Frame,
    was_clean: bool,
    has_written: bool,
}

/// What the first store of a change found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Optimistic readers are kept out from now on, or since an earlier store of this change.
    KeptOut,
    /// An earlier change under this latch keeps them out, and has not ended.
    KeptOutByAnother,
}

impl<'f> Change<'f> {
    /// Marks the page dirty.
    #[inline]
    pub(crate) fn begin(frame: &'f Frame) -> Self {
        Self { frame, was_clean: frame.mark_dirty(), has_written: false }
    }

    /// Whether the page was clean before, and nothing has been stored since.
    #[inline]
    pub(crate) fn leaves_it_clean(&self) -> bool {
        self.was_clean && !self.has_written
    }

    /// Whether the change may have stored anything.
    #[inline]
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Call this before a store to the page.
    #[inline]
    pub(crate) fn writes(&mut self) -> Readers {
        if self.has_written {
            return Readers::KeptOut;
        }
        self.has_written = true;
        let version = &self.frame.read.version;
        if version.is_changing() {
            return Readers::KeptOutByAnother;
        }
        version.write_begin();
        Readers::KeptOut
    }

    /// Ends a change that has stored something: the page is whole, and optimistic readers may read
    /// it.
    #[inline]
    pub(crate) fn end(&self) {
        self.frame.read.version.write_end();
    }
}
