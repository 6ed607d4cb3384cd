//! A frame between two pages: one session, or one load, owns it.

use crate::core::frame::{Frame, RawPin};
use crate::core::loading::Loading;
use crate::core::pool::PoolCore;
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::ids::PageId;
use crate::replacement::ring::Ring;
use crate::stats::Histogram;
use millpond_sync::mutant;

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
