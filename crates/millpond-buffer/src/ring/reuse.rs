//! What becomes of the oldest pages when a ring needs a frame.

use super::{AccessStrategy, GIVEN_TIME_OF_POOL, LEAST_GIVEN_TIME, Ring, Slot};
use crate::claims::MAX_CLAIMS_ON_THE_WAY;
use crate::config::Wait;
use crate::evict::Owned;
use crate::frame::OWNED;
use crate::ids::PageId;
use crate::policy;
use crate::session::BufferSession;

/// How many times its capacity a bulk read's ring may grow while pages wait for the log.
const STRETCH: usize = 4;

/// What is to become of the oldest page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It may go, if its frame can be claimed.
    Goes,
    /// It may go once it has been written.
    Dirty,
    /// It is not the ring's any more.
    Left,
    /// It can't go just now.
    Later,
}

impl Ring {
    /// The oldest frame of a full ring, if it can be had.
    pub(super) fn reuse<'a>(&self, session: &'a BufferSession, wait: Wait) -> Option<Owned<'a>> {
        if let Some(spare) = self.spare_frame(session) {
            return Some(spare);
        }
        if !self.is_full() || self.is_given_time() {
            return None;
        }
        let oldest = self.oldest();
        self.write_dirty(session, &oldest, wait);
        let mut claims = session.no_claims();
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
        session.settle_in_ring(&mut claims);
        for slot in claimed {
            if claims.frames().contains(&slot.frame) {
                self.note_let_go(slot.page);
            } else if session.pins.has(slot.frame)
                && self.pool.frames[slot.frame as usize].holds(slot.page)
            {
                // A claim that came to nothing, and not because somebody else has pinned the page.
                self.keep(slot);
            }
        }
        let first = claims.take_out().map(|number| session.owned(number));
        // Besides the first.
        while self.frames() + 1 < self.size()
            && let Some(number) = claims.take_out()
        {
            self.spare.lock().push(number);
        }
        first
    }

    /// A load whose oldest page waits for the log leaves it the time: its ring becomes longer, as long as it may.
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

    /// Takes the oldest pages out. A ring that has grown too long looks at more, and gives some to everybody.
    fn oldest(&self) -> Vec<Slot> {
        let (frames, size) = (self.frames(), self.size());
        let excess = frames.saturating_sub(size);
        let mut state = self.state.borrow_mut();
        let mut looks = (self.batch() + excess).min(MAX_CLAIMS_ON_THE_WAY).min(state.slots.len());
        if self.strategy == AccessStrategy::BulkWrite && frames < self.most_given_time() {
            // Those after them may have time.
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

    fn verdict(&self, session: &BufferSession, slot: Slot) -> Verdict {
        let frame = &self.pool.frames[slot.frame as usize];
        // A frame that was taken keeps its tag until it gets another page, which may be never.
        if !frame.holds(slot.page) || frame.state() & OWNED != 0 {
            return Verdict::Left;
        }
        if policy::usage_count(frame.usage()) > 1 || frame.is_pinned() {
            // A pin of the job's own is for a moment; others' mean that they use it.
            let ours = session.pins.has(slot.frame);
            return if ours { Verdict::Later } else { Verdict::Left };
        }
        match frame.is_dirty() {
            true if self.must_wait_for_log(slot.frame) => self.later_or_never(slot),
            true => Verdict::Dirty,
            false => Verdict::Goes,
        }
    }

    /// Writes those of the pages that are to go and are dirty, neighbours joined. What can't be written stays dirty.
    fn write_dirty(&self, session: &BufferSession, oldest: &[Slot], wait: Wait) {
        if wait == Wait::Never {
            return;
        }
        let is_dirty = |slot: &&Slot| self.verdict(session, **slot) == Verdict::Dirty;
        let dirty = oldest.iter().filter(is_dirty).map(|slot| (slot.page, slot.frame));
        if let Err(error) = session.write_victims(dirty.collect()) {
            tracing::debug!(%error, "a ring's page stays dirty");
        }
    }

    /// Whether writing the page would have to wait for the log, which a bulk read doesn't.
    fn must_wait_for_log(&self, frame: u32) -> bool {
        self.is_read() && self.waits_for_log(frame)
    }

    fn waits_for_log(&self, frame: u32) -> bool {
        // The page may be changing: then the answer is about now or about just before.
        self.pool.lsn_hint(frame) > self.pool.log.flushed()
    }

    fn later_or_never(&self, slot: Slot) -> Verdict {
        // With this one, and the one that is about to come.
        if self.len() + 1 < STRETCH * self.capacity {
            return Verdict::Later;
        }
        self.demote(slot);
        Verdict::Left
    }

    /// Makes a page that is the ring's alone one of the sweep's next victims.
    pub(super) fn demote(&self, slot: Slot) {
        let frame = &self.pool.frames[slot.frame as usize];
        if frame.holds(slot.page) && frame.usage() <= policy::FIRST_USAGE && !frame.is_pinned() {
            // What must be written is left to the reclaimer, by way of the hand.
            let probation = self.pool.probation.as_ref().filter(|_| !frame.is_dirty());
            frame.set_usage(if probation.is_some() { policy::UNWANTED } else { 0 });
            if let Some(probation) = probation {
                probation.push_oldest(slot.frame, self.pool.frames());
            }
        }
    }
}
