//! Replacement: how frames are taken from their pages, many at a time ([`VictimBatch`]).
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
//!
//! [`Owned`] is a frame between two pages: one session, or one load, owns it. [`Backoff`] says how
//! long a session waits for frames that other threads hold.

use self::ring::Ring;
use crate::core::PoolCore;
use crate::core::frame::{Claimer, Frame, Leaves, NoTake, RawPin};
use crate::core::pins::PinBoard;
use crate::core::relation::Loading;
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::ids::PageId;
use crate::policy;
use crate::stats::Histogram;
use millpond_sync::{mutant, thread};

pub(crate) mod evict;
pub(crate) mod reuse;
pub(crate) mod ring;
pub(crate) mod vacate;

/// The most frames in a batch: the reclaimer's. With 32, a miss takes 2 to 5% longer, because there
/// are four times as many barriers.
pub(crate) const MAX_CLAIMS: usize = 128;

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

/// A frame that its holder owns. Dropping it makes the frame free.
pub(crate) struct Owned<'a> {
    pool: &'a PoolCore,
    near: usize,
    number: u32,
    /// The ring of the job that took the frame, which learns the page that comes to it.
    ring: Option<&'a Ring>,
    /// The session that counts the allocation when a page comes, and how many frames it examined
    /// for it.
    allocated: Option<(&'a SessionCore, usize)>,
}

impl<'a> Owned<'a> {
    /// Leaves the frame owned, for the load of `page` that goes on with it. Also returns how many
    /// frames were examined for it, if the allocation is to be counted.
    pub(crate) fn hand_over(mut self, page: PageId) -> (u32, Option<usize>) {
        let examined = self.allocated.take().map(|(_, examined)| examined);
        (self.go_to(page), examined)
    }

    /// Goes on with a frame that was handed over or just taken.
    pub(crate) fn resume(pool: &'a PoolCore, near: usize, number: u32) -> Self {
        if !mutant!("pool-resume-without-fence") {
            pool.frames[number as usize].before_filling();
        }
        Self { pool, near, number, ring: None, allocated: None }
    }

    /// A frame that the session now owns, to be filled on this thread or given back.
    pub(crate) fn taken_by(session: &'a SessionCore, number: u32) -> Self {
        Self::resume(&session.pool, session.near(), number)
    }

    /// Notes that `session` has examined this number of frames to get it.
    pub(crate) fn allocated(mut self, session: &'a SessionCore, examined: usize) -> Self {
        self.allocated = Some((session, examined));
        self
    }

    pub(crate) fn in_ring(mut self, ring: &'a Ring) -> Self {
        ring.hand_out();
        self.ring = Some(ring);
        self
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Checks a page that has been put into the frame.
    #[allow(unsafe_code)]
    pub(crate) fn verify(&mut self, page: PageId) -> Result<(), BufferError> {
        // SAFETY: The frame is OWNED, so only its owner stores to it. The owner is the holder of
        // `self`; there is only one, and it is borrowed until the reference is gone. The store that
        // the page came from is done: it was lent the memory for a call that has returned, or until
        // it has given the memory back (`IoFrames`). Late optimistic readers load atomically, which
        // doesn't collide with our reads.
        let bytes = unsafe { self.pool.arena.bytes(self.number) };
        self.pool.verify(page, bytes)
    }

    /// Gives the frame to a page, which the session has pinned from then on.
    pub(crate) fn publish(
        self,
        session: &SessionCore,
        page: PageId,
        loading: &Loading<'_>,
        usage: u8,
    ) -> u32 {
        let entry = (loading.entry(), loading.before());
        session.pins.publish(self.number, self.coming(), page, entry, usage);
        self.go_to(page)
    }

    /// Gives the frame to a page that no session has asked for. The pin keeps it until the entry is
    /// resident.
    pub(crate) fn publish_kept(
        self,
        page: PageId,
        loading: &Loading<'_>,
        usage: u8,
    ) -> (u32, RawPin<'a>) {
        let entry = (loading.entry(), loading.before());
        let kept = self.coming().publish_kept(page, entry, usage);
        (self.go_to(page), kept)
    }

    /// The frame, to which a page is about to come.
    fn coming(&self) -> &'a Frame {
        let frame = &self.pool.frames[self.number as usize];
        frame.set_loaded_at(self.pool.clock.taken());
        frame
    }

    /// Ends ownership: the page has come, or its load goes on elsewhere.
    fn go_to(self, page: PageId) -> u32 {
        let number = self.number;
        if let Some((session, examined)) = self.allocated {
            session.count_log2(Histogram::Examined, examined as u64);
        }
        if let Some(ring) = self.ring {
            ring.note(number, page);
        }
        std::mem::forget(self);
        number
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        if let Some(ring) = self.ring {
            ring.not_used();
        }
        self.pool.give_back(self.near, &[self.number]);
    }
}

/// How often to yield before sleeping.
const YIELDS: usize = if cfg!(any(miri, shuttle)) { 10 } else { 64 };
/// How often to sleep while sessions have all frames pinned: one of them may be about to unpin.
const NAPS_WHEN_PINNED: usize = if cfg!(test) { 1 } else { 5 };
/// How often to sleep in total: long enough for a descheduled thread on a busy machine, or a
/// device.
const NAPS: usize = if cfg!(shuttle) { 20 } else { 10_000 };
const NAP: std::time::Duration = std::time::Duration::from_millis(1);

/// A session's wait for frames that other threads hold, and when it gives up.
#[derive(Default)]
pub(crate) struct Backoff {
    yields: usize,
    naps: usize,
    /// Naps in a row that found all frames pinned. One look is not enough. It sees the frames one
    /// after the other, and they may never have been pinned all at one time.
    naps_when_pinned: usize,
}

impl Backoff {
    pub(crate) fn has_yielded(&self) -> bool {
        self.yields >= YIELDS
    }

    /// Waits a little; returns `false` at once if further waiting is of no use.
    pub(crate) fn wait(&mut self, all_pinned: bool) -> bool {
        self.naps_when_pinned = if all_pinned { self.naps_when_pinned + 1 } else { 0 };
        if !all_pinned && !self.has_yielded() {
            self.yields += 1;
            thread::yield_now();
            return true;
        }
        self.naps += 1;
        if self.naps > NAPS || self.naps_when_pinned > NAPS_WHEN_PINNED {
            return false;
        }
        thread::sleep(NAP);
        true
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// A look that finds an unpinned frame restarts the count, whether a nap or a yield follows it.
    #[test]
    fn unpinned_frame_restarts_count_of_naps() {
        let mut patience = Backoff::default();
        for _ in 0..2 * YIELDS {
            assert!(patience.wait(true), "the first of a row");
            assert!(patience.wait(false), "not all are pinned");
        }
        (0..NAPS_WHEN_PINNED).for_each(|_| assert!(patience.wait(true)));
        assert!(!patience.wait(true), "the row is long enough");
    }
}
