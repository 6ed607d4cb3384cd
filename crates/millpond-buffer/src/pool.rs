//! The pool: frames, forks, sessions, and what concerns whole forks.

mod cut;

use crate::ahead::Ahead;
use crate::arena::{Arena, Descriptors, PageWords};
use crate::buffers::Buffers;
use crate::config::PoolConfig;
use crate::error::BufferError;
use crate::freelist::Freelists;
use crate::ids::{Lsn, PageId, RelFork};
use crate::log::LogFlush;
use crate::page::{PageBytes, has_no_checksum, is_new, page_lsn, verify_checksum};
use crate::page_read::PageRead;
use crate::pins::PinBoard;
use crate::policy::{Clock, Probation};
use crate::reclaim::Demand;
use crate::relation::{RelHandle, Relation};
use crate::resize::Size;
use crate::ring::Spares;
use crate::session::BufferSession;
use crate::stats::{BackendKind, Counters, IoByContext, PoolStats, io_counts};
use crate::store::{PageStore, StoreError};
use crate::words::PageView;
use millpond_sync::CachePadded;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::clock;
use millpond_sync::sync::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

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
    relations: Mutex<BTreeMap<RelFork, Arc<Relation>>>,
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
            relations: Mutex::new(BTreeMap::new()),
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
    /// [`BufferSession::extend`] its blocks. If the log knows better ([`LogFlush::least_blocks`]), a fork that is not
    /// there or too short is an error.
    pub fn relation(&self, rel: RelFork) -> Result<RelHandle, BufferError> {
        let mut relations = self.relations.lock();
        if let Some(known) = relations.get(&rel) {
            let known = known.clone();
            drop(relations);
            self.check_length(rel, known.blocks())?;
            return Ok(RelHandle(known));
        }
        // Under the lock, so that a fork that is being dropped can't be found in the store and then
        // be entered here after it has gone. It happens once per fork.
        let blocks = self.store.block_count(rel)?;
        self.check_length(rel, blocks)?;
        let made = Arc::new(Relation::new(rel, self.number, blocks));
        relations.insert(rel, made.clone());
        Ok(RelHandle(made))
    }

    /// Fails if the log knows that a fork has more blocks, or that it exists and it doesn't.
    fn check_length(&self, rel: RelFork, blocks: u32) -> Result<(), BufferError> {
        let Some(least) = self.log.least_blocks(rel) else { return Ok(()) };
        if blocks == 0 && !self.store.exists(rel)? {
            return Err(StoreError::Missing { rel }.into());
        }
        if blocks < least {
            return Err(BufferError::CutShort { rel, blocks, least });
        }
        Ok(())
    }

    /// Checks a page that was read: it is what was written there, or zeros where they may be, and
    /// the log has come that far.
    pub(crate) fn verify(&self, page: PageId, bytes: &PageBytes) -> Result<(), BufferError> {
        verify_checksum(page, bytes)?;
        // (No page but one of zeros has the checksum zero, but for one in four billion.)
        if has_no_checksum(bytes) && is_new(bytes) && !self.log.may_be_zero(page) {
            return Err(BufferError::Zeroed { page });
        }
        let lsn = page_lsn(bytes);
        match self.log.has_reached(lsn) {
            true => Ok(()),
            false => Err(BufferError::BeyondLog { page, lsn }),
        }
    }

    /// Creates a fork in the store; does nothing if it exists.
    pub fn create(&self, rel: RelFork) -> Result<(), BufferError> {
        Ok(self.store.create(rel)?)
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
        let start = clock::now();
        self.store.sync()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.sync_us.fetch_add(clock::since(start).as_micros() as u64, Ordering::Relaxed);
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
