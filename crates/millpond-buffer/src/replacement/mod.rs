//! Replacement: frames are taken from their pages, for other pages or for good.
//!
//! [`Owned`] is a frame between two pages: one session, or one load, owns it. [`Backoff`] says how
//! long a session waits for frames that other threads hold.

use self::ring::Ring;
use crate::core::PoolCore;
use crate::core::frame::{Frame, RawPin};
use crate::core::loading::Loading;
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::ids::PageId;
use crate::stats::Histogram;
use millpond_sync::mutant;
use millpond_sync::thread;

pub(crate) mod evict;
pub(crate) mod reuse;
pub(crate) mod ring;
pub(crate) mod vacate;
pub(crate) mod victim_batch;

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
