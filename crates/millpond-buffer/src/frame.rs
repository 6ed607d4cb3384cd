//! Frame descriptors and their state words.
//!
//! A descriptor has two cache lines: what optimistic readers and pinners load (version, tag, state, usage
//! count), which in steady use nobody writes, and the latch with what only owners need. Pins are not
//! counted here but published in slots of the sessions' own ([`crate::pins`]).
//!
//! ```text
//! state  63   48 47     32   31        30        29       28      27       26         25        24    23        0
//!       +-------+---------+---------+---------+---------+-------+--------+---------+------------+-------+----------+
//!       | unused| claimer | RETIRED | CLAIMED | DAMAGED | OWNED | WAITED | WRITING | CHECKPOINT | DIRTY | raw pins |
//!       +-------+---------+---------+---------+---------+-------+--------+---------+------------+-------+----------+
//! ```
//!
//! | flag | meaning | set by | cleared by |
//! |---|---|---|---|
//! | DIRTY | the page differs from the store's | who begins a change, under the exclusive latch | who copies it out to write it, under the shared latch (set again if the write fails); who takes back a change that wrote nothing, or discards the page |
//! | CHECKPOINT | it was dirty when a checkpoint began | the checkpoint | with DIRTY, or with WRITING |
//! | WRITING | a copy of it is on its way to the store | the writer, who keeps it pinned | the writer |
//! | WAITED | somebody is parked until WRITING ends | the waiter | the writer |
//! | OWNED | it holds nobody's page: free, or being emptied or filled by one owner | its claimer, having found no pin | the owner when it publishes a page |
//! | DAMAGED | a change of it was interrupted half-way; it is never written. Besides OWNED: a device may still fill it; it is never used | the guard of the change; who gives up a read | who discards the page; of a lost frame nobody |
//! | RETIRED | besides OWNED: the pool has become smaller, and the frame is beyond its size | who makes it smaller, or frees a frame beyond its size | who makes it larger again, or gives up making it smaller; who finds that it is |
//! | CLAIMED | *claimer* will take it, unless somebody turns out to have it pinned | the claimer, from an unpinned state | the claimer; or a session that pins it |
//!
//! Raw pins are those of write-backs and of loads that belong to no session.
//!
//! Invariants:
//!
//! - While OWNED, only the owner changes the word, tag, version and entry, and the version is odd until the page that comes is whole.
//! - While not OWNED, the version is odd only during a change, under the exclusive latch, or if DAMAGED: so who publishes makes
//!   it even first, since whoever has believed all along that the page is here may pin, latch and change it as soon as OWNED is gone.
//! - An unowned frame has a tag, and the entry of that page says "resident in this frame" (or LOADING still, as long as who publishes has it pinned). Only who turns
//!   the frame from unowned to owned may change that entry (rule 3).
//! - A frame goes from unowned to owned only through CLAIMED, by its claimer, who after claiming has made a
//!   heavy barrier and then seen its latch free and no session's slot with it (rules 12 and 13). Until then a claim changes nothing:
//!   the page can be read, changed and written, and pinned by who takes the claim away.
//! - A pinned frame keeps its tag, and so does one whose latch is held by who has looked at the state since.
//! - Anybody may hold the latch of an owned frame shared, for a moment: who believed that it had a page that has left.
//!
//! The **usage** byte has the count in its low half and, plus one, what the count was when the sweep's hand
//! first met the page since its last use in its high half (0: not yet), which is written only along with the count. The **link**
//! of a free frame is the freelist's; while the frame holds a page it is the time when that came. What the page's entry was
//! before is kept with the reference to that.
//!
//! **Memory ordering.** Publishing is a release store of the state; pinning acquires it, so a pinner
//! sees the version, tag and bytes that were published. Unpinning is a release store to a slot, which claimers
//! acquire, so an evictor has seen the last of the pinners' accesses; latches likewise. Pin against claim: [`crate::pins`].

mod change;
mod ownership;

pub(crate) use self::change::{Change, Readers};
pub(crate) use self::ownership::{Claimer, Leaves, NoTake, fence_before_filling};
use crate::ids::PageId;
use crate::overdue;
use crate::policy;
use crate::translation::EntryRef;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU8, AtomicU64, Ordering};
use millpond_sync::latch::{Latch, Version};
use millpond_sync::{mutant, ordering, parking};

pub(crate) const PINS: u64 = (1 << 24) - 1;
pub(crate) const DIRTY: u64 = 1 << 24;
pub(crate) const CHECKPOINT: u64 = 1 << 25;
pub(crate) const WRITING: u64 = 1 << 26;
pub(crate) const WAITED: u64 = 1 << 27;
pub(crate) const OWNED: u64 = 1 << 28;
pub(crate) const DAMAGED: u64 = 1 << 29;
pub(crate) const CLAIMED: u64 = 1 << 30;
pub(crate) const RETIRED: u64 = 1 << 31;
const CLAIMER_SHIFT: u32 = 32;
const CLAIMER: u64 = 0xFFFF << CLAIMER_SHIFT;

const _: () = {
    let flags = [DIRTY, CHECKPOINT, WRITING, WAITED, OWNED, DAMAGED, CLAIMED, RETIRED];
    let mut all = PINS | CLAIMER;
    let mut at = 0;
    while at < flags.len() {
        assert!(flags[at].count_ones() == 1 && all & flags[at] == 0, "flags overlap");
        all |= flags[at];
        at += 1;
    }
};

/// The count in the usage byte, and where the count at first sight is.
const USAGE: u8 = 0x0f;
const FIRST_SIGHT: u32 = 4;

/// The tag of a frame that never held a page. Not a page: there is no fork 15.
const NO_PAGE: u64 = u64::MAX;

#[cfg(all(test, not(any(loom, shuttle))))]
thread_local! {
    /// How often this thread has looked at a frame to change its state.
    pub(crate) static TOUCHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    /// How often it has made the fence that comes before filling.
    pub(crate) static FENCED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What optimistic readers and pinners load.
#[repr(C, align(64))]
struct ReadLine {
    version: Version,
    tag: AtomicU64,
    state: AtomicU64,
    usage: AtomicU8,
}

/// What latchers and owners write.
#[repr(C, align(64))]
struct LatchLine {
    latch: Latch,
    link: AtomicU64,
    entry: EntryRef,
}

/// A frame's descriptor.
#[repr(C, align(128))]
pub(crate) struct Frame {
    read: ReadLine,
    own: LatchLine,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Frame>() == 128);

/// Why a frame could not be pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPin {
    /// It holds (or is about to hold) another page.
    Changed,
    /// Its page is damaged.
    Damaged,
}

/// Why an optimistic read has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRead {
    /// The frame holds another page, or this one is being changed.
    NotHere,
    /// The page was changed meanwhile.
    Torn,
}

/// A pin that no session has: it is counted in the frame's state, and given back when this is
/// dropped.
pub(crate) struct RawPin<'a>(Option<&'a Frame>);

impl<'a> RawPin<'a> {
    /// Goes on with a pin that was handed over.
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
    /// An owned frame without a page.
    #[cfg(any(test, miri, loom, shuttle))]
    pub(crate) fn new() -> Self {
        Self {
            read: ReadLine {
                version: Version::new_locked(),
                tag: AtomicU64::new(NO_PAGE),
                state: AtomicU64::new(OWNED),
                usage: AtomicU8::new(0),
            },
            own: LatchLine {
                latch: Latch::new(),
                link: AtomicU64::new(0),
                entry: EntryRef::none(),
            },
        }
    }

    #[inline]
    pub(crate) fn version(&self) -> &Version {
        &self.read.version
    }

    #[inline]
    pub(crate) fn latch(&self) -> &Latch {
        &self.own.latch
    }

    /// The freelist's word while the frame is free; the owner's.
    pub(crate) fn link(&self) -> &AtomicU64 {
        &self.own.link
    }

    /// Says when the page that an owned frame is about to get came.
    pub(crate) fn set_loaded_at(&self, now: u64) {
        self.own.link.store(now, Ordering::Relaxed);
    }

    /// When its page came. Of a frame that was just taken, when the page that left had come.
    pub(crate) fn loaded_at(&self) -> u64 {
        self.own.link.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn holds(&self, page: PageId) -> bool {
        self.read.tag.load(Ordering::Relaxed) == page.raw()
    }

    /// The page it holds, or held last. Only a hint unless the frame is pinned.
    pub(crate) fn page(&self) -> Option<PageId> {
        PageId::from_raw(self.read.tag.load(Ordering::Relaxed))
    }

    /// The state word, to look at.
    #[inline]
    pub(crate) fn state(&self) -> u64 {
        self.read.state.load(Ordering::Acquire)
    }

    // Usage.

    #[inline]
    pub(crate) fn usage(&self) -> u8 {
        self.read.usage.load(Ordering::Relaxed) & USAGE
    }

    /// Sets the count, as the hand does when it passes.
    pub(crate) fn set_usage(&self, usage: u8) {
        let before = self.read.usage.load(Ordering::Relaxed);
        let first_sight = match before & !USAGE {
            0 => ((before & USAGE) + 1) << FIRST_SIGHT,
            known => known,
        };
        self.read.usage.store(first_sight | usage, Ordering::Relaxed);
    }

    /// The count when the hand first met the page that the frame holds, or has just lost, since a use raised it.
    pub(crate) fn usage_at_first_sight(&self) -> u8 {
        let now = self.read.usage.load(Ordering::Relaxed);
        policy::usage_count((now >> FIRST_SIGHT).checked_sub(1).unwrap_or(now & USAGE))
    }

    /// Who would have taken the frame has found that somebody has it pinned: its count is again what it was before the hand came round to
    /// lower it, but not zero. Also if the pin is one in passing, which is as good a reason to pass over the page as any.
    pub(crate) fn passed_over(&self) {
        self.read.usage.store(self.usage_at_first_sight().max(1), Ordering::Relaxed);
    }

    /// Counts a use. Writes only if the count changes (rule 1). A use in passing, by a job with a ring,
    /// doesn't count: however often it happens, the page does not look wanted (rule 11).
    #[inline]
    pub(crate) fn used(&self, in_passing: bool) {
        if in_passing {
            return;
        }
        let before = self.read.usage.load(Ordering::Relaxed);
        let usage = before & USAGE;
        if let Some(raised) = policy::raised(usage) {
            // Without what the hand has met: it lowers the count from here, when it comes again.
            self.read.usage.store(raised, Ordering::Relaxed);
        }
    }

    // Pins.

    /// Whether the sweep should pass it over for a pin that it can see: a write-back's. (A page that is
    /// being written will soon be free to go.)
    #[inline]
    pub(crate) fn is_pinned(&self) -> bool {
        let state = self.read.state.load(Ordering::Relaxed);
        state & PINS != 0 && state & WRITING == 0
    }

    /// Whether the page differs from the store's. Only a hint.
    pub(crate) fn is_dirty(&self) -> bool {
        self.read.state.load(Ordering::Relaxed) & DIRTY != 0
    }

    /// Whether the frame holds `page` and, having been announced as in use by the caller (by a slot or its latch, and a light
    /// barrier), stays so.
    #[inline]
    pub(crate) fn admit(&self, page: PageId) -> Result<(), NoPin> {
        let state = self.read.state.load(ordering!("pool-admit-relaxed", Acquire));
        if state & (OWNED | CLAIMED | DAMAGED) != 0 {
            return self.admit_slow(page);
        }
        if self.holds(page) { Ok(()) } else { Err(NoPin::Changed) }
    }

    #[cold]
    fn admit_slow(&self, page: PageId) -> Result<(), NoPin> {
        // If the tag is another's, it will not be `page`'s before the frame has been owned.
        let unclaimed = self.update(|state| {
            let stays = state & (OWNED | DAMAGED) == 0 && self.holds(page);
            stays.then_some(state & !(CLAIMED | CLAIMER))
        });
        match unclaimed {
            // It may have been given to another page between the look at the tag and the swap.
            Ok(_) if mutant!("pool-unclaim-without-tag") || self.holds(page) => Ok(()),
            Err(state) if state & (OWNED | DAMAGED) == DAMAGED && self.holds(page) => {
                Err(NoPin::Damaged)
            }
            _ => Err(NoPin::Changed),
        }
    }

    /// Takes the latch shared, if that needs no waiting and the frame holds `page`. It does as long as the latch is held, though
    /// nobody has pinned it (rule 13).
    #[inline]
    pub(crate) fn try_latch_shared(&self, page: PageId, barriers: Barriers) -> bool {
        if !self.own.latch.try_shared() {
            return false;
        }
        if !mutant!("pool-latch-without-barrier") {
            barriers.light();
        }
        if self.admit(page).is_ok() {
            return true;
        }
        self.own.latch.unlock_shared();
        false
    }

    /// Reads from the frame while others may change it, if it holds `page` and rests (rule 1).
    /// `read` computes something from the page's words, which may be torn: the result counts only
    /// if they were not.
    #[inline]
    pub(crate) fn try_read<R>(&self, page: PageId, read: impl FnOnce() -> R) -> Result<R, NoRead> {
        let version = self.read.version.read_begin().ok_or(NoRead::NotHere)?;
        if !mutant!("pool-read-without-tag") && !self.holds(page) {
            return Err(NoRead::NotHere);
        }
        let result = read();
        if self.read.version.validate(version) { Ok(result) } else { Err(NoRead::Torn) }
    }

    /// Pins the frame, whatever it holds, by a count in its state. A claim remains, and will fail.
    #[inline]
    pub(crate) fn pin_any(&self) -> Result<RawPin<'_>, NoPin> {
        let pinned = self.update(|state| (state & (OWNED | DAMAGED) == 0).then_some(state + 1));
        match pinned {
            Ok(_) => Ok(RawPin(Some(self))),
            Err(state) if state & OWNED != 0 => Err(NoPin::Changed),
            Err(_) => Err(NoPin::Damaged),
        }
    }

    #[inline]
    fn swap(&self, from: u64, to: u64, success: Ordering) -> Result<(), u64> {
        let swapped = self.read.state.compare_exchange_weak(from, to, success, Ordering::Relaxed);
        swapped.map(|_| ())
    }

    /// Changes the state word by `change` until that succeeds or `change` declines; returns the state
    /// before, or the one declined.
    pub(crate) fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        #[cfg(all(test, not(any(loom, shuttle))))]
        TOUCHED.with(|touched| touched.set(touched.get() + 1));
        let mut state = self.read.state.load(Ordering::Acquire);
        loop {
            let Some(new) = change(state) else { return Err(state) };
            match self.swap(state, new, Ordering::AcqRel) {
                Ok(()) => return Ok(state),
                Err(now) => state = now,
            }
        }
    }

    // Dirt and writes.

    /// Marks the page dirty; returns whether it was clean. The caller holds the exclusive latch. A page that is
    /// being written is not: should the write fail, it is as dirty as before, whatever the caller then takes back.
    #[inline]
    pub(crate) fn mark_dirty(&self) -> bool {
        if self.read.state.load(Ordering::Relaxed) & DIRTY != 0 {
            return false;
        }
        self.read.state.fetch_or(DIRTY, Ordering::AcqRel) & (DIRTY | WRITING) == 0
    }

    /// Takes back [`Frame::mark_dirty`]. The caller holds the exclusive latch and has changed nothing.
    pub(crate) fn unmark_dirty(&self) {
        self.read.state.fetch_and(!(DIRTY | CHECKPOINT), Ordering::AcqRel);
    }

    pub(crate) fn mark_damaged(&self) {
        self.read.state.fetch_or(DAMAGED, Ordering::AcqRel);
    }

    /// Ends a write. On failure the page is as dirty as before.
    pub(crate) fn end_write(&self, restore: u64) {
        let ended = self.update(|state| {
            let mut new = (state & !(WRITING | WAITED)) | restore;
            if new & DIRTY == 0 {
                new &= !CHECKPOINT;
            }
            Some(new)
        });
        if ended.is_ok_and(|before| before & WAITED != 0) {
            parking::unpark_all(self.writing_key());
        }
    }

    /// Waits until the write that is going on has ended.
    pub(crate) fn wait_for_write(&self) {
        let waiting = self.update(|state| (state & WRITING != 0).then_some(state | WAITED));
        if waiting.is_ok() {
            let still = || self.state() & (WRITING | WAITED) == WRITING | WAITED;
            overdue::park(self.writing_key(), still, || match self.page() {
                Some(page) => format!("{page} to be written"),
                None => "a page to be written".to_owned(),
            });
        }
    }

    /// Not the latch's keys, which are its address and the one after.
    fn writing_key(&self) -> usize {
        std::ptr::from_ref(&self.read.state) as usize
    }
}
