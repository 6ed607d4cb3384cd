//! Victim batches: how frames are taken from their pages, many at a time.
//!
//! 1. A frame is *claimed*: a compare-and-swap of its state, which must be unpinned and, unless the
//!    page is to be discarded, clean. A claim changes nothing for other sessions. They can read the
//!    page, and a session that wants to pin it takes the claim away.
//! 2. The claims of a batch are *settled*. The claimer makes one heavy barrier, and then looks at
//!    the frames' latches and at all sessions' published pins (rules 12 and 13,
//!    [`crate::core::pins`]). It gives frames in use back unchanged. The rest become *owned*, by
//!    another compare-and-swap each, unless the claim was taken away or the page changed. Their
//!    entries become absent.
//!
//! A claimer must not add to a batch after the barrier: a session could have announced a pin in
//! between.
//!
//! **Failure.** When dropped, [`VictimBatch`] gives back what it holds (rule 6). Claimed frames go
//! back to their pages, owned frames to a freelist. If the system refuses the barrier, all claims
//! are given back.

use crate::core::PoolCore;
use crate::core::frame::{Claimer, Frame, Leaves, NoTake};
use crate::core::pins::PinBoard;
use crate::ids::PageId;
use crate::policy;
use millpond_sync::mutant;

/// The most frames in a batch: the reclaimer's. With 32, a miss takes 2 to 5% longer, because there
/// are four times as many barriers.
pub(crate) const MAX_CLAIMS: usize = 128;

/// The most frames that a session claims at a time when it needs one of them itself: a larger batch
/// would delay it.
pub(crate) const MAX_CLAIMS_ON_THE_WAY: usize = 32;

/// Frames claimed by one claimer, and after [`VictimBatch::settle`] owned by it.
pub(crate) struct VictimBatch<'a> {
    pool: &'a PoolCore,
    by: Claimer,
    /// The freelist that owned frames go to.
    near: usize,
    frames: [u32; MAX_CLAIMS],
    len: usize,
    settled: bool,
}

/// Why claims of a batch failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Frames that turned out to be pinned.
    pub(crate) pinned: usize,
    /// Frames that were pinned, changed or written meanwhile and may soon be free to take; or all
    /// of them, if the barrier was refused.
    pub(crate) otherwise: usize,
    /// The system refused the barrier, so it is unknown which frames are pinned.
    pub(crate) is_refused: bool,
}

impl<'a> VictimBatch<'a> {
    pub(crate) fn none(pool: &'a PoolCore, by: Claimer, near: usize) -> Self {
        Self { pool, by, near, frames: [0; MAX_CLAIMS], len: 0, settled: false }
    }

    pub(crate) fn frames(&self) -> &[u32] {
        &self.frames[..self.len]
    }

    /// Sets the freelist that gets the owned frames when this is dropped.
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

    /// The same, but only if the frame holds `page`.
    pub(crate) fn claim_clean_from(&mut self, number: u32, page: PageId) -> Result<(), NoTake> {
        self.pool.frames[number as usize].claim_clean_from(page, self.by)?;
        self.push(number);
        Ok(())
    }

    /// Claims a frame if it holds `page` and is unpinned, clean or dirty.
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

    /// Turns claims into owned frames; frames that can't be owned leave the batch. With `grace`, a
    /// spent frame that is found pinned gets back its usage count from when the hand first met it
    /// since its last use.
    pub(crate) fn settle(&mut self, leaves: Leaves, grace: bool) -> Lost {
        let claimed = &mut self.frames[..std::mem::take(&mut self.len)];
        self.settled = true;
        let (frames, pins) = (&*self.pool.frames, &self.pool.pins);
        let (owned, lost) = settle(frames, pins, self.by, claimed, leaves, grace);
        self.len = owned;
        lost
    }

    /// Takes one owned frame out. The caller must give it back.
    pub(crate) fn take_out(&mut self) -> Option<u32> {
        debug_assert!(self.settled || self.len == 0, "only claimed");
        self.len = self.len.checked_sub(1)?;
        Some(self.frames[self.len])
    }
}

impl Drop for VictimBatch<'_> {
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

/// Turns claims into owned frames, which it moves to the front of `claimed`. Returns their number.
/// See [`VictimBatch::settle`].
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
            // `unclaim` succeeds once per frame, though several sessions may have it in use.
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

/// The frames of a batch, with a quick test for membership: most pins that a scan meets are of
/// other frames.
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
