//! The buffer pool, as its users see it: a face of the core ([`crate::core`]).
//!
//! What a session does for the whole pool (resizing it, writing all dirty pages) is in
//! [`crate::session`].

use crate::config::{AccessStrategy, PoolConfig};
use crate::core::PoolCore;
use crate::core::frame::{DIRTY, OWNED};
use crate::core::relation::{Growth, RelHandle, Relation};
use crate::error::BufferError;
use crate::ids::{BlockNumber, PageId, RelFork, RelationId};
use crate::log::LogFlush;
use crate::policy;
use crate::replacement::ring::Ring;
use crate::replacement::vacate::discard;
use crate::stats::{BackendKind, IoByContext, PoolStats, io_counts};
use crate::store::PageStore;
use millpond_sync::atomic::Ordering;
use millpond_sync::clock;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A relation of more than this part of the pool is scanned through a ring.
const LARGE_PART: usize = 4;

/// A pool of pages, shared by sessions.
///
/// ```
/// use millpond_buffer::*;
/// use std::sync::Arc;
///
/// let store = Arc::new(MemoryStore::new()); // or a `FileStore`, or your own
/// let pool = BufferPool::new(PoolConfig::new(64, 16), store, Arc::new(NoLog))?;
/// let table = RelationId::constant(1).main();
/// pool.create(table)?;                      // in the store, once
/// let table = pool.relation(table)?;        // a handle, after each start
/// let session = pool.session()?;            // one for each thread
/// drop(session.extend(&table, Wait::Allowed)?);
/// assert_eq!(table.block_count(), 1);
/// # Ok::<(), BufferError>(())
/// ```
pub struct BufferPool {
    pub(crate) core: Arc<PoolCore>,
}

/// What a frame seems to hold. The fields were read one after the other, without a common moment.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// let dirty = pool.frame_infos().filter(|frame| frame.dirty).count();
/// # assert!(dirty <= 1);
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameInfo {
    /// The page, if it holds one.
    pub page: Option<PageId>,
    /// Whether the page differs from the store's.
    pub dirty: bool,
    /// Its usage count.
    pub usage: u8,
    /// How many sessions have it pinned.
    pub pins: u32,
}

impl BufferPool {
    /// Makes a pool over a store and a log. The pool has no thread of its own. To have frames freed
    /// before a session needs them, run a [`Reclaimer`](crate::Reclaimer). To write changes to the
    /// store, call [`BufferPool::write_dirty`]. Dropping the pool writes nothing.
    pub fn new(
        config: PoolConfig,
        store: Arc<dyn PageStore>,
        log: Arc<dyn LogFlush>,
    ) -> Result<Arc<Self>, BufferError> {
        Ok(Arc::new(Self { core: PoolCore::new(config, store, log)? }))
    }

    /// The input and output of the session with that number
    /// ([`BufferSession::number`](crate::BufferSession::number)), as far as it was a backend of
    /// that kind. If that session has ended, another one may have the number.
    #[must_use]
    pub fn session_io(&self, number: usize, kind: BackendKind) -> IoByContext {
        io_counts(kind, |cell| self.core.counters.get(number, cell))
    }

    /// A handle on a fork. A fork that does not exist in the store has no blocks:
    /// [`BufferPool::create`] makes it, and [`BufferSession::extend`](crate::BufferSession::extend)
    /// its blocks. A fork that is missing or too short according to the log
    /// ([`LogFlush::least_blocks`]) is an error.
    pub fn relation(&self, rel: RelFork) -> Result<RelHandle, BufferError> {
        self.core.relation(rel)
    }

    /// Creates a fork in the store; does nothing if it exists.
    pub fn create(&self, rel: RelFork) -> Result<(), BufferError> {
        Ok(self.core.store.create(rel)?)
    }

    /// The store under the pool.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn PageStore> {
        &self.core.store
    }

    // Size.

    /// The pool's size: how many pages it can hold now.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.core.frames()
    }

    /// The maximal size to which the pool can be resized.
    #[must_use]
    pub fn max_frames(&self) -> usize {
        self.core.frames.len()
    }

    /// Whether a scan of that many blocks is a bulk read: more than a quarter of the pool.
    #[must_use]
    pub fn is_large(&self, blocks: u32) -> bool {
        blocks as usize > self.frames() / LARGE_PART
    }

    /// Wakes the reclaimer if it sleeps, so that it can see that it should end.
    pub fn wake_reclaimer(&self) {
        self.core.demand.wake();
    }

    /// Makes all writes to the store so far durable. Dirty pages are not among them:
    /// [`BufferPool::write_dirty`] writes those.
    pub fn sync(&self) -> Result<(), BufferError> {
        let start = clock::now();
        self.core.store.sync()?;
        self.core.syncs.fetch_add(1, Ordering::Relaxed);
        self.core.sync_us.fetch_add(clock::since(start).as_micros() as u64, Ordering::Relaxed);
        Ok(())
    }

    // Statistics and views.

    /// What the pool has counted so far.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let core = &self.core;
        let syncs = (core.syncs.load(Ordering::Relaxed), core.sync_us.load(Ordering::Relaxed));
        // Without this lock, a session that ends meanwhile could be counted twice.
        let _no_session_ends = core.session_numbers.lock();
        let frames = (core.free_frames(), core.ahead.lost());
        PoolStats::of(&core.counters, frames, core.clock.taken(), syncs)
    }

    /// How many sessions have each page pinned, by its frame's number. For views: pins come and go.
    #[must_use]
    pub fn pin_counts(&self) -> HashMap<usize, u32> {
        let mut counts = HashMap::new();
        self.core.pins.scan(|frame| *counts.entry(frame as usize).or_default() += 1);
        counts
    }

    /// What every frame seems to hold, in the order of their numbers, for monitoring (like
    /// PostgreSQL's `pg_buffercache`). It pins nothing and waits for nothing.
    pub fn frame_infos(&self) -> impl Iterator<Item = FrameInfo> + '_ {
        let (core, pins) = (&self.core, self.pin_counts());
        core.frames.iter().take(core.size.occupied()).enumerate().map(move |(number, frame)| {
            let state = frame.state();
            FrameInfo {
                // The tag of a free frame is that of the page that has left.
                page: frame.page().filter(|_| state & OWNED == 0),
                dirty: state & DIRTY != 0,
                usage: policy::usage_count(frame.usage()),
                pins: pins.get(&number).copied().unwrap_or(0),
            }
        })
    }
}

// Dropping and truncating forks: their pages leave memory unwritten, then the store (rule 9). A
// truncated fork has its new size at once, even if the rest fails. Pages that could not be removed
// from memory or from the store are never written. The next truncation, or a session that needs the
// blocks again, removes them first.
impl BufferPool {
    /// Drops all forks of a relation: their pages leave memory unwritten, and their files go. The
    /// cost depends on what the relation has in memory, not on the pool's size (rule 9).
    ///
    /// The caller must make sure that no session uses the relation. If a page is pinned, the call
    /// fails with [`BufferError::InUse`] and must be repeated. From then on no other page can be
    /// reached.
    pub fn drop_relation(&self, relation: RelationId) -> Result<(), BufferError> {
        let forks: Vec<_> = {
            let relations = self.core.relations.lock();
            relations.values().filter(|known| known.rel.relation == relation).cloned().collect()
        };
        for fork in &forks {
            let _growth = fork.growth();
            fork.mark_dropped();
            discard(&self.core, fork, BlockNumber(0))?;
        }
        self.core.store.remove(relation)?;
        // The pool forgets the forks only now that no frame refers to their entries (rule 4). A
        // fork that was first used meanwhile is a misuse; it stays.
        let mut relations = self.core.relations.lock();
        relations.retain(|_, known| known.rel.relation != relation || !known.is_dropped());
        Ok(())
    }

    /// Truncates a fork to `blocks` blocks; pages beyond that leave memory unwritten.
    ///
    /// The caller must make sure that no session uses them. If one is pinned, the call fails with
    /// [`BufferError::InUse`] and must be repeated; the fork has its new size nevertheless.
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

    /// Truncates the store to the fork's size. Before that it removes the remaining pages from
    /// memory; no session may write them any more.
    fn cut(&self, relation: &Relation, growth: &mut Growth) -> Result<(), BufferError> {
        let blocks = relation.blocks();
        let held = growth.allocated.max(growth.stale);
        if blocks < held {
            discard(&self.core, relation, BlockNumber(blocks))?;
            // If this fails, the store may have any number of these blocks left, with old pages.
            // None counts as allocated, so a session that needs one asks the store for it.
            (growth.allocated, growth.stale) = (blocks, held);
            self.core.store.truncate(relation.rel, blocks)?;
            growth.stale = 0;
        }
        Ok(())
    }

    /// Truncates the store to the ends of the forks, for a clean shutdown. A failing fork does not
    /// stop the others. Returns the first error, but the store's rather than
    /// [`BufferError::InUse`].
    pub fn trim(&self) -> Result<(), BufferError> {
        let all: Vec<_> = self.core.relations.lock().values().cloned().collect();
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

    /// Calls `owes` for each fork that may have more blocks in the store than in the pool because a
    /// truncation failed. It passes the fork's number of blocks; the fork does not grow meanwhile.
    /// A log needs this: it must not forget a truncation before the store is truncated.
    pub fn for_each_owed_cut<E>(
        &self,
        mut owes: impl FnMut(RelFork, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let all: Vec<_> = self.core.relations.lock().values().cloned().collect();
        for relation in all {
            let growth = relation.growth();
            if growth.stale > relation.blocks() && !relation.is_dropped() {
                owes(relation.rel, relation.blocks())?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("config", &self.core.config)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring of the size in the pool's configuration; `None` if that is 0.
    #[must_use]
    pub fn new(pool: &Arc<BufferPool>, strategy: AccessStrategy) -> Option<Self> {
        Self::with_pages(pool, strategy, pool.core.config.ring_sizes.pages(strategy))
    }

    /// A ring of `pages` pages, but at most an eighth of the pool; `None` if that is none. (A bulk
    /// write's ring is shorter as long as its log is flushed in time.)
    #[must_use]
    pub fn with_pages(
        pool: &Arc<BufferPool>,
        strategy: AccessStrategy,
        pages: usize,
    ) -> Option<Self> {
        let least = Self::least_pages(strategy, pages);
        Self::between(&pool.core, strategy, least, pages)
    }

    /// A ring of `pages` pages that grows by up to `ahead` more while its job reads ahead.
    #[must_use]
    pub fn with_read_ahead(
        pool: &Arc<BufferPool>,
        strategy: AccessStrategy,
        pages: usize,
        ahead: usize,
    ) -> Option<Self> {
        Self::between(&pool.core, strategy, pages, pages.saturating_add(ahead))
    }

    /// A ring for pages in no order, some of them wanted again and again. It begins with `pages`
    /// pages and grows as pages come back that it has let go of, up to an eighth of the pool.
    #[must_use]
    pub fn widening(
        pool: &Arc<BufferPool>,
        strategy: AccessStrategy,
        pages: usize,
    ) -> Option<Self> {
        Self::that_widens(&pool.core, strategy, pages)
    }
}
