//! Frame descriptors (PostgreSQL's buffer descriptors) and their state words.
//!
//! A descriptor has two cache lines. Optimistic readers and pinners load the first one: version,
//! tag, state and usage count. In steady use no thread writes it. The second has the latch and what
//! only owners need. A session counts its pins not here but in slots of its own
//! ([`crate::core::pins`]).
//!
//! RULES.md shows where the state word has its flags and numbers:
//!
//! - **DIRTY**: the page differs from the store's copy. Set when a change begins, under the
//!   exclusive latch. Cleared when a writer copies the page out, under the shared latch (and set
//!   again if the write fails). Also cleared when a session takes back a change that wrote nothing,
//!   or the page is discarded.
//! - **CHECKPOINT**: the page was dirty when a checkpoint began. Set by the checkpoint, cleared
//!   with DIRTY or with WRITING.
//! - **WRITING**: a copy of the page is on its way to the store. Set and cleared by the writer,
//!   which keeps the page pinned.
//! - **WAITED**: a thread is parked until WRITING ends. Set by the waiter, cleared by the writer.
//! - **OWNED**: the frame holds no page: it is free, or one owner is emptying or filling it. Set by
//!   its claimer, having found no pin. Cleared by the owner when it publishes a page.
//! - **DAMAGED**: a change of the page was interrupted half-way, and the page is never written. Set
//!   by the guard of the change, cleared when the page is discarded. With OWNED: the frame is lost,
//!   since a device may still fill it. Set when a load gives up its read, never cleared.
//! - **RETIRED**, only with OWNED: the frame is beyond the size of a pool that became smaller. Set
//!   by the thread that makes the pool smaller, or that frees a frame beyond its size. Cleared when
//!   the size includes the frame again. That is done by the thread that enlarges the pool or gives
//!   up making it smaller, or by one that has just retired the frame.
//! - **CLAIMED**: *claimer* will take the frame, unless it turns out to be in use. Set by the
//!   claimer, from an unpinned state. Cleared by the claimer, or by a session that pins the page.
//!
//! Write-backs and loads that belong to no session have raw pins.
//!
//! Invariants:
//!
//! - While OWNED, only the owner changes the word, tag, version and entry. The version is odd until
//!   the new page is whole.
//! - While not OWNED, the version is odd only during a change, under the exclusive latch, or if
//!   DAMAGED. So a publisher first makes it even, and then clears OWNED. As soon as OWNED is gone,
//!   a session with an old view of the page's entry may pin, latch and change the page.
//! - An unowned frame has a tag, and the entry of that page says "resident in this frame". (It may
//!   still be LOADING while the publisher has the frame pinned.) Only the thread that turns the
//!   frame from unowned to owned may change that entry (rule 3).
//! - A frame goes from unowned to owned only through CLAIMED, by its claimer. After claiming, the
//!   claimer has made a heavy barrier. It has then seen the latch free and no session's slot with
//!   the frame (rules 12 and 13). Until then a claim changes nothing: sessions can read, change and
//!   write the page. A session can pin it by taking the claim away.
//! - A pinned frame keeps its tag. So does a frame whose latch is held by a session that has looked
//!   at the state since it took the latch.
//! - A session may hold the latch of an owned frame shared, for a moment: it took the latch for a
//!   page that has left.
//!
//! The low half of the **usage** byte is the count. The high half is the count, plus one, that the
//! sweep's hand found when it first met the page since its last use. (0: it has not met the page.)
//! It is written only together with the count. The **link** of a free frame is the freelist's.
//! While the frame holds a page, it is the time when that page came. The reference to the page's
//! entry also keeps the entry's previous value.
//!
//! **Memory ordering.** Publishing is a release store of the state; pinning acquires it. So a
//! pinner sees the version, tag and bytes that were published. Unpinning is a release store to a
//! slot, which claimers acquire, so an evictor has seen the last of the pinners' accesses. The same
//! holds for latches. Pin against claim: [`crate::core::pins`].

mod ownership;

pub(crate) use self::ownership::{Change, Claimer, Leaves, NoTake, RawPin, Readers};
use crate::core::page_table::EntryRef;
use crate::ids::PageId;
use crate::{policy, threads};
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

/// The bits of the count in the usage byte, and where the count at first sight begins.
const USAGE: u8 = 0x0f;
const FIRST_SIGHT: u32 = 4;

/// The tag of a frame that never held a page. It names no page: there is no fork 15.
const NO_PAGE: u64 = u64::MAX;

#[cfg(all(test, not(any(loom, shuttle))))]
thread_local! {
    /// How often this thread has called `Frame::update`.
    pub(crate) static TOUCHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

// Apple's processors have cache lines of 128 bytes.
#[cfg_attr(all(target_vendor = "apple", target_arch = "aarch64"), repr(C, align(128)))]
#[cfg_attr(not(all(target_vendor = "apple", target_arch = "aarch64")), repr(C, align(64)))]
struct ReadLine {
    version: Version,
    tag: AtomicU64,
    state: AtomicU64,
    usage: AtomicU8,
}

#[cfg_attr(all(target_vendor = "apple", target_arch = "aarch64"), repr(C, align(128)))]
#[cfg_attr(not(all(target_vendor = "apple", target_arch = "aarch64")), repr(C, align(64)))]
struct LatchLine {
    latch: Latch,
    link: AtomicU64,
    entry: EntryRef,
}

#[repr(C, align(128))]
pub(crate) struct Frame {
    read: ReadLine,
    own: LatchLine,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Frame>() == 2 * align_of::<ReadLine>());

/// Why a frame could not be pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPin {
    /// It holds (or is about to hold) another page.
    Changed,
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

    /// The freelist's word while the frame is free, otherwise the owner's.
    pub(crate) fn link(&self) -> &AtomicU64 {
        &self.own.link
    }

    /// Sets the arrival time of the page that the owned frame is about to get.
    pub(crate) fn set_loaded_at(&self, now: u64) {
        self.own.link.store(now, Ordering::Relaxed);
    }

    /// When its page came. If the frame was just taken: when the page that left had come.
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

    #[inline]
    pub(crate) fn state(&self) -> u64 {
        self.read.state.load(Ordering::Acquire)
    }

    // Usage.

    #[inline]
    pub(crate) fn usage(&self) -> u8 {
        self.read.usage.load(Ordering::Relaxed) & USAGE
    }

    /// Sets the count, as the hand does when it passes. Also notes the count at first sight.
    pub(crate) fn set_usage(&self, usage: u8) {
        let before = self.read.usage.load(Ordering::Relaxed);
        let first_sight = match before & !USAGE {
            0 => ((before & USAGE) + 1) << FIRST_SIGHT,
            known => known,
        };
        self.read.usage.store(first_sight | usage, Ordering::Relaxed);
    }

    /// The count when the hand first met the frame's page since a use raised it. The page may just
    /// have left.
    pub(crate) fn usage_at_first_sight(&self) -> u8 {
        let now = self.read.usage.load(Ordering::Relaxed);
        policy::usage_count((now >> FIRST_SIGHT).checked_sub(1).unwrap_or(now & USAGE))
    }

    /// Undoes the hand's lowering of the count, because a claimer has found the frame pinned. The
    /// count is again that at first sight, but at least 1. A pin by a job with a ring has the same
    /// effect.
    pub(crate) fn passed_over(&self) {
        self.read.usage.store(self.usage_at_first_sight().max(1), Ordering::Relaxed);
    }

    /// Counts a use. Writes only if the count changes (rule 1). A use by a job with a ring
    /// (`in_passing`) doesn't count: however often it happens, the page does not look wanted (rule
    /// 11).
    #[inline]
    pub(crate) fn used(&self, in_passing: bool) {
        if in_passing {
            return;
        }
        let before = self.read.usage.load(Ordering::Relaxed);
        let usage = before & USAGE;
        if let Some(raised) = policy::raised(usage) {
            // This also clears the count at first sight: the hand starts from here when it comes
            // again.
            self.read.usage.store(raised, Ordering::Relaxed);
        }
    }

    // Pins.

    /// Whether the sweep should skip the frame because of a raw pin. (If the page is being written
    /// it need not: the frame can be taken soon.)
    #[inline]
    pub(crate) fn is_pinned(&self) -> bool {
        let state = self.read.state.load(Ordering::Relaxed);
        state & PINS != 0 && state & WRITING == 0
    }

    /// Whether the page differs from the store's copy. Only a hint.
    pub(crate) fn is_dirty(&self) -> bool {
        self.read.state.load(Ordering::Relaxed) & DIRTY != 0
    }

    /// Whether the frame holds `page`. If so, it keeps it. The caller has announced its use of the
    /// frame before, by a slot or the latch, and a light barrier.
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
        // If the tag names another page, it can't become `page` before the frame has been owned.
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

    /// Takes the latch shared, if that needs no waiting and the frame holds `page`. The frame then
    /// keeps the page as long as the latch is held, though no session has pinned it (rule 13).
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

    /// Reads from the frame while other threads may change it, if it holds `page` and no change is
    /// going on (rule 1). `read` computes a result from the page's words, which may be torn. The
    /// result is returned only if they were not.
    #[inline]
    pub(crate) fn try_read<R>(&self, page: PageId, read: impl FnOnce() -> R) -> Result<R, NoRead> {
        let version = self.read.version.read_begin().ok_or(NoRead::NotHere)?;
        if !mutant!("pool-read-without-tag") && !self.holds(page) {
            return Err(NoRead::NotHere);
        }
        let result = read();
        if self.read.version.validate(version) { Ok(result) } else { Err(NoRead::Torn) }
    }

    #[inline]
    fn swap(&self, from: u64, to: u64, success: Ordering) -> Result<(), u64> {
        let swapped = self.read.state.compare_exchange_weak(from, to, success, Ordering::Relaxed);
        swapped.map(|_| ())
    }

    /// Applies `change` to the state word until the swap succeeds or `change` declines. Returns the
    /// state before, or the declined one.
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

    // Writes.

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

    /// Waits until the current write has ended. It may return earlier.
    pub(crate) fn wait_for_write(&self) {
        let waiting = self.update(|state| (state & WRITING != 0).then_some(state | WAITED));
        if waiting.is_ok() {
            let still = || self.state() & (WRITING | WAITED) == WRITING | WAITED;
            threads::park(self.writing_key(), still, || match self.page() {
                Some(page) => format!("{page} to be written"),
                None => "a page to be written".to_owned(),
            });
        }
    }

    /// This differs from the latch's keys, which are the latch's address and the next one.
    fn writing_key(&self) -> usize {
        std::ptr::from_ref(&self.read.state) as usize
    }
}
