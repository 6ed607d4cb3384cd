//! Rings: bulk work goes round in a few frames of its own (rule 11).
//!
//! Whoever reads a large table once, loads one, or vacuums one, uses each page for a moment. Through the
//! common sweep it would push out everybody's pages. So it keeps a *ring*: the pages that it brought in, in
//! that order. When it needs a frame and has as many as its ring holds, the oldest goes.
//!
//! ```text
//!   oldest                                             newest
//!   [page 7][page 8][page 9] ... [page 38]   ring of 32: page 39 goes where page 7 is,
//!      |                                     unless others use that, or have taken it:
//!      +-> reused, or left to those who use it   then into a frame from the common sweep
//! ```
//!
//! **State.** A ring belongs to one job, on one thread at a time; nobody else sees it. It holds numbers of
//! frames with the pages that it put there, and now and then a frame that it owns already. Frames don't know
//! that they are in a ring: everybody else treats them as any other. The frames that it owns are under a lock,
//! for others who take them back: a pool that becomes smaller those beyond its size, and who finds no other frame all of them (rule 10).
//!
//! **What becomes of the oldest page**
//!
//! | it | so |
//! |---|---|
//! | is clean, used by nobody else | its frame is taken |
//! | is dirty | it is written first; but by a bulk read only if its log is flushed: else it stays for later |
//! | is being written, is dirty and can't be written just now, or is pinned by the job itself | it stays for later |
//! | is in use: usage above 1, or pinned or latched by others | it leaves the ring, which gets another frame by the sweep |
//! | is gone: the sweep has taken its frame | the same |
//!
//! **How long.** A ring's size is a promise of how many pages a job occupies at most, not of how many it needs; who reads
//! points beside it pays for each. So a ring is as short as it can be. One with room for what is read ahead uses of it twice
//! what its stream is ahead. A load's has 1 MB, and becomes longer while its oldest page waits for the log, up to what
//! the configuration says or a 128th of the pool (2 MB, if that is more): only then is the log waited for (ADR 16). One for
//! pages in no order becomes longer by some for each page that comes back soon after it was let go of.
//!
//! **No leak.** Pages that stay for later make the ring longer, and a longer ring lets go of all that it has too many with its
//! next batches, of up to 32, until it is as long as it should be. So the pages that a job has brought in and that
//! nobody else uses are those in its ring. A bulk read in which everything waits for the log (it prunes, say) gives
//! pages up once the ring is `STRETCH` times its capacity. What is given up unused counts as never used: clean, it is the first
//! that the next to need room finds, dirty, the hand's next; so is everything in the ring when the job ends.
//!
//! **Usage.** Strategy pins and reads raise none, so however many scans share a page, and however often they come round,
//! they don't make it look wanted: see [`Frame::used`](crate::frame::Frame::used). (If they raised it from 0 to
//! 1, as PostgreSQL's do, a scan that comes again sooner than the hand would keep each page of its table that it finds
//! in memory, and `examples/beside.rs` would show the others' hit ratio fall by three points.)
//!
//! **Nor are they forgotten.** A page that a ring brings and lets go of leaves with the time at which it left before, if
//! that was known: who wants it again soon after that finds it admitted ([`crate::policy`]), as if the job had not been there. (If the
//! ring let that be forgotten, a scan that comes round sooner than pages come back would keep probation from knowing any of those.)
//! One that the sweep or the reclaimer takes before its ring comes round leaves as any other page.
//!
//! **Free frames.** While the pool has more free frames than twice what the reclaimer keeps in reserve at most, a job takes those and
//! leaves them outside of its ring: nobody's page goes for them. It does so only until its ring has begun: later, what is
//! free may be what the ring has just given back.
//!
//! **Batches.** Taking a frame costs a look at every session's pins, which is shared by frames taken together
//! ([`crate::claims`]). So a ring lets go of up to a quarter of its pages at a time, and keeps the frames; and it
//! writes those of them that are dirty in file order, neighbours joined.
//!
//! **Failure.** A page that can't be written stays in the ring; the sweep reports the error if it finds nothing else.
//! A panic on the way loses the pages that were looked at, up to 32, from the ring, not from the pool.

mod reuse;
mod strategy;

pub use strategy::{AccessStrategy, RingSizes};

use crate::claims::MAX_CLAIMS_ON_THE_WAY;
use crate::config::Wait;
use crate::error::BufferError;
use crate::evict::Owned;
use crate::ids::PageId;
use crate::pool::BufferPool;
use crate::session::BufferSession;
use crate::stats::IoContext;
use millpond_sync::sync::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

/// A ring has at most this part of the pool.
const MOST_OF_POOL: usize = if cfg!(shuttle) { 2 } else { 8 };
/// The part of its pages that a ring lets go of at a time, so that they share what it costs to make sure that
/// nobody has them pinned, and so that neighbours are written together.
const RING_PER_BATCH: usize = 4;
/// What a load's ring has while its log is flushed in time: 1 MB.
const LEAST_TO_WRITE: usize = 128;
/// How long it becomes rather than wait for the log: this part of the pool, or 2 MB if that is more: room for what
/// is being synced and for as much that gathers meanwhile. Beyond, who reads points beside it would lose more than it wins.
const GIVEN_TIME_OF_POOL: usize = 128;
const LEAST_GIVEN_TIME: usize = 256;
/// How many pages a ring gets more for each that it let go too early.
const WIDEN: usize = 4;

/// In a place where no page is noted: there is no fork 15.
const NOBODY: u64 = u64::MAX;

/// A page that the ring's job brought in.
#[derive(Debug, Clone, Copy)]
struct Slot {
    frame: u32,
    page: PageId,
}

/// Frames that a ring owns: taken together with one that was needed. A pool that becomes smaller takes them back,
/// so that it need not wait for a job that is idle, and so does who finds no other frame; nobody else asks for the lock.
type Spare = Mutex<Vec<u32>>;

/// The spare frames of all rings of a pool.
#[derive(Default)]
pub(crate) struct Spares(Mutex<Vec<Weak<Spare>>>);

impl Spares {
    fn add(&self, spare: &Arc<Spare>) {
        let mut all = self.0.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(spare));
    }

    /// Takes away the frames beyond a size.
    pub(crate) fn beyond(&self, size: usize) -> Vec<u32> {
        let rings: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let mut taken = Vec::new();
        for spare in rings {
            taken.extend(spare.lock().extract_if(.., |number| *number as usize >= size));
        }
        taken
    }
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    slots: VecDeque<Slot>,
    /// Frames that have been handed out, and for which no page has been noted yet.
    out: usize,
}

/// A job's ring of frames (rule 11). It belongs to one job, on one thread at a time, which passes it with each call; dropping it
/// ends the job. A relation whose pages were brought in through it is not tied to it: others find them as any other.
pub struct Ring {
    pool: Arc<BufferPool>,
    strategy: AccessStrategy,
    /// The bounds of its size.
    least: usize,
    capacity: usize,
    /// What its size has grown to.
    grown: Cell<usize>,
    /// How far its job reads ahead.
    ahead: Cell<usize>,
    /// The pages that it let go of lately, by a hash of theirs; empty if it doesn't ask.
    let_go: RefCell<Box<[u64]>>,
    spare: Arc<Spare>,
    state: RefCell<State>,
}

impl Ring {
    /// A ring of the size that the pool's configuration says; `None` if there is to be none.
    #[must_use]
    pub fn new(pool: &Arc<BufferPool>, strategy: AccessStrategy) -> Option<Self> {
        Self::with_pages(pool, strategy, pool.config.ring_sizes.pages(strategy))
    }

    /// A ring of that many pages, but at most an eighth of the pool; `None` if that is none. (That of a
    /// bulk write has fewer as long as its log is flushed in time.)
    #[must_use]
    pub fn with_pages(
        pool: &Arc<BufferPool>,
        strategy: AccessStrategy,
        pages: usize,
    ) -> Option<Self> {
        let least = if strategy == AccessStrategy::BulkWrite { LEAST_TO_WRITE } else { pages };
        Self::between(pool, strategy, least, pages)
    }

    /// A ring of that many pages, and as many more as its job reads `ahead`, if it comes to that.
    #[must_use]
    pub fn with_read_ahead(
        pool: &Arc<BufferPool>,
        strategy: AccessStrategy,
        pages: usize,
        ahead: usize,
    ) -> Option<Self> {
        Self::between(pool, strategy, pages, pages.saturating_add(ahead))
    }

    /// A ring for pages in no order, some of them wanted again and again: it begins with that many, and becomes longer
    /// as pages come back that it has let go of, up to an eighth of the pool.
    #[must_use]
    pub fn widening(
        pool: &Arc<BufferPool>,
        strategy: AccessStrategy,
        pages: usize,
    ) -> Option<Self> {
        let ring = Self::between(pool, strategy, pages, usize::MAX)?;
        let places = ring.capacity.next_power_of_two();
        ring.let_go.replace(vec![NOBODY; places].into_boxed_slice());
        Some(ring)
    }

    fn between(
        pool: &Arc<BufferPool>,
        strategy: AccessStrategy,
        least: usize,
        most: usize,
    ) -> Option<Self> {
        let capacity = most.min(pool.frames() / MOST_OF_POOL);
        if strategy == AccessStrategy::Normal || capacity == 0 || least == 0 {
            return None;
        }
        let spare = Arc::new(Spare::default());
        pool.spares.add(&spare);
        Some(Self {
            pool: Arc::clone(pool),
            strategy,
            least: least.min(capacity),
            capacity,
            grown: Cell::new(0),
            ahead: Cell::new(0),
            let_go: RefCell::default(),
            spare,
            state: RefCell::default(),
        })
    }

    /// What it is for.
    #[must_use]
    pub fn strategy(&self) -> AccessStrategy {
        self.strategy
    }

    /// How many pages it has at most (apart from those that wait for the log).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many pages it has at most just now.
    fn size(&self) -> usize {
        self.least.max(self.grown.get()).max(2 * self.ahead.get()).min(self.capacity)
    }

    /// How many pages it lets go of at a time.
    fn batch(&self) -> usize {
        self.size().div_ceil(RING_PER_BATCH).min(MAX_CLAIMS_ON_THE_WAY)
    }

    /// Its job reads so many pages ahead from now on.
    pub(crate) fn set_ahead(&self, pages: usize) {
        self.ahead.set(pages);
    }

    /// In what context its input and output are counted.
    pub(crate) fn io_context(&self) -> IoContext {
        self.strategy.io_context()
    }

    /// How many pages it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.borrow().slots.len()
    }

    /// Whether it has none yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many frames it owns.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn spare_frames(&self) -> usize {
        self.spare.lock().len()
    }

    /// How many pages its job may read ahead of use: more would push out each other.
    #[must_use]
    pub fn read_ahead_pages(&self) -> usize {
        (self.capacity / 2).max(1)
    }

    /// A frame for the job's next page.
    pub(crate) fn frame<'a>(
        &'a self,
        session: &'a BufferSession,
        wait: Wait,
    ) -> Result<Owned<'a>, BufferError> {
        // Its frames are numbers, which another pool would take for frames of its own.
        if session.pool.number() != self.pool.number() {
            return Err(BufferError::ForeignRing);
        }
        // Once it has frames of its own, what is free may be what it has just given to everybody: a job that took that for
        // room would have its ring, and what the ring has let go of, too.
        if self.frames() == 0
            && self.pool.has_surplus()
            && let Some(free) = session.free_frame()
        {
            return Ok(free);
        }
        let owned = match self.reuse(session, wait) {
            Some(owned) => owned,
            // What is in the way is dirty, and would be written for who may wait. A read has a reason not to
            // write: then its ring grows.
            None if wait == Wait::Never && self.is_full() && !self.is_read() => {
                return Err(BufferError::WouldBlock);
            }
            None => session.common_frame(wait)?,
        };
        Ok(owned.in_ring(self))
    }

    /// How many frames the job has.
    fn frames(&self) -> usize {
        let state = self.state.borrow();
        state.slots.len() + state.out + self.spare.lock().len()
    }

    fn is_full(&self) -> bool {
        self.frames() >= self.size()
    }

    /// A frame that the ring owns already.
    fn spare_frame<'a>(&self, session: &'a BufferSession) -> Option<Owned<'a>> {
        loop {
            let number = self.spare.lock().pop()?;
            if (number as usize) < self.pool.frames() {
                return Some(session.owned(number));
            }
            // The pool has become smaller.
            self.pool.give_back(session.near(), &[number]);
        }
    }

    fn is_read(&self) -> bool {
        self.strategy == AccessStrategy::BulkRead
    }

    /// The job gets a frame.
    pub(crate) fn hand_out(&self) {
        self.state.borrow_mut().out += 1;
    }

    /// The job has had no use for a frame.
    pub(crate) fn not_used(&self) {
        self.state.borrow_mut().out -= 1;
    }

    /// The job's page is now in the frame that it got, or on its way there.
    pub(crate) fn note(&self, frame: u32, page: PageId) {
        let mut state = self.state.borrow_mut();
        state.slots.push_back(Slot { frame, page });
        state.out -= 1;
        let place = self.place(page);
        if let Some(known) = self.let_go.borrow_mut().get_mut(place)
            && *known == page.raw()
        {
            *known = NOBODY;
            self.grown.set((self.size() + WIDEN).min(self.capacity));
        }
    }

    /// Where it is noted that the page was let go of.
    fn place(&self, page: PageId) -> usize {
        let places = self.let_go.borrow().len().max(1);
        (page.raw().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % places
    }
}

impl Drop for Ring {
    /// The job has ended: what nobody else has used is for the next who needs room.
    fn drop(&mut self) {
        let State { slots, .. } = std::mem::take(&mut *self.state.borrow_mut());
        slots.into_iter().for_each(|slot| self.demote(slot));
        let spare = std::mem::take(&mut *self.spare.lock());
        let near = spare.first().map_or(0, |&frame| frame as usize);
        self.pool.give_back(near, &spare);
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("strategy", &self.strategy)
            .field("capacity", &self.capacity)
            .field("pages", &self.len())
            .finish_non_exhaustive()
    }
}
