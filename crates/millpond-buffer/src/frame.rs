//! Frame descriptors and their state words.
//!
//! A descriptor has two cache lines. What optimistic readers load (version, tag, usage count) is not on
//! the line that pinners write (state, latch).
//!
//! ```text
//! state  63    30     29        28      27       26         25        24     23        0
//!       +--------+---------+---------+--------+---------+------------+-------+-----------+
//!       | unused | DAMAGED |  OWNED  | WAITED | WRITING | CHECKPOINT | DIRTY |   pins    |
//!       +--------+---------+---------+--------+---------+------------+-------+-----------+
//! ```
//!
//! | flag | meaning | set by | cleared by |
//! |---|---|---|---|
//! | DIRTY | the page differs from the store's | who begins a change, under the exclusive latch | who copies it out to write it, under the shared latch; set again if the write fails |
//! | CHECKPOINT | it was dirty when a checkpoint began | the checkpoint | whoever copies it out |
//! | WRITING | a copy of it is on its way to the store | the writer, who keeps it pinned | the writer |
//! | WAITED | somebody is parked until WRITING ends | the waiter | the writer |
//! | OWNED | it holds nobody's page: free, or being emptied or filled by one owner | the evictor, from an unpinned clean state | the owner when it publishes a page |
//! | DAMAGED | a change of it was interrupted half-way; it is never written | the guard of the change | never |
//!
//! Invariants:
//!
//! - While OWNED, only the owner changes the word, tag, version and entry, and the version is odd.
//! - An unowned frame has a tag, and the entry of that page says "resident in this frame". Only who turns
//!   the frame from unowned to owned may change that entry (rule 3).
//! - A pinned frame keeps its tag.
//!
//! The **usage** byte has the count in its low half and, plus one, what the count was when the sweep's hand
//! first met the page in its high half (0: not yet), which is written only along with the count. The **link**
//! of a free frame is the freelist's; while the frame holds a page it is the time when that came.
//!
//! **Memory ordering.** Publishing is a release store of the state; pinning acquires it, so a pinner
//! sees the tag and bytes that were published. Unpinning releases; taking acquires, so an evictor has
//! seen the last of the pinners' accesses.

use crate::ids::PageId;
use crate::policy;
use millpond_sync::atomic::{AtomicU8, AtomicU64, Ordering};
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

const _: () = {
    let flags = [DIRTY, CHECKPOINT, WRITING, WAITED, OWNED, DAMAGED];
    let mut all = PINS;
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

/// What optimistic readers load.
#[repr(C, align(64))]
struct ReadLine {
    version: Version,
    tag: AtomicU64,
    usage: AtomicU8,
}

/// What pinners write.
#[repr(C, align(64))]
struct PinLine {
    state: AtomicU64,
    latch: Latch,
    link: AtomicU64,
    entry: EntryRef,
}

/// A frame's descriptor.
#[repr(C, align(128))]
pub(crate) struct Frame {
    read: ReadLine,
    pin: PinLine,
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

impl Frame {
    /// An owned frame without a page.
    pub(crate) fn new() -> Self {
        Self {
            read: ReadLine {
                version: Version::new_locked(),
                tag: AtomicU64::new(NO_PAGE),
                usage: AtomicU8::new(0),
            },
            pin: PinLine {
                state: AtomicU64::new(OWNED),
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
        &self.pin.latch
    }

    /// The freelist's word while the frame is free; the owner's.
    pub(crate) fn link(&self) -> &AtomicU64 {
        &self.pin.link
    }

    /// Says when the page that an owned frame is about to get came.
    pub(crate) fn set_loaded_at(&self, now: u64) {
        self.pin.link.store(now, Ordering::Relaxed);
    }

    /// When its page came. Of a frame that was just taken, when the page that left had come.
    pub(crate) fn loaded_at(&self) -> u64 {
        self.pin.link.load(Ordering::Relaxed)
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
        self.pin.state.load(Ordering::Acquire)
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
        (now >> FIRST_SIGHT).checked_sub(1).unwrap_or(now & USAGE)
    }

    /// Counts a use. Writes only if the count changes (rule 1). A use in passing, by a job with a ring,
    /// counts only if there is no other: however often it happens, the page does not look wanted (rule 11).
    #[inline]
    pub(crate) fn used(&self, in_passing: bool) {
        let before = self.read.usage.load(Ordering::Relaxed);
        let usage = before & USAGE;
        if in_passing && usage != 0 {
            return;
        }
        if let Some(raised) = policy::raised(usage) {
            self.read.usage.store(before & !USAGE | raised, Ordering::Relaxed);
        }
    }

    // Pins.

    /// Whether the sweep should pass it over. (A page that is being written will soon be free to go.)
    #[inline]
    pub(crate) fn is_pinned(&self) -> bool {
        let state = self.pin.state.load(Ordering::Relaxed);
        state & PINS != 0 && state & WRITING == 0
    }

    /// Whether the page differs from the store's. Only a hint.
    pub(crate) fn is_dirty(&self) -> bool {
        self.pin.state.load(Ordering::Relaxed) & DIRTY != 0
    }

    /// Pins the frame if it holds `page`.
    #[inline]
    pub(crate) fn pin(&self, page: PageId) -> Result<(), NoPin> {
        self.pin_any()?;
        if self.holds(page) {
            return Ok(());
        }
        self.unpin();
        Err(NoPin::Changed)
    }

    /// Pins the frame, whatever it holds.
    #[inline]
    pub(crate) fn pin_any(&self) -> Result<(), NoPin> {
        let mut state = self.pin.state.load(Ordering::Relaxed);
        loop {
            if state & (OWNED | DAMAGED) != 0 {
                return Err(if state & OWNED != 0 { NoPin::Changed } else { NoPin::Damaged });
            }
            match self.swap(state, state + 1, Ordering::Acquire) {
                Ok(()) => return Ok(()),
                Err(now) => state = now,
            }
        }
    }

    #[inline]
    pub(crate) fn unpin(&self) {
        let before = self.pin.state.fetch_sub(1, Ordering::Release);
        debug_assert!(before & PINS != 0, "unpinned too often");
    }

    #[inline]
    fn swap(&self, from: u64, to: u64, success: Ordering) -> Result<(), u64> {
        let swapped = self.pin.state.compare_exchange_weak(from, to, success, Ordering::Relaxed);
        swapped.map(|_| ())
    }

    /// Changes the state word by `change` until that succeeds or `change` declines; returns the state
    /// before, or the one declined.
    pub(crate) fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        let mut state = self.pin.state.load(Ordering::Acquire);
        loop {
            let Some(new) = change(state) else { return Err(state) };
            match self.swap(state, new, Ordering::AcqRel) {
                Ok(()) => return Ok(state),
                Err(now) => state = now,
            }
        }
    }

    // Ownership.

    /// Takes an unpinned, clean frame away from its page: the page's entry becomes absent since `now`.
    pub(crate) fn take(&self, now: u64) -> Result<(), NoTake> {
        let refuse = |state: u64| {
            if state & PINS != 0 {
                Some(if state & WRITING != 0 { NoTake::Busy } else { NoTake::Pinned })
            } else if state & (OWNED | WRITING) != 0 {
                Some(NoTake::Busy)
            } else if state & DAMAGED != 0 {
                Some(NoTake::Damaged)
            } else if state & DIRTY != 0 {
                Some(NoTake::Dirty)
            } else {
                None
            }
        };
        let taken = self.update(|state| refuse(state).is_none().then_some(OWNED));
        if let Err(state) = taken {
            return Err(refuse(state).unwrap_or(NoTake::Busy));
        }
        self.empty(absent_since(now));
        Ok(())
    }

    /// Takes the frame away from `page`, discarding what was not written.
    pub(crate) fn take_from(&self, page: PageId) -> Result<(), NoTake> {
        // A pin of our own keeps the tag while we look at it, damaged or not.
        let pinned = self.update(|state| (state & OWNED == 0).then_some(state + 1));
        if pinned.is_err() {
            return Err(NoTake::Busy);
        }
        if !self.holds(page) {
            self.unpin();
            return Err(NoTake::Busy);
        }
        let alone = |state: u64| state & PINS == 1 && state & WRITING == 0;
        let taken = self.update(|state| alone(state).then_some(OWNED));
        match taken {
            Ok(_) => {
                self.empty(ABSENT);
                Ok(())
            }
            Err(state) => {
                self.unpin();
                Err(if state & WRITING != 0 { NoTake::Busy } else { NoTake::Pinned })
            }
        }
    }

    /// Having taken the frame: keeps optimistic readers out and makes the entry of its page `absent`.
    fn empty(&self, absent: u64) {
        // A damaged page's version is odd already.
        if !self.read.version.is_changing() {
            self.read.version.write_begin();
        }
        self.pin.entry.make_absent(absent);
    }

    /// Gives an owned frame to a page, pinned once. The caller then makes the entry resident.
    pub(crate) fn publish(&self, page: PageId, entry: &AtomicU64, usage: u8) {
        debug_assert!(self.state() == OWNED, "published by who doesn't own it");
        self.read.tag.store(page.raw(), Ordering::Relaxed);
        self.read.usage.store(usage, Ordering::Relaxed);
        self.pin.entry.set(entry);
        self.pin.state.store(1, Ordering::Release);
        self.read.version.write_end();
    }

    // Dirt and writes.

    /// Marks the page dirty; returns whether it was clean. The caller holds the exclusive latch.
    #[inline]
    pub(crate) fn mark_dirty(&self) -> bool {
        if self.pin.state.load(Ordering::Relaxed) & DIRTY != 0 {
            return false;
        }
        self.pin.state.fetch_or(DIRTY, Ordering::AcqRel) & DIRTY == 0
    }

    /// Takes back [`Frame::mark_dirty`]. The caller holds the exclusive latch and has changed nothing.
    pub(crate) fn unmark_dirty(&self) {
        self.pin.state.fetch_and(!(DIRTY | CHECKPOINT), Ordering::AcqRel);
    }

    pub(crate) fn mark_damaged(&self) {
        self.pin.state.fetch_or(DAMAGED, Ordering::AcqRel);
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
        std::ptr::from_ref(&self.pin.state) as usize
    }
}
