//! What the pool knows of a fork: its size and where its pages are.
//!
//! **Dropping and truncating** race with loads that began before. Each side announces, passes a
//! barrier, and then looks ([`Barriers`]):
//!
//! ```text
//! session that loads                    session that drops or truncates the fork
//! entry := LOADING                      dropped := true, or fewer blocks
//! light barrier                         heavy barrier
//! dropped, or the block beyond the      any entry that is not absent?
//!   end? step back                        wait until it is
//! ```
//!
//! Either the loader sees the drop and steps back, or the walk over the entries sees the loader and
//! waits for it. The chunk with the entry was installed before, so the walk sees the chunk along
//! with the entry. After the walk every entry stays absent, and the fork may be forgotten (rule 4).
//!
//! **Memory ordering.** A release store makes an entry absent or resident, and the walk loads it
//! with acquire. So the pool frees a forgotten fork after the last access to its entries. The
//! number of blocks is stored with release and loaded with acquire. So a session that finds that a
//! block exists finds the block in the store.

use crate::core::loading::Loading;
use crate::core::page_table::{PageTable, frame_of};
use crate::core::pins::PinBoard;
use crate::error::BufferError;
use crate::ids::{BlockNumber, PageId, RelFork};
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use millpond_sync::sync::{Mutex, MutexGuard};
use millpond_sync::{mutant, ordering};
use std::fmt;
use std::sync::Arc;

/// A fork as the pool knows it.
pub(crate) struct Relation {
    pub(crate) rel: RelFork,
    /// The pool's number: handles of one pool mean nothing to another.
    pub(crate) pool: u64,
    pub(crate) translation: PageTable,
    blocks: AtomicU32,
    dropped: AtomicBool,
    growth: Mutex<Growth>,
}

/// Guards the fork's end: extending, truncating and dropping.
pub(crate) struct Growth {
    /// How many blocks the store has. It may be more than the fork has.
    pub(crate) allocated: u32,
    /// Blocks below this one may hold old pages in the store that could not be cut off. So a new
    /// page there must be written.
    pub(crate) stale: u32,
}

impl Relation {
    pub(crate) fn new(rel: RelFork, pool: u64, blocks: u32) -> Self {
        Self {
            rel,
            pool,
            translation: PageTable::new(),
            blocks: AtomicU32::new(blocks),
            dropped: AtomicBool::new(false),
            growth: Mutex::new(Growth { allocated: blocks, stale: 0 }),
        }
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.blocks.load(ordering!("pool-blocks-read-relaxed", Acquire))
    }

    /// Sets the size. The caller holds the growth lock.
    pub(crate) fn set_blocks(&self, blocks: u32) {
        self.blocks.store(blocks, ordering!("pool-blocks-set-relaxed", Release));
    }

    pub(crate) fn growth(&self) -> MutexGuard<'_, Growth> {
        self.growth.lock()
    }

    pub(crate) fn try_growth(&self) -> Option<MutexGuard<'_, Growth>> {
        self.growth.try_lock()
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Relaxed);
    }

    /// Whether a block may be loaded.
    pub(crate) fn check(&self, block: BlockNumber) -> Result<(), BufferError> {
        if self.is_dropped() {
            return Err(BufferError::Dropped { rel: self.rel });
        }
        let blocks = self.blocks();
        if block.0 >= blocks {
            return Err(BufferError::BeyondEnd { rel: self.rel, block, blocks });
        }
        Ok(())
    }

    /// Turns a block's entry to LOADING, if the page is absent and the fork still has the block.
    pub(crate) fn begin_load<'a>(
        &'a self,
        block: BlockNumber,
        entry: &'a AtomicU64,
        barriers: Barriers,
    ) -> Result<Option<Loading<'a>>, BufferError> {
        let Some(loading) = Loading::begin(entry) else { return Ok(None) };
        if !mutant!("pool-load-without-barrier") {
            barriers.light();
        }
        // Only now, when a session that drops or truncates the fork sees the entry.
        if !mutant!("pool-load-without-second-check") {
            self.check(block)?;
        }
        Ok(Some(loading))
    }

    /// The entries from a block on. The caller has marked the fork as dropped, or has made it end
    /// before that block. Every load that can still finish shows in these entries. `None`: the
    /// kernel refused the barrier, so there may be such loads.
    pub(crate) fn entries_cut_off(
        &self,
        first: BlockNumber,
        pins: &PinBoard,
    ) -> Option<impl Iterator<Item = (BlockNumber, &AtomicU64)>> {
        let ordered = mutant!("pool-cut-without-barrier") || pins.barrier();
        ordered.then(|| self.translation.from(first))
    }

    #[inline]
    pub(crate) fn page(&self, block: BlockNumber) -> PageId {
        PageId::new(self.rel, block)
    }
}

/// A handle on a fork: the caller needs it to reach the fork's pages. Cloning it writes to memory
/// that all clones share, so a session keeps its own.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # pool.create(rel)?;
/// # let rel = pool.relation(rel)?;
/// # let session = pool.session()?;
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// assert_eq!((rel.block_count(), rel.pages_in_memory()), (1, 1));
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Clone)]
pub struct RelHandle(pub(crate) Arc<Relation>);

impl RelHandle {
    /// The fork's name.
    #[must_use]
    pub fn rel(&self) -> RelFork {
        self.0.rel
    }

    /// How many blocks the fork has.
    #[must_use]
    pub fn block_count(&self) -> u32 {
        self.0.blocks()
    }

    /// How many of its pages are in memory. It looks at each entry. Approximate while others work.
    #[must_use]
    pub fn pages_in_memory(&self) -> usize {
        let entries = self.0.translation.from(BlockNumber(0));
        entries.filter(|(_, entry)| frame_of(entry.load(Ordering::Relaxed)).is_some()).count()
    }

    /// Whether the fork has been dropped: then no page can be reached through this handle. (Only a
    /// read from before the drop may end with a page of a new fork of the same name: see rule 4.)
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.0.is_dropped()
    }
}

impl fmt::Debug for RelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelHandle")
            .field("rel", &self.rel())
            .field("blocks", &self.block_count())
            .finish_non_exhaustive()
    }
}
