//! Where a page gets its frame ([`take_frame`]): from the common sweep, or from its job's ring.
//!
//! A full ring takes the frames of its oldest pages, several at a time ([`Ring::reuse`]).
//! A [`Verdict`] says what happens to each of these pages. A clean page that only the ring uses
//! goes. A dirty one is written first; a bulk read keeps it while its log is not flushed. A page
//! that others use leaves the ring, and so does one whose frame the sweep has taken.
//! [`super::ring`] has the reasons and the sizes of rings.

use super::evict;
use super::ring::{GIVEN_TIME_OF_POOL, LEAST_GIVEN_TIME, Ring, Slot};
use crate::config::{AccessStrategy, Wait};
use crate::core::frame::OWNED;
use crate::core::session::{MAX_CLAIMS_ON_THE_WAY, SessionCore};
use crate::error::BufferError;
use crate::ids::PageId;
use crate::policy;
use crate::replacement::Owned;
use crate::write_back::async_write::write_victims;

/// How many times its capacity a bulk read's ring may have while pages wait for the log.
const STRETCH: usize = 4;

/// What happens to the oldest page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It may go, if its frame can be claimed.
    Goes,
    /// It may go once it has been written.
    Dirty,
    /// It is no longer the ring's.
    Left,
    /// It can't go now.
    Later,
}

/// Takes a frame for a page: from `ring`, if the session has one for this job.
pub(crate) fn take_frame<'a>(
    session: &'a SessionCore,
    wait: Wait,
    ring: Option<&'a Ring>,
) -> Result<Owned<'a>, BufferError> {
    match ring {
        Some(ring) => ring.frame(session, wait),
        None => evict::common_frame(session, wait),
    }
}

impl Ring {
    /// A frame for the job's next page.
    pub(crate) fn frame<'a>(
        &'a self,
        session: &'a SessionCore,
        wait: Wait,
    ) -> Result<Owned<'a>, BufferError> {
        // Frames are numbers here. Another pool would take them for its own.
        if session.pool.number != self.pool.number {
            return Err(BufferError::ForeignRing);
        }
        // Only for a ring without frames. Later, the free frames may be those that the ring itself
        // let go. A job that took them would use them in addition to its ring.
        if self.frames() == 0
            && self.pool.has_surplus()
            && let Some(free) = evict::free_frame(session)
        {
            return Ok(free);
        }
        let owned = match self.reuse(session, wait) {
            Some(owned) => owned,
            // The pages in the way are dirty; a session that may wait would write them. A read has
            // a reason not to write, so its ring grows.
            None if wait == Wait::Never && self.is_full() && !self.is_read() => {
                return Err(BufferError::WouldBlock);
            }
            None => evict::common_frame(session, wait)?,
        };
        Ok(owned.in_ring(self))
    }

    /// A frame that the ring already owns.
    fn spare_frame<'a>(&self, session: &'a SessionCore) -> Option<Owned<'a>> {
        loop {
            let number = self.reserve.lock().pop()?;
            if (number as usize) < self.pool.frames() {
                return Some(Owned::taken_by(session, number));
            }
            // The pool has shrunk.
            self.pool.give_back(session.near(), &[number]);
        }
    }

    /// The oldest frame of a full ring, if the ring can have it.
    fn reuse<'a>(&self, session: &'a SessionCore, wait: Wait) -> Option<Owned<'a>> {
        if let Some(spare) = self.spare_frame(session) {
            return Some(spare);
        }
        if !self.is_full() || self.is_given_time() {
            return None;
        }
        let oldest = self.oldest();
        self.write_dirty(session, &oldest, wait);
        let mut claims = evict::no_claims(session);
        let mut claimed = Vec::with_capacity(oldest.len());
        for slot in oldest {
            match self.verdict(session, slot) {
                Verdict::Goes if claims.claim_clean_from(slot.frame, slot.page).is_ok() => {
                    claimed.push(slot);
                }
                Verdict::Goes | Verdict::Dirty | Verdict::Later => self.keep(slot),
                Verdict::Left => {}
            }
        }
        evict::settle_in_ring(session, &mut claims);
        for slot in claimed {
            if claims.frames().contains(&slot.frame) {
                self.note_let_go(slot.page);
            } else if session.pins.has(slot.frame)
                && self.pool.frames[slot.frame as usize].holds(slot.page)
            {
                // The claim failed, but not because another session has pinned the page.
                self.keep(slot);
            }
        }
        let first = claims.take_out().map(|number| Owned::taken_by(session, number));
        // One more for `first`, which the caller gets.
        while self.frames() + 1 < self.size()
            && let Some(number) = claims.take_out()
        {
            self.reserve.lock().push(number);
        }
        first
    }

    /// Whether a load's oldest page waits for the log and its ring may still grow. Growing gives
    /// the log time. Sets the ring's size accordingly.
    fn is_given_time(&self) -> bool {
        if self.strategy != AccessStrategy::BulkWrite {
            return false;
        }
        let is_late = self.front_waits_for_log();
        let size = self.size();
        let most = self.most_given_time();
        self.grown.set(if is_late { (size + self.batch()).min(most) } else { 0 });
        is_late && size < most
    }

    /// How long a load's ring may become while its oldest page waits for the log.
    fn most_given_time(&self) -> usize {
        let part = self.pool.frames() / GIVEN_TIME_OF_POOL;
        part.max(LEAST_GIVEN_TIME).min(self.capacity)
    }

    fn front_waits_for_log(&self) -> bool {
        let front = self.state.borrow().slots.front().copied();
        front.is_some_and(|slot| self.waits_for_log(slot.frame))
    }

    /// Takes the oldest pages out: more of them if the ring is too long, to free the excess frames.
    fn oldest(&self) -> Vec<Slot> {
        let (frames, size) = (self.frames(), self.size());
        let excess = frames.saturating_sub(size);
        let mut state = self.state.borrow_mut();
        let mut looks = (self.batch() + excess).min(MAX_CLAIMS_ON_THE_WAY).min(state.slots.len());
        if self.strategy == AccessStrategy::BulkWrite && frames < self.most_given_time() {
            // The pages after the first unflushed one may have time.
            let flushed = |slot: &&Slot| !self.waits_for_log(slot.frame);
            looks = state.slots.iter().take(looks).take_while(flushed).count();
        }
        state.slots.drain(..looks).collect()
    }

    fn note_let_go(&self, page: PageId) {
        let place = self.place(page);
        if let Some(known) = self.let_go.borrow_mut().get_mut(place) {
            *known = page.raw();
        }
    }

    fn keep(&self, slot: Slot) {
        self.state.borrow_mut().slots.push_back(slot);
    }

    fn verdict(&self, session: &SessionCore, slot: Slot) -> Verdict {
        let frame = &self.pool.frames[slot.frame as usize];
        // A taken frame keeps its tag until it gets another page, if ever.
        if !frame.holds(slot.page) || frame.state() & OWNED != 0 {
            return Verdict::Left;
        }
        if policy::usage_count(frame.usage()) > 1 || frame.is_pinned() {
            // The job's own pin lasts only for a moment. Others' pins mean that they use the page.
            let ours = session.pins.has(slot.frame);
            return if ours { Verdict::Later } else { Verdict::Left };
        }
        match frame.is_dirty() {
            true if self.must_wait_for_log(slot.frame) => self.later_or_never(slot),
            true => Verdict::Dirty,
            false => Verdict::Goes,
        }
    }

    /// Writes those pages that are to go and are dirty, neighbours joined. Pages it can't write
    /// stay dirty.
    fn write_dirty(&self, session: &SessionCore, oldest: &[Slot], wait: Wait) {
        if wait == Wait::Never {
            return;
        }
        let is_dirty = |slot: &&Slot| self.verdict(session, **slot) == Verdict::Dirty;
        let dirty = oldest.iter().filter(is_dirty).map(|slot| (slot.page, slot.frame));
        if let Err(error) = write_victims(session, dirty.collect()) {
            tracing::debug!(%error, "could not write a page of a ring; it stays dirty");
        }
    }

    /// Whether writing the page would have to wait for the log, which a bulk read does not do.
    fn must_wait_for_log(&self, frame: u32) -> bool {
        self.is_read() && self.waits_for_log(frame)
    }

    fn waits_for_log(&self, frame: u32) -> bool {
        // The page may be changing. The answer is then that of now or of just before.
        self.pool.lsn_hint(frame) > self.pool.log.flushed()
    }

    fn later_or_never(&self, slot: Slot) -> Verdict {
        // Counts this page and the one that is about to come.
        if self.len() + 1 < STRETCH * self.capacity {
            return Verdict::Later;
        }
        self.demote(slot);
        Verdict::Left
    }
}
