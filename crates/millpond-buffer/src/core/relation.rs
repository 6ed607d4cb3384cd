//! What the pool knows of a fork: its size, where its pages are, and which of them are being
//! loaded.
//!
//! **Loading.** One session turns an absent entry to LOADING, by a compare-and-swap. It, or the
//! thread that it hands the load over to, ends the load by one swap. Threads that wait for the end
//! mark the entry as WAITED and park on its address. Dropping a [`Loading`] makes the entry absent
//! again, as it was before (rule 6).
//!
//! [`ReadAhead`] limits the frames that loads ahead of need hold. A session waits there for one
//! such load to end.
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

use crate::core::page_table::{LOADING, PageTable, WAITED, frame_of, is_absent, resident_in};
use crate::core::pins::PinBoard;
use crate::error::BufferError;
use crate::ids::{BlockNumber, PageId, RelFork};
use crate::store::PageStore;
use crate::threads;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use millpond_sync::sync::{Mutex, MutexGuard};
use millpond_sync::{mutant, ordering, parking};
use std::fmt;
use std::sync::Arc;

/// A fork as the pool knows it.
pub(crate) struct Relation {
    pub(crate) rel: RelFork,
    /// Its page 0, from which an access makes the page that it wants in one instruction.
    first_page: PageId,
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
            first_page: rel.page(BlockNumber(0)),
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
        self.first_page.with_block(block)
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
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
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

/// An entry that this session has turned to LOADING. If this is dropped, the entry is absent again,
/// with the value that it had before.
pub(crate) struct Loading<'a> {
    entry: &'a AtomicU64,
    before: u64,
}

impl<'a> Loading<'a> {
    pub(crate) fn begin(entry: &'a AtomicU64) -> Option<Self> {
        let before = entry.load(Ordering::Relaxed);
        if !is_absent(before) {
            return None;
        }
        // Acquire: what was written of the page before it left is in the store.
        let order = ordering!("pool-load-begin-relaxed", Acquire);
        let swapped = entry.compare_exchange(before, LOADING, order, Ordering::Relaxed);
        swapped.ok().map(|before| Self { entry, before })
    }

    /// Ends the load: the page is in `frame`.
    pub(crate) fn finish(self, frame: u32) {
        end_load(self.entry, resident_in(frame));
        std::mem::forget(self);
    }

    pub(crate) fn entry(&self) -> &'a AtomicU64 {
        self.entry
    }

    /// The entry's value before: absent, with the time when the page left if that is known.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// Leaves the entry LOADING, for the thread that finishes the load. Returns its value before.
    pub(crate) fn hand_over(self) -> u64 {
        let before = self.before;
        std::mem::forget(self);
        before
    }

    /// Takes over a load that was handed over.
    pub(crate) fn resume(entry: &'a AtomicU64, before: u64) -> Self {
        debug_assert!(entry.load(Ordering::Relaxed) & LOADING != 0, "a load that goes on");
        Self { entry, before }
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        end_load(self.entry, self.before);
    }
}

fn end_load(entry: &AtomicU64, value: u64) {
    let before = entry.swap(value, ordering!("pool-load-end-relaxed", Release));
    if before & WAITED != 0 {
        parking::unpark_all(entry_key(entry));
    }
}

fn entry_key(entry: &AtomicU64) -> usize {
    std::ptr::from_ref(entry) as usize
}

/// Waits until the current load of a page has ended. It may return earlier. The store may carry the
/// read out on this thread.
pub(crate) fn wait_for_load(store: &dyn PageStore, entry: &AtomicU64, page: PageId) {
    let is_done = || entry.load(Ordering::Acquire) & LOADING == 0;
    store.wait_for_read(&is_done, &mut || park_on(entry, page));
}

fn park_on(entry: &AtomicU64, page: PageId) {
    let mut now = entry.load(Ordering::Relaxed);
    while now & LOADING != 0 {
        if now & WAITED == 0 {
            let marked = entry.compare_exchange_weak(
                now,
                now | WAITED,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if let Err(changed) = marked {
                now = changed;
                continue;
            }
        }
        let still = || {
            mutant!("pool-park-without-look") || entry.load(Ordering::Relaxed) == LOADING | WAITED
        };
        threads::park(entry_key(entry), still, || format!("{page} to be loaded"));
        return;
    }
}

/// Read-ahead may hold this fraction of the pool: one frame in `PART`.
const PART: usize = 4;
/// The most frames that read-ahead may hold in any pool: 32 MiB.
const MAX_FRAMES_AHEAD: usize = 4096;

#[derive(Default)]
pub(crate) struct ReadAhead {
    /// Frames that the loads hold or have lost.
    frames: AtomicUsize,
    /// Frames that the loads have lost. A load raises this count before it gives back the rest of
    /// its room, so it never exceeds `frames`.
    lost: AtomicUsize,
}

impl ReadAhead {
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Reserves room for up to `wanted` frames in a pool of `pool` frames. Relaxed: the count
    /// publishes no other data.
    fn reserve(&self, wanted: usize, pool: usize) -> usize {
        let limit = (pool / PART).min(MAX_FRAMES_AHEAD);
        let mut now = self.frames.load(Ordering::Relaxed);
        loop {
            let room = wanted.min(limit.saturating_sub(now));
            if room == 0 {
                return 0;
            }
            let swapped = self.frames.compare_exchange_weak(
                now,
                now + room,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match swapped {
                Ok(_) => return room,
                Err(changed) => now = changed,
            }
        }
    }

    /// Gives back the `room` of a load, except for the `lost` frames, which keep theirs.
    pub(crate) fn release(&self, room: usize, lost: usize) {
        if room > 0 {
            self.lost.fetch_add(lost, Ordering::AcqRel);
            self.frames.fetch_sub(room - lost, Ordering::AcqRel);
            parking::unpark_all(self.key());
        }
    }

    /// Waits until one of the loads has ended; `false` if there is none.
    pub(crate) fn wait_for_one(&self, store: &dyn PageStore) -> bool {
        let look = || (self.frames.load(Ordering::Acquire), self.lost.load(Ordering::Acquire));
        let now = look();
        // `lost` was loaded after `frames`, so it may have grown past it.
        if now.0 <= now.1 {
            return false;
        }
        // Every load under way ends with an `unpark_all`, and changes one of the counts before
        // that.
        let is_same = || look() == now;
        store.wait_for_read(&|| !is_same(), &mut || {
            threads::park(self.key(), is_same, || "one of the reads ahead to end".to_owned());
        });
        true
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.frames) as usize
    }
}

/// Room for frames that are still looked for. Dropping it gives the room back, unless a load takes
/// it over.
pub(crate) struct Room<'a> {
    ahead: &'a ReadAhead,
    pub(crate) frames: usize,
}

impl<'a> Room<'a> {
    /// Reserves room for up to `wanted` frames in a pool of `pool` frames; `None` if there is none.
    pub(crate) fn reserve(ahead: &'a ReadAhead, wanted: usize, pool: usize) -> Option<Self> {
        let frames = ahead.reserve(wanted, pool);
        (frames > 0).then_some(Self { ahead, frames })
    }

    /// Leaves the room reserved, for the load that goes on with it.
    pub(crate) fn hand_over(self) -> usize {
        let frames = self.frames;
        std::mem::forget(self);
        frames
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.ahead.release(self.frames, 0);
    }
}
