//! The pool: frames, forks, sessions, and what concerns whole forks.

use crate::ahead::Ahead;
use crate::arena::{Arena, Descriptors, PageWords};
use crate::buffers::Buffers;
use crate::claims::Claims;
use crate::config::PoolConfig;
use crate::error::BufferError;
use crate::frame::{Claimer, Leaves, NoTake};
use crate::freelist::Freelists;
use crate::ids::{BlockNumber, Lsn, PageId, RelFork, RelationId};
use crate::load::wait_for_load;
use crate::log::LogFlush;
use crate::page_read::PageRead;
use crate::pins::PinBoard;
use crate::policy::{Clock, Probation};
use crate::reclaim::Demand;
use crate::relation::{Growth, RelHandle, Relation};
use crate::resize::Size;
use crate::ring::Spares;
use crate::session::BufferSession;
use crate::stats::{BackendKind, Counters, IoByContext, PoolStats, io_counts};
use crate::store::PageStore;
use crate::translation::{frame_of, is_absent};
use crate::words::PageView;
use millpond_sync::CachePadded;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::hint::Backoff;
use millpond_sync::sync::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// How often dropping a fork looks again at a page that is pinned before it gives up. Only background
/// writers pin a page that is about to go, and not for long.
const DROP_PATIENCE: usize = if cfg!(any(miri, shuttle)) { 100 } else { 1_000_000 };
/// How much of that patience it takes to look for sessions' pins, which costs a barrier.
const LOOK_PATIENCE: usize = if cfg!(any(miri, shuttle)) { 1 } else { 1_000 };

/// Free frames beyond this part of the pool are nobody's reserve. (The reclaimer keeps half of it.)
const SURPLUS_PART: usize = 32;
const MIN_SURPLUS: usize = 32;

/// A pool of pages, shared by sessions.
pub struct BufferPool {
    pub(crate) config: PoolConfig,
    pub(crate) store: Arc<dyn PageStore>,
    pub(crate) log: Arc<dyn LogFlush>,
    pub(crate) frames: Descriptors,
    pub(crate) size: Size,
    pub(crate) arena: Arena,
    pub(crate) free: Freelists,
    /// Away from what every hit reads, as what else is written on the way is.
    pub(crate) ahead: CachePadded<Ahead>,
    pub(crate) buffers: Buffers,
    pub(crate) demand: CachePadded<Demand>,
    pub(crate) clock: CachePadded<Clock>,
    /// `None` if the policy has none.
    pub(crate) probation: Option<Probation>,
    pub(crate) counters: Counters,
    syncs: AtomicU64,
    /// Microseconds that they took.
    sync_us: AtomicU64,
    /// Held by whoever writes all dirty pages.
    pub(crate) writing_all: Mutex<()>,
    number: u64,
    relations: Mutex<HashMap<RelFork, Arc<Relation>>>,
    session_numbers: Mutex<Vec<usize>>,
    /// Held while frames are claimed in the pool's own name.
    discarding: Mutex<()>,
    /// What each session has pinned.
    pub(crate) pins: PinBoard,
    /// Frames that rings own.
    pub(crate) spares: Spares,
}

fn next_pool_number() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

impl BufferPool {
    /// A pool over a store and a log. It has no thread of its own: who wants frames freed ahead of demand runs a
    /// [`Reclaimer`](crate::Reclaimer), and who wants changes in the store calls [`BufferPool::write_dirty`]. Dropping the pool writes nothing.
    pub fn new(
        config: PoolConfig,
        store: Arc<dyn PageStore>,
        log: Arc<dyn LogFlush>,
    ) -> Result<Arc<Self>, BufferError> {
        config.check()?;
        let lists = match config.freelists {
            0 => crate::processors::count(),
            lists => lists,
        };
        let barriers = match config.membarrier {
            true => Barriers::best(),
            false => Barriers::fences(),
        };
        let max_frames = config.max_frames.max(config.frames);
        let arena = Arena::new(max_frames, config.huge_pages)?;
        let frames = Descriptors::new(max_frames, config.huge_pages)?;
        let pool = Self {
            clock: CachePadded::new(Clock::new(config.frames, config.sweep_batch)),
            demand: CachePadded::default(),
            probation: config.policy.probation(),
            // The last is for sessions that have ended.
            counters: Counters::new(config.max_sessions + 1),
            syncs: AtomicU64::new(0),
            sync_us: AtomicU64::new(0),
            session_numbers: Mutex::new((0..config.max_sessions).rev().collect()),
            relations: Mutex::new(HashMap::new()),
            writing_all: Mutex::new(()),
            discarding: Mutex::new(()),
            pins: PinBoard::new(config.max_sessions, barriers),
            spares: Spares::default(),
            number: next_pool_number(),
            config,
            store,
            log,
            frames,
            arena,
            free: Freelists::new(lists),
            ahead: CachePadded::new(Ahead::new()),
            buffers: Buffers::default(),
            size: Size::new(),
        };
        pool.begin_life(pool.config.frames);
        Ok(Arc::new(pool))
    }

    /// A session: what a thread of work uses to reach pages.
    pub fn session(self: &Arc<Self>) -> Result<BufferSession, BufferError> {
        let number = self.session_numbers.lock().pop();
        let number =
            number.ok_or(BufferError::TooManySessions { max: self.config.max_sessions })?;
        Ok(BufferSession::new(self.clone(), number))
    }

    /// The end of a session, whose number may be given out again and whose counts may not.
    pub(crate) fn return_session(&self, number: usize) {
        let mut numbers = self.session_numbers.lock();
        self.counters.move_to(number, self.config.max_sessions);
        numbers.push(number);
    }

    /// What the session of that number ([`BufferSession::number`]) has done as a backend of that kind. If it has ended,
    /// it may be another that has the number.
    #[must_use]
    pub fn session_io(&self, number: usize, kind: BackendKind) -> IoByContext {
        io_counts(kind, |cell| self.counters.get(number, cell))
    }

    /// A handle on a fork. A fork that does not exist in the store has no blocks: [`BufferPool::create`] makes it, and
    /// [`BufferSession::extend`] its blocks.
    pub fn relation(&self, rel: RelFork) -> Result<RelHandle, BufferError> {
        let mut relations = self.relations.lock();
        if let Some(known) = relations.get(&rel) {
            return Ok(RelHandle(known.clone()));
        }
        // Under the lock, so that a fork that is being dropped can't be found in the store and then
        // be entered here after it has gone. It happens once per fork.
        let blocks = self.store.block_count(rel)?;
        let made = Arc::new(Relation::new(rel, self.number, blocks));
        relations.insert(rel, made.clone());
        Ok(RelHandle(made))
    }

    /// Creates a fork in the store; does nothing if it exists.
    pub fn create(&self, rel: RelFork) -> Result<(), BufferError> {
        Ok(self.store.create(rel)?)
    }

    /// Drops all forks of a relation: their pages leave memory unwritten and their files go. The caller
    /// sees to it that nobody uses the relation: if a page is pinned, that is [`BufferError::InUse`], and no other page can be had any more;
    /// the call is to be repeated. Costs what the relation holds in memory, not a walk of
    /// the pool (rule 9).
    pub fn drop_relation(&self, relation: RelationId) -> Result<(), BufferError> {
        let forks: Vec<_> = {
            let relations = self.relations.lock();
            relations.values().filter(|known| known.rel.relation == relation).cloned().collect()
        };
        for fork in &forks {
            let _growth = fork.growth();
            fork.mark_dropped();
            self.discard(fork, BlockNumber(0))?;
        }
        self.store.remove(relation)?;
        // Forgotten only now that no frame refers to their entries (rule 4). A fork that was first
        // used meanwhile is a misuse, and stays.
        let mut relations = self.relations.lock();
        relations.retain(|_, known| known.rel.relation != relation || !known.is_dropped());
        Ok(())
    }

    /// Cuts a fork down to `blocks` blocks; the others leave memory unwritten. The caller sees to it that
    /// nobody uses them: if one is pinned, that is [`BufferError::InUse`], the fork has its new size all the same, and the call is to
    /// be repeated.
    pub fn truncate(&self, rel: RelFork, blocks: u32) -> Result<(), BufferError> {
        let handle = self.relation(rel)?;
        let relation = &*handle.0;
        let mut growth = relation.growth();
        if relation.is_dropped() {
            return Err(BufferError::Dropped { rel });
        }
        if blocks < relation.blocks() {
            // Until the store has been cut, too.
            growth.stale = growth.stale.max(growth.allocated);
            relation.set_blocks(blocks);
        }
        // Also when the count was right already: an earlier attempt may have stopped half-way.
        self.cut(relation, &mut growth)
    }

    /// Cuts the store down to a fork's size, after what is in memory of the rest, which nobody may write any more.
    fn cut(&self, relation: &Relation, growth: &mut Growth) -> Result<(), BufferError> {
        let blocks = relation.blocks();
        let held = growth.allocated.max(growth.stale);
        if blocks < held {
            self.discard(relation, BlockNumber(blocks))?;
            // Should it fail, nobody knows how many are left. None counts as had, so that the next to need one asks the
            // store for it; and each may be an old one.
            (growth.allocated, growth.stale) = (blocks, held);
            self.store.truncate(relation.rel, blocks)?;
            growth.stale = 0;
        }
        Ok(())
    }

    /// Gives back the room that the store holds beyond the ends of the forks. For a clean shutdown. One that can't be cut does not keep the
    /// others from it; the first error is told, one of the store's rather than [`BufferError::InUse`].
    pub fn trim(&self) -> Result<(), BufferError> {
        let all: Vec<_> = self.relations.lock().values().cloned().collect();
        let mut trimmed = Ok(());
        for relation in all {
            let mut growth = relation.growth();
            if !relation.is_dropped() {
                let cut = self.cut(&relation, &mut growth);
                if cut.is_err() && matches!(trimmed, Ok(()) | Err(BufferError::InUse { .. })) {
                    trimmed = cut;
                }
            }
        }
        trimmed
    }

    /// Makes every page from `first` on leave memory, written or not. Loads can't begin any more.
    fn discard(&self, relation: &Relation, first: BlockNumber) -> Result<(), BufferError> {
        // Most go in batches. What is being loaded, written or taken just now is left to the second walk.
        let mut entries = relation.translation.from(first).peekable();
        while entries.peek().is_some() {
            let _alone = self.discarding.lock();
            let mut claims = Claims::none(self, Claimer::POOL, 0);
            for (block, entry) in entries.by_ref() {
                if let Some(number) = frame_of(entry.load(Ordering::SeqCst)) {
                    claims.claim_from(number, relation.page(block)).ok();
                    if claims.is_full() {
                        break;
                    }
                }
            }
            claims.settle(Leaves::Discarded, false);
        }
        for (block, entry) in relation.translation.from(first) {
            self.discard_one(relation, block, entry)?;
        }
        Ok(())
    }

    /// Makes one page leave memory, written or not. The caller holds the fork's growth lock.
    pub(crate) fn discard_one(
        &self,
        relation: &Relation,
        block: BlockNumber,
        entry: &AtomicU64,
    ) -> Result<(), BufferError> {
        let mut backoff = Backoff::new();
        let mut patience = DROP_PATIENCE;
        loop {
            let now = entry.load(Ordering::SeqCst);
            if is_absent(now) {
                return Ok(());
            }
            let Some(number) = frame_of(now) else {
                // A load that began before and will step back, or finish.
                wait_for_load(&*self.store, entry);
                continue;
            };
            let page = relation.page(block);
            match self.discard_frame(number, page) {
                Ok(()) => return Ok(()),
                Err(NoTake::Pinned) if patience == 0 => return Err(BufferError::InUse { page }),
                Err(NoTake::Pinned) => {
                    // A pin that shows in the frame is somebody's who writes or has just read it: cheap to see.
                    let is_shown = self.frames[number as usize].is_pinned();
                    patience = patience.saturating_sub(if is_shown { 1 } else { LOOK_PATIENCE });
                    backoff.snooze();
                }
                Err(_) => {
                    self.frames[number as usize].wait_for_write();
                    backoff.snooze();
                }
            }
        }
    }

    fn discard_frame(&self, number: u32, page: PageId) -> Result<(), NoTake> {
        let _alone = self.discarding.lock();
        let mut claims = Claims::none(self, Claimer::POOL, number as usize);
        claims.claim_from(number, page)?;
        let lost = claims.settle(Leaves::Discarded, false);
        match claims.frames() {
            [] if lost.pinned > 0 => Err(NoTake::Pinned),
            [] => Err(NoTake::Busy),
            _ => Ok(()),
        }
    }

    /// How many sessions have each page pinned, by the number of its frame; for views. (Pins come and go
    /// while it looks.)
    #[must_use]
    pub fn pin_counts(&self) -> HashMap<usize, u32> {
        let mut counts = HashMap::new();
        self.pins.scan(|frame| *counts.entry(frame as usize).or_default() += 1);
        counts
    }

    /// Makes everything that has been written to the store durable: not what is dirty, which [`BufferPool::write_dirty`] writes.
    pub fn sync(&self) -> Result<(), BufferError> {
        let start = std::time::Instant::now();
        self.store.sync()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.sync_us.fetch_add(start.elapsed().as_micros() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// The store under the pool.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn PageStore> {
        &self.store
    }

    /// What has happened so far.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let syncs = (self.syncs.load(Ordering::Relaxed), self.sync_us.load(Ordering::Relaxed));
        // Or a session that ends just now would be counted twice.
        let _nobody_ends = self.session_numbers.lock();
        let frames = (self.free_frames(), self.ahead.lost());
        PoolStats::of(&self.counters, frames, self.clock.taken(), syncs)
    }

    /// The usage of a page that is loaded now and left memory at that time.
    pub(crate) fn first_usage(&self, left_at: Option<u64>) -> u8 {
        self.config.policy.first_usage(self.away(left_at), self.frames())
    }

    /// The same of a page that is read ahead.
    pub(crate) fn first_usage_ahead(&self, left_at: Option<u64>) -> u8 {
        self.config.policy.first_usage_ahead(self.away(left_at), self.frames())
    }

    /// How many pages have left since one left at that time.
    fn away(&self, left_at: Option<u64>) -> Option<u64> {
        left_at.map(|then| self.clock.taken().saturating_sub(then))
    }

    /// Whether so many frames are free, twice what the reclaimer keeps in reserve, that bulk work may take some.
    pub(crate) fn has_surplus(&self) -> bool {
        let reserve = (self.frames() / SURPLUS_PART).max(MIN_SURPLUS).min(self.frames() / 2);
        self.free_frames() > reserve
    }

    /// The LSN of the page in a frame, if it is not just changing.
    pub(crate) fn lsn_hint(&self, frame: u32) -> Lsn {
        Lsn(PageView::new(self.words(frame)).u64(0))
    }

    /// A session's pins and counts mean nothing to another pool.
    pub(crate) fn check_session(&self, session: &BufferSession) -> Result<(), BufferError> {
        if session.pool.number == self.number { Ok(()) } else { Err(BufferError::ForeignSession) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    pub(crate) fn words(&self, frame: u32) -> &PageWords {
        self.arena.words(frame)
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("config", &self.config)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
