//! Rings (PostgreSQL's access strategies): bulk work reuses a few frames of its own (rule 11).
//!
//! A job that reads a large table once, loads one, or vacuums one uses each page only for a moment.
//! Through the common sweep, it would push out the pages of all other sessions. So the job keeps a
//! *ring*: the pages that it brought in, in that order. When it needs a frame and has as many as
//! its ring holds, the oldest page goes.
//!
//! ```text
//!   oldest                                             newest
//!   [page 7][page 8][page 9] ... [page 38]   ring of 32: page 39 goes where page 7 is,
//!      |                                     unless other sessions use that, or have taken it:
//!      +-> reused, or left to its users          then into a frame from the common sweep
//! ```
//!
//! **State.** A ring belongs to one job, on one thread at a time; no other thread sees it. It holds
//! numbers of frames with the pages that the job put there, and sometimes frames that it owns
//! already. A frame does not know that it is in a ring: other sessions treat it as any other. The
//! owned frames are under a lock, because others take them back. A pool that shrinks takes those
//! beyond its size. A session that finds no other frame takes all of them (rule 10).
//!
//! **What happens to the oldest page**
//!
//! - Clean, and used by no other session: the ring takes its frame.
//! - Dirty: it is written first. But a bulk read writes it only if its log is flushed; otherwise it
//!   stays for later.
//! - Being written, dirty and not writable now, or pinned by the job itself: it stays for later.
//! - In use (a usage above 1, or pinned or latched by others): it leaves the ring, which gets
//!   another frame by the sweep.
//! - Gone, because the sweep has taken its frame: the ring gets another frame by the sweep, too.
//!
//! **How long.** A ring's size bounds how many pages a job occupies; it does not say how many it
//! needs. Each page costs the sessions that read single rows meanwhile. So a ring is as short as it
//! can be:
//!
//! - A ring with room for read-ahead uses only twice as many pages as its stream is ahead.
//! - A load's ring has 1 MB. It grows while its oldest page waits for the log. Its limit is a
//!   128th of the pool (2 MB, if that is more), but at most the configured size. Only at the limit
//!   does the load wait for the log (ADR 16).
//! - A ring for pages in no order grows by some for each page that comes back soon.
//!
//! **No leak.** Pages that stay for later make the ring longer than it should be. Its next batches,
//! of up to 32 pages, then also let go of the excess. So the pages that a job has brought in and
//! that no other session uses are those in its ring. In a bulk read, all pages may wait for the
//! log, for instance because it prunes. It gives pages up once the ring is `STRETCH` times its
//! capacity. A page given up unused counts as never used. If it is clean, it is the next victim; if
//! it is dirty, the hand takes it next. So it is with everything in the ring when the job ends.
//!
//! **Usage.** Pins and reads with a ring raise no usage count. So a page does not look wanted,
//! however many scans share it and however often they come round: see
//! [`Frame::used`](crate::core::frame::Frame::used). (PostgreSQL's strategies raise it from 0 to 1.
//! Then a scan that comes again sooner than the hand would keep each page of its table that it
//! finds in memory. The others' hit ratio would fall by three points.)
//!
//! **History is kept.** A page that a ring brings in and lets go keeps the time at which it left
//! before, if that was known. If it is wanted again soon after that time, it is admitted
//! ([`crate::policy`]), as if the job had not been there. (Otherwise, a scan that comes round
//! sooner than pages come back would hide all of these from probation.) A page that the sweep or
//! the reclaimer takes before its ring comes round leaves as any other page.
//!
//! **Free frames.** While the pool has many free frames, a job takes those and leaves them outside
//! of its ring. No page has to leave for them. "Many" is more than twice what the reclaimer keeps
//! in reserve at most. The job does so only until its ring has begun. Later, the free frames may be
//! those that the ring has just given back.
//!
//! **Batches.** Taking a frame costs a look at every session's pins, which frames taken together
//! share ([`crate::replacement`]). So a ring lets go of up to a quarter of its pages
//! at a time, and keeps the frames. It writes the dirty ones among them in file order, neighbours
//! joined.
//!
//! **Failure.** A page that can't be written stays in the ring. The sweep reports the error if it
//! finds no other frame. After a panic, up to 32 pages that were being looked at are missing from
//! the ring, not from the pool.

use crate::config::AccessStrategy;
use crate::core::PoolCore;
use crate::core::free_frames::Reserve;
use crate::core::session::MAX_CLAIMS_ON_THE_WAY;
use crate::ids::PageId;
use crate::policy;
use crate::stats::IoContext;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A ring has at most this part of the pool.
const MOST_OF_POOL: usize = if cfg!(shuttle) { 2 } else { 8 };
/// The part of its pages that a ring lets go of at a time. These share the cost of making sure that
/// no session has them pinned, and neighbours among them are written together.
const RING_PER_BATCH: usize = 4;
/// The size of a load's ring while its log is flushed in time: 1 MB.
const LEAST_TO_WRITE: usize = 128;
/// How long a load's ring may become before the load waits for the log. It is this part of the
/// pool, or 2 MB if that is more. It has room for what is being synced and as much again that
/// gathers meanwhile. More would cost sessions that read single rows more than the load gains.
pub(crate) const GIVEN_TIME_OF_POOL: usize = 128;
pub(crate) const LEAST_GIVEN_TIME: usize = 256;
/// How many pages a ring grows for each page that it let go too early.
const WIDEN: usize = 4;

/// Marks a place where no page is noted: there is no fork 15.
const NO_OWNER: u64 = u64::MAX;

/// A page that the ring's job brought in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(super) frame: u32,
    pub(super) page: PageId,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Oldest first.
    pub(super) slots: VecDeque<Slot>,
    /// The number of frames that were handed out and for which no page has been noted yet.
    pub(super) out: usize,
}

/// A job's ring of frames (rule 11). It belongs to one job, on one thread at a time, which passes
/// it with each call; dropping it ends the job. The pages that a job brings in are not tied to its
/// ring: other sessions find them as any other.
///
/// | strategy | for | pages ([`PoolConfig::ring_sizes`]), at most an eighth of the pool |
/// |---|---|---|
/// | `BulkRead` | scans of more than a quarter of the pool | 32 (256 kB) |
/// | `BulkWrite` | loads, index builds | 2048 (16 MB), of which it uses few: see below |
/// | `Vacuum` | visits to every page | 256 (2 MB) |
///
/// A bulk write uses 128 pages while its log is flushed in time. Otherwise it uses at most 256, or
/// a 128th of the pool if that is more.
///
/// Sessions that read points beside a job pay for each page of its ring, so a ring is as short as
/// it can be. A job whose ring is empty takes free frames while more than a thirty-second of the
/// pool is free. Its ring stays empty. `cargo xtask bench bulk --selects` counts what a
/// scan, an index scan, VACUUM and a load cost the sessions beside them.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// // `None` if the configuration allows no such rings, or if the relation is small.
/// let ring = match pool.is_large(rel.block_count()) {
///     true => Ring::new(&pool, AccessStrategy::BulkRead),
///     false => None,
/// };
/// for block in (0..rel.block_count()).map(BlockNumber) {
///     session.read_with(&rel, block, Wait::Allowed, ring.as_ref(), |page| page.u64(16))?;
/// }
/// drop(ring); // The job has ended: its pages that no other session used are the next victims.
/// # Ok::<(), BufferError>(())
/// ```
///
/// [`PoolConfig::ring_sizes`]: crate::PoolConfig::ring_sizes
pub struct Ring {
    pub(super) pool: Arc<PoolCore>,
    pub(super) strategy: AccessStrategy,
    /// The least and the most pages.
    pub(super) least: usize,
    pub(super) capacity: usize,
    /// The size to which it has grown.
    pub(super) grown: Cell<usize>,
    /// How many pages its job reads ahead.
    pub(super) ahead: Cell<usize>,
    /// The pages that it let go of lately, by a hash of their ids. Empty unless the ring widens.
    pub(super) let_go: RefCell<Box<[u64]>>,
    pub(super) reserve: Arc<Reserve>,
    pub(super) state: RefCell<State>,
}

impl Ring {
    /// The least pages of a ring of `pages` pages: a load's begins short.
    pub(crate) fn least_pages(strategy: AccessStrategy, pages: usize) -> usize {
        if strategy == AccessStrategy::BulkWrite { LEAST_TO_WRITE } else { pages }
    }

    /// A ring that grows from `pages` pages as pages come back that it has let go of.
    pub(crate) fn that_widens(
        pool: &Arc<PoolCore>,
        strategy: AccessStrategy,
        pages: usize,
    ) -> Option<Self> {
        let ring = Self::between(pool, strategy, pages, usize::MAX)?;
        let places = ring.capacity.next_power_of_two();
        ring.let_go.replace(vec![NO_OWNER; places].into_boxed_slice());
        Some(ring)
    }

    /// A ring that may have from `least` to `most` pages, but at most an eighth of the pool.
    pub(crate) fn between(
        pool: &Arc<PoolCore>,
        strategy: AccessStrategy,
        least: usize,
        most: usize,
    ) -> Option<Self> {
        let capacity = most.min(pool.frames() / MOST_OF_POOL);
        if strategy == AccessStrategy::Normal || capacity == 0 || least == 0 {
            return None;
        }
        let reserve = Arc::new(Reserve::default());
        pool.reserves.add(&reserve);
        Some(Self {
            pool: Arc::clone(pool),
            strategy,
            least: least.min(capacity),
            capacity,
            grown: Cell::new(0),
            ahead: Cell::new(0),
            let_go: RefCell::default(),
            reserve,
            state: RefCell::default(),
        })
    }

    /// What the ring is for.
    #[must_use]
    pub fn strategy(&self) -> AccessStrategy {
        self.strategy
    }

    /// How many pages it has at most (apart from those that wait for the log).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many pages it should have at most now.
    pub(super) fn size(&self) -> usize {
        self.least.max(self.grown.get()).max(2 * self.ahead.get()).min(self.capacity)
    }

    /// How many pages it lets go of at a time.
    pub(super) fn batch(&self) -> usize {
        self.size().div_ceil(RING_PER_BATCH).min(MAX_CLAIMS_ON_THE_WAY)
    }

    /// From now on its job reads `pages` pages ahead.
    pub(crate) fn set_ahead(&self, pages: usize) {
        self.ahead.set(pages);
    }

    /// The context in which its input and output are counted.
    pub(crate) fn io_context(&self) -> IoContext {
        self.strategy.io_context()
    }

    /// How many pages it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.borrow().slots.len()
    }

    /// Whether it has no pages yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many frames it owns.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn spare_frames(&self) -> usize {
        self.reserve.lock().len()
    }

    /// How many pages its job may read ahead of use: more would push out each other.
    #[must_use]
    pub fn read_ahead_pages(&self) -> usize {
        (self.capacity / 2).max(1)
    }

    /// How many frames the job has.
    pub(super) fn frames(&self) -> usize {
        let state = self.state.borrow();
        state.slots.len() + state.out + self.reserve.lock().len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.frames() >= self.size()
    }

    pub(super) fn is_read(&self) -> bool {
        self.strategy == AccessStrategy::BulkRead
    }

    /// Notes that the job gets a frame.
    pub(crate) fn hand_out(&self) {
        self.state.borrow_mut().out += 1;
    }

    /// Notes that the job did not use a frame.
    pub(crate) fn not_used(&self) {
        self.state.borrow_mut().out -= 1;
    }

    /// Notes that the job's page is in the frame that it got, or on its way there.
    pub(crate) fn note(&self, frame: u32, page: PageId) {
        let mut state = self.state.borrow_mut();
        state.slots.push_back(Slot { frame, page });
        state.out -= 1;
        let place = self.place(page);
        if let Some(known) = self.let_go.borrow_mut().get_mut(place)
            && *known == page.raw()
        {
            *known = NO_OWNER;
            self.grown.set((self.size() + WIDEN).min(self.capacity));
        }
    }

    /// Where the ring notes that it let go of the page.
    pub(super) fn place(&self, page: PageId) -> usize {
        let places = self.let_go.borrow().len().max(1);
        (page.raw().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % places
    }

    /// Makes a page that only the ring uses one of the sweep's next victims.
    pub(super) fn demote(&self, slot: Slot) {
        let frame = &self.pool.frames[slot.frame as usize];
        if frame.holds(slot.page) && frame.usage() <= policy::FIRST_USAGE && !frame.is_pinned() {
            // A dirty page is left to the reclaimer, which finds it by the hand.
            let probation = self.pool.probation.as_ref().filter(|_| !frame.is_dirty());
            frame.set_usage(if probation.is_some() { policy::UNWANTED } else { 0 });
            if let Some(probation) = probation {
                probation.push_oldest(slot.frame, self.pool.frames());
            }
        }
    }
}

impl Drop for Ring {
    /// Ends the job. The pages that no other session used become the next victims.
    fn drop(&mut self) {
        let State { slots, .. } = std::mem::take(&mut *self.state.borrow_mut());
        slots.into_iter().for_each(|slot| self.demote(slot));
        let spare = std::mem::take(&mut *self.reserve.lock());
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
