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
//! | DIRTY | the page differs from the store's | who begins a change, under the exclusive latch | who copies it out to write it, under the shared latch; set again if the write fails |
//! | CHECKPOINT | it was dirty when a checkpoint began | the checkpoint | whoever copies it out |
//! | WRITING | a copy of it is on its way to the store | the writer, who keeps it pinned | the writer |
//! | WAITED | somebody is parked until WRITING ends | the waiter | the writer |
//! | OWNED | it holds nobody's page: free, or being emptied or filled by one owner | its claimer, having found no pin | the owner when it publishes a page |
//! | DAMAGED | a change of it was interrupted half-way; it is never written. Besides OWNED: a device may still fill it; it is never used | the guard of the change; who gives up a read | never |
//! | RETIRED | besides OWNED: the pool has become smaller, and the frame is beyond its size | who makes it smaller | who makes it larger again |
//! | CLAIMED | *claimer* will take it, unless somebody turns out to have it pinned | the claimer, from an unpinned state | the claimer; or a session that pins it |
//!
//! Raw pins are those of write-backs and of loads that belong to no session.
//!
//! Invariants:
//!
//! - While OWNED, only the owner changes the word, tag, version and entry, and the version is odd until the page that comes is whole.
//! - While not OWNED, the version is odd only during a change, under the exclusive latch, or if DAMAGED: so who publishes makes
//!   it even first, since whoever has believed all along that the page is here may pin, latch and change it as soon as OWNED is gone.
//! - An unowned frame has a tag, and the entry of that page says "resident in this frame". Only who turns
//!   the frame from unowned to owned may change that entry (rule 3).
//! - A frame goes from unowned to owned only through CLAIMED, by its claimer, who after claiming has made a
//!   heavy barrier and then seen its latch free and no session's slot with it (rules 12 and 13). Until then a claim changes nothing:
//!   the page can be read, changed and written, and pinned by who takes the claim away.
//! - A pinned frame keeps its tag, and so does one whose latch is held by who has looked at the state since.
//! - Anybody may hold the latch of an owned frame shared, for a moment: who believed that it had a page that has left.
//!
//! The **usage** byte has the count in its low half and, plus one, what the count was when the sweep's hand
//! first met the page in its high half (0: not yet), which is written only along with the count. The **link**
//! of a free frame is the freelist's; while the frame holds a page it is the time when that came. What the page's entry was
//! before is kept with the reference to that.
//!
//! **Why a claim can be taken away.** A session that wants the page need not wait for the claimer, who may
//! have been descheduled. The claimer's number in the word makes its last step, CLAIMED by me to OWNED,
//! fail if its claim was taken away, though others may have claimed the frame since. (That the
//! same claimer may have claimed it again in the same batch does no harm: both claims are older than its barrier.)
//!
//! **Memory ordering.** Publishing is a release store of the state; pinning acquires it, so a pinner
//! sees the version, tag and bytes that were published. Unpinning is a release store to a slot, which claimers
//! acquire, so an evictor has seen the last of the pinners' accesses; latches likewise. Pin against claim: [`crate::pins`].

use crate::ids::PageId;
use crate::policy;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use millpond_sync::latch::{Latch, Version};
use millpond_sync::parking;

use crate::translation::{ABSENT, EntryRef, absent_since};

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
}

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
        state & (CLAIMED | CLAIMER) == self.mark()
    }
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
    fence(Ordering::Release);
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

    /// The count when the hand first met the page that the frame holds, or has just lost.
    pub(crate) fn usage_at_first_sight(&self) -> u8 {
        let now = self.read.usage.load(Ordering::Relaxed);
        policy::usage_count((now >> FIRST_SIGHT).checked_sub(1).unwrap_or(now & USAGE))
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
            self.read.usage.store(before & !USAGE | raised, Ordering::Relaxed);
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
        let state = self.read.state.load(Ordering::Acquire);
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
            Ok(_) if self.holds(page) => Ok(()),
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
        barriers.light();
        if self.admit(page).is_ok() {
            return true;
        }
        self.own.latch.unlock_shared();
        false
    }

    /// Pins the frame, whatever it holds, by a count in its state. A claim remains, and will fail.
    #[inline]
    pub(crate) fn pin_any(&self) -> Result<(), NoPin> {
        let pinned = self.update(|state| (state & (OWNED | DAMAGED) == 0).then_some(state + 1));
        match pinned {
            Ok(_) => Ok(()),
            Err(state) if state & OWNED != 0 => Err(NoPin::Changed),
            Err(_) => Err(NoPin::Damaged),
        }
    }

    #[inline]
    pub(crate) fn unpin(&self) {
        let before = self.read.state.fetch_sub(1, Ordering::Release);
        debug_assert!(before & PINS != 0, "unpinned too often");
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

    // Ownership.

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

    /// Claims the frame if it holds `page`, clean or not, damaged or not.
    pub(crate) fn claim_from(&self, page: PageId, by: Claimer) -> Result<(), NoTake> {
        let claimed = self.update(|state| {
            (state & (OWNED | CLAIMED | WRITING | PINS) == 0).then_some(state | by.mark())
        });
        match claimed {
            // Whoever takes the claim away and gives the frame to another page, makes owning it fail.
            Ok(_) if self.holds(page) => Ok(()),
            Ok(_) => {
                self.unclaim(by);
                Err(NoTake::Busy)
            }
            Err(state) if state & (OWNED | CLAIMED | WRITING) == 0 => Err(NoTake::Pinned),
            Err(_) => Err(NoTake::Busy),
        }
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
            Leaves::Evicted { now } => (PINS | WRITING | DIRTY | DAMAGED, absent_since(now)),
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
        self.read.state.store(OWNED | RETIRED, Ordering::SeqCst);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.read.state.load(Ordering::SeqCst) & RETIRED != 0
    }

    /// Makes a retired frame the caller's; whether it was retired, and not another's to bring back.
    pub(crate) fn come_back(&self) -> bool {
        let back = (Ordering::SeqCst, Ordering::Relaxed);
        self.read.state.compare_exchange(OWNED | RETIRED, OWNED, back.0, back.1).is_ok()
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
    pub(crate) fn publish(
        &self,
        page: PageId,
        (entry, before): (&AtomicU64, u64),
        usage: u8,
        raw_pins: u64,
    ) {
        debug_assert!(self.state() == OWNED, "published by who doesn't own it");
        self.own.entry.set(entry, before);
        self.read.tag.store(page.raw(), Ordering::Relaxed);
        self.read.usage.store(usage, Ordering::Relaxed);
        // In this order. Somebody may have seen the entry when the page was here before: he can pin and change it once it isn't owned,
        // and this must not end his change. An optimistic reader who comes in between is right: the page is whole.
        self.read.version.write_end();
        self.read.state.store(raw_pins, Ordering::Release);
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
            parking::park(self.writing_key(), still, None);
        }
    }

    /// Not the latch's keys, which are its address and the one after.
    fn writing_key(&self) -> usize {
        std::ptr::from_ref(&self.read.state) as usize
    }
}
