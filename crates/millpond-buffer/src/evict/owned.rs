//! A frame between two pages: nobody's but the session's that has it.

use crate::frame::{Frame, RawPin};
use crate::ids::PageId;
use crate::load::Loading;
use crate::pool::BufferPool;
use crate::ring::Ring;
use crate::session::BufferSession;
use crate::stats::Histogram;
use millpond_sync::mutant;

/// A frame that belongs to this session. Dropped, it is free.
pub(crate) struct Owned<'a> {
    pool: &'a BufferPool,
    near: usize,
    number: u32,
    /// Of the job that took it: it learns which page comes.
    ring: Option<&'a Ring>,
    /// Who counts it when a page comes, as one for which so many frames have been examined.
    allocated: Option<(&'a BufferSession, usize)>,
}

impl<'a> Owned<'a> {
    /// Leaves the frame owned, for whoever goes on with it to load `page`; and to count it, if it is to be counted, as one for which so
    /// many frames have been examined.
    pub(crate) fn hand_over(mut self, page: PageId) -> (u32, Option<usize>) {
        let examined = self.allocated.take().map(|(_, examined)| examined);
        (self.go_to(page), examined)
    }

    /// Goes on with a frame that was handed over, or taken just now.
    pub(crate) fn resume(pool: &'a BufferPool, near: usize, number: u32) -> Self {
        if !mutant!("pool-resume-without-fence") {
            pool.frames[number as usize].before_filling();
        }
        Self { pool, near, number, ring: None, allocated: None }
    }

    /// For `session`, which has examined so many frames to have it.
    pub(crate) fn allocated(mut self, session: &'a BufferSession, examined: usize) -> Self {
        self.allocated = Some((session, examined));
        self
    }

    /// For a job with a ring.
    pub(crate) fn in_ring(mut self, ring: &'a Ring) -> Self {
        ring.hand_out();
        self.ring = Some(ring);
        self
    }

    /// Which frame.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Gives the frame to a page, which the session has pinned from then on.
    pub(crate) fn publish(
        self,
        session: &BufferSession,
        page: PageId,
        loading: &Loading<'_>,
        usage: u8,
    ) -> u32 {
        let entry = (loading.entry(), loading.before());
        self.coming().publish_pinned(self.number, &session.pins, page, entry, usage);
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

    /// The frame, to which a page comes now.
    fn coming(&self) -> &'a Frame {
        let frame = &self.pool.frames[self.number as usize];
        frame.set_loaded_at(self.pool.clock.taken());
        frame
    }

    /// The page comes, or is on its way.
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
