//! Claims: how frames are taken from their pages, many at a time.
//!
//! 1. A frame is *claimed*: a compare-and-swap of its state from unpinned (and, unless the page is to be
//!    discarded, clean). A claim changes nothing for anybody: the page can be read, and a
//!    session that wants to pin it takes the claim away.
//! 2. The claims of a batch are *settled*: one heavy barrier, then the frames' latches and all sessions' published pins are
//!    looked at (rules 12 and 13, [`crate::pins`]). What is in use is given back unchanged. The rest become *owned*, by
//!    another compare-and-swap each, unless the claim was taken away or the page changed; and their
//!    entries become absent.
//!
//! A claimer must not add to a batch after the barrier: a pin could have been announced in between.
//!
//! **Failure.** [`Claims`] gives back what it holds when dropped (rule 6): frames that are only claimed to
//! their pages, owned ones to a freelist. If the system refuses the barrier all claims are given back.

use crate::frame::{Claimer, Frame, Leaves, NoTake};
use crate::ids::PageId;
use crate::pins::PinBoard;
use crate::policy;
use crate::pool::BufferPool;
use millpond_sync::mutant;

/// The most frames in a batch.
pub(crate) const MAX_CLAIMS: usize = 128;

/// The most that a session takes at a time that needs one of them itself, and shouldn't be kept from it for long.
pub(crate) const MAX_CLAIMS_ON_THE_WAY: usize = 32;

/// Frames claimed by one claimer, and after [`Claims::settle`] owned by it.
pub(crate) struct Claims<'a> {
    pool: &'a BufferPool,
    by: Claimer,
    /// The freelist that owned frames go to.
    near: usize,
    frames: [u32; MAX_CLAIMS],
    len: usize,
    settled: bool,
}

/// What became of the claims that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Frames that turned out to be pinned.
    pub(crate) pinned: usize,
    /// Frames that were pinned, changed or written meanwhile and may be free to go soon; or the
    /// barrier could not be had.
    pub(crate) otherwise: usize,
    /// The barrier could not be had, so nobody knows which of them are pinned.
    pub(crate) is_refused: bool,
}

impl<'a> Claims<'a> {
    pub(crate) fn none(pool: &'a BufferPool, by: Claimer, near: usize) -> Self {
        Self { pool, by, near, frames: [0; MAX_CLAIMS], len: 0, settled: false }
    }

    /// The frames.
    pub(crate) fn frames(&self) -> &[u32] {
        &self.frames[..self.len]
    }

    /// Which freelist gets what is owned when this is dropped.
    pub(crate) fn give_to(&mut self, list: usize) {
        self.near = list;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == MAX_CLAIMS
    }

    /// Claims a frame, if it is unpinned and clean.
    pub(crate) fn claim(&mut self, number: u32) -> Result<(), NoTake> {
        self.pool.frames[number as usize].claim(self.by)?;
        self.push(number);
        Ok(())
    }

    /// The same, if it holds that page.
    pub(crate) fn claim_clean_from(&mut self, number: u32, page: PageId) -> Result<(), NoTake> {
        self.pool.frames[number as usize].claim_clean_from(page, self.by)?;
        self.push(number);
        Ok(())
    }

    /// Claims a frame, if it holds that page and is unpinned, written or not.
    pub(crate) fn claim_from(&mut self, number: u32, page: PageId) -> Result<(), NoTake> {
        self.pool.frames[number as usize].claim_from(page, self.by)?;
        self.push(number);
        Ok(())
    }

    fn push(&mut self, number: u32) {
        debug_assert!(!self.settled && !self.is_full(), "a claim too many");
        self.frames[self.len] = number;
        self.len += 1;
    }

    /// Makes claims into owned frames; the others are gone from here. With `grace`, a page that is found
    /// pinned has again the count that it had when the hand first met it since its last use.
    pub(crate) fn settle(&mut self, leaves: Leaves, grace: bool) -> Lost {
        let claimed = &mut self.frames[..std::mem::take(&mut self.len)];
        self.settled = true;
        let (frames, pins) = (&*self.pool.frames, &self.pool.pins);
        let (owned, lost) = settle(frames, pins, self.by, claimed, leaves, grace);
        self.len = owned;
        lost
    }

    /// Takes one owned frame out, which is the caller's to give back.
    pub(crate) fn take_out(&mut self) -> Option<u32> {
        debug_assert!(self.settled || self.len == 0, "only claimed");
        self.len = self.len.checked_sub(1)?;
        Some(self.frames[self.len])
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        if self.settled {
            self.pool.give_back(self.near, self.frames());
        } else {
            for number in self.frames() {
                self.pool.frames[*number as usize].unclaim(self.by);
            }
        }
    }
}

/// Makes claims into owned frames: those come to the front of `claimed`. Returns how many they are.
/// See [`Claims::settle`].
pub(crate) fn settle(
    frames: &[Frame],
    pins: &PinBoard,
    by: Claimer,
    claimed: &mut [u32],
    leaves: Leaves,
    grace: bool,
) -> (usize, Lost) {
    let (mut owned, mut lost) = (0, Lost::default());
    if claimed.is_empty() {
        return (owned, lost);
    }
    let batch = Batch::of(claimed);
    let is_latched = |number: u32| frames[number as usize].latch().is_held();
    let looked = pins.look(claimed, is_latched, |number| {
        if batch.has(number) {
            let frame = &frames[number as usize];
            // More than one session may have it in use.
            if frame.unclaim(by) {
                lost.pinned += 1;
                if grace && policy::is_spent(frame.usage()) {
                    frame.passed_over();
                }
            }
        }
    });
    lost.is_refused = !looked;
    let looked = looked || mutant!("pool-settle-without-look");
    for at in 0..claimed.len() {
        let frame = &frames[claimed[at] as usize];
        if looked && frame.own(by, leaves) {
            claimed.swap(owned, at);
            owned += 1;
        } else {
            frame.unclaim(by);
        }
    }
    let not_owned = claimed.len() - owned;
    lost.otherwise = not_owned - lost.pinned.min(not_owned);
    (owned, lost)
}

/// The frames of a batch, quickly asked: most pins that a scan meets are of other frames.
struct Batch<'a> {
    frames: &'a [u32],
    /// A bit for each frame number modulo 1024.
    some: [u64; 16],
}

impl<'a> Batch<'a> {
    fn of(frames: &'a [u32]) -> Self {
        let mut some = [0; 16];
        for frame in frames {
            some[(frame / 64 % 16) as usize] |= 1 << (frame % 64);
        }
        Self { frames, some }
    }

    #[inline]
    fn has(&self, frame: u32) -> bool {
        self.some[(frame / 64 % 16) as usize] & 1 << (frame % 64) != 0
            && self.frames.contains(&frame)
    }
}
