//! The core of a pool: what all of its sessions share, and in [`session`] one thread's part.
//!
//! [`PoolCore`] has the frames, the forks' page tables, the freelists, the hand and the counters.
//! It knows the store and the log below it as traits. It knows no session and no guard.
//! Replacement, reading and write-back work on it by reference. `BufferPool` is its public face.
//!
//! [`Descriptors`] are the descriptors of all frames that the pool can have, in one mapped region.
#![allow(unsafe_code)]

use crate::arena::{Arena, ArenaError};
#[cfg(not(any(miri, loom, shuttle)))]
use crate::arena::{map, unmap};
use crate::config::PoolConfig;
use crate::core::frame::Frame;
use crate::core::free_frames::{Demand, Freelists, Reserves, Size};
use crate::core::pins::PinBoard;
use crate::core::relation::{ReadAhead, RelHandle, Relation};
use crate::error::BufferError;
use crate::ids::{Lsn, PageId, RelFork};
use crate::log::LogFlush;
use crate::page::words::{PageView, PageWords};
use crate::page::{PageBytes, PageRead, has_no_checksum, is_new, page_lsn, verify_checksum};
use crate::policy::{Clock, Probation};
use crate::stats::Counters;
use crate::store::{Buffers, PageStore, StoreError};
use millpond_sync::CachePadded;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::sync::Mutex;
use std::collections::BTreeMap;
use std::ops::Deref;
#[cfg(not(any(miri, loom, shuttle)))]
use std::ptr::NonNull;
use std::sync::Arc;

pub(crate) mod frame;
pub(crate) mod free_frames;
pub(crate) mod page_table;
pub(crate) mod pins;
pub(crate) mod relation;
pub(crate) mod session;

/// Bulk work may take free frames beyond this part of the pool (twice the reclaimer's maximum).
const SURPLUS_PART: usize = 32;
const MIN_SURPLUS: usize = 32;

/// What the sessions of a pool share.
pub(crate) struct PoolCore {
    pub(crate) config: PoolConfig,
    pub(crate) store: Arc<dyn PageStore>,
    pub(crate) log: Arc<dyn LogFlush>,
    pub(crate) frames: Descriptors,
    pub(crate) size: Size,
    pub(crate) arena: Arena,
    pub(crate) free: Freelists,
    /// On cache lines of its own, like other fields that change often: hits read those around it.
    pub(crate) ahead: CachePadded<ReadAhead>,
    pub(crate) buffers: Buffers,
    pub(crate) demand: CachePadded<Demand>,
    pub(crate) clock: CachePadded<Clock>,
    /// `None` if the policy has no probation.
    pub(crate) probation: Option<Probation>,
    pub(crate) counters: Counters,
    pub(crate) syncs: AtomicU64,
    /// How many microseconds the syncs took.
    pub(crate) sync_us: AtomicU64,
    /// Held by the session that writes all dirty pages.
    pub(crate) writing_all: Mutex<()>,
    pub(crate) number: u64,
    pub(crate) relations: Mutex<BTreeMap<RelFork, Arc<Relation>>>,
    pub(crate) session_numbers: Mutex<Vec<usize>>,
    /// Held while frames are claimed in the name of the pool.
    pub(crate) discarding: Mutex<()>,
    /// What each session has pinned.
    pub(crate) pins: PinBoard,
    /// Frames that rings own.
    pub(crate) reserves: Reserves,
}

fn next_pool_number() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

impl PoolCore {
    pub(crate) fn new(
        config: PoolConfig,
        store: Arc<dyn PageStore>,
        log: Arc<dyn LogFlush>,
    ) -> Result<Arc<Self>, BufferError> {
        config.check()?;
        let lists = match config.freelists {
            0 => crate::threads::count(),
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
            // The last one is for sessions that have ended.
            counters: Counters::new(config.max_sessions + 1),
            syncs: AtomicU64::new(0),
            sync_us: AtomicU64::new(0),
            session_numbers: Mutex::new((0..config.max_sessions).rev().collect()),
            relations: Mutex::new(BTreeMap::new()),
            writing_all: Mutex::new(()),
            discarding: Mutex::new(()),
            pins: PinBoard::new(config.max_sessions, barriers),
            reserves: Reserves::default(),
            number: next_pool_number(),
            config,
            store,
            log,
            frames,
            arena,
            free: Freelists::new(lists),
            ahead: CachePadded::default(),
            buffers: Buffers::default(),
            size: Size::new(),
        };
        pool.grow(pool.config.frames, &mut pool.size.alive.lock());
        Ok(Arc::new(pool))
    }

    /// A number for a session that begins.
    pub(crate) fn take_session_number(&self) -> Result<usize, BufferError> {
        let number = self.session_numbers.lock().pop();
        number.ok_or(BufferError::TooManySessions { max: self.config.max_sessions })
    }

    /// Ends a session. Its number may be given out again; its counts stay in the pool's.
    pub(crate) fn return_session(&self, number: usize) {
        let mut numbers = self.session_numbers.lock();
        self.counters.move_to(number, self.config.max_sessions);
        numbers.push(number);
    }

    /// A handle on a fork. A fork that is missing or too short according to the log
    /// ([`LogFlush::least_blocks`]) is an error.
    pub(crate) fn relation(&self, rel: RelFork) -> Result<RelHandle, BufferError> {
        let mut relations = self.relations.lock();
        if let Some(known) = relations.get(&rel) {
            let known = known.clone();
            drop(relations);
            self.check_length(rel, known.blocks())?;
            return Ok(RelHandle(known));
        }
        // Under the lock. Otherwise this call could find a fork in the store while another drops
        // it, and enter it here after it is gone. It happens once per fork.
        let blocks = self.store.block_count(rel)?;
        self.check_length(rel, blocks)?;
        let made = Arc::new(Relation::new(rel, self.number, blocks));
        relations.insert(rel, made.clone());
        Ok(RelHandle(made))
    }

    /// Fails if the log knows that the fork has more blocks, or that it exists and it does not.
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

    /// Checks a page that was read. It must be what was written there, or zeros where the log
    /// allows them, and its LSN must not be beyond the log's end.
    pub(crate) fn verify(&self, page: PageId, bytes: &PageBytes) -> Result<(), BufferError> {
        verify_checksum(page, bytes)?;
        // (Only a page of zeros has checksum zero, and by chance one page in four billion.)
        if has_no_checksum(bytes) && is_new(bytes) && !self.log.may_be_zero(page) {
            return Err(BufferError::Zeroed { page });
        }
        let lsn = page_lsn(bytes);
        if !self.log.has_reached(lsn) {
            return Err(BufferError::BeyondLog { page, lsn });
        }
        Ok(())
    }

    /// The pool's size: how many pages it can hold now.
    #[inline]
    pub(crate) fn frames(&self) -> usize {
        self.size.frames()
    }

    /// How many frames are free, approximately.
    pub(crate) fn free_frames(&self) -> usize {
        self.free.len(&self.frames)
    }

    /// Makes the pool larger. `alive`: the number of frames that were ever in use.
    pub(crate) fn grow(&self, frames: usize, alive: &mut usize) {
        let before = self.frames();
        for frame in self.frames.iter().take(frames).skip(*alive) {
            frame.begin_life();
        }
        let never_used = (*alive).max(before)..frames;
        *alive = frames.max(*alive);
        self.size.occupied.fetch_max(frames, Ordering::Release);
        self.set_size(frames);
        let lists = self.free.lists();
        for list in (0..lists).rev() {
            // Neighbours go to the same list.
            let share = |nth: usize| before + (frames - before) * nth / lists;
            let is_new = |number| never_used.contains(&number);
            let some = share(list)..share(list + 1);
            Size::bring_back(&self.free, list, &self.frames, some, is_new);
        }
    }

    pub(crate) fn set_size(&self, frames: usize) {
        self.size.set(frames);
        self.clock.resize(frames);
        if let Some(probation) = &self.probation {
            probation.resized();
        }
    }

    /// Frees owned frames; those beyond the pool's size retire.
    pub(crate) fn give_back(&self, near: usize, free: &[u32]) {
        self.size.give_back(&self.free, near, &self.frames, free);
    }

    /// The usage of a page that is loaded now. It left memory at the time `left_at`.
    pub(crate) fn first_usage(&self, left_at: Option<u64>) -> u8 {
        self.config.policy.first_usage(self.away(left_at), self.frames())
    }

    /// The usage of a page that is read ahead now. It left memory at the time `left_at`.
    pub(crate) fn first_usage_ahead(&self, left_at: Option<u64>) -> u8 {
        self.config.policy.first_usage_ahead(self.away(left_at), self.frames())
    }

    /// How many pages have left memory since the time `left_at`.
    fn away(&self, left_at: Option<u64>) -> Option<u64> {
        left_at.map(|then| self.clock.taken().saturating_sub(then))
    }

    /// Whether bulk work may take free frames: more than twice the reclaimer's maximum is free.
    pub(crate) fn has_surplus(&self) -> bool {
        let reserve = (self.frames() / SURPLUS_PART).max(MIN_SURPLUS).min(self.frames() / 2);
        self.free_frames() > reserve
    }

    /// The LSN of the page in a frame. A hint, since the page may be changing.
    pub(crate) fn lsn_hint(&self, frame: u32) -> Lsn {
        Lsn(PageView::new(self.words(frame)).u64(0))
    }

    /// Flushes the log up to `lsn`, before a page with that LSN reaches the store. A page without
    /// an LSN needs no flush. But once the log has stopped, no page is written any more.
    pub(crate) fn log_first(&self, lsn: Lsn) -> Result<(), BufferError> {
        Ok(self.log.flush_to(lsn)?)
    }

    #[inline]
    pub(crate) fn words(&self, frame: u32) -> &PageWords {
        self.arena.words(frame)
    }
}

/// The descriptors of all frames that the pool can have.
///
/// A descriptor that was never used is all zeros and takes no memory: see [`Frame::begin_life`].
#[cfg(not(any(miri, loom, shuttle)))]
pub(crate) struct Descriptors {
    base: NonNull<Frame>,
    len: usize,
}

// SAFETY: the region belongs to the table alone, and is accessed only as shared `Frame`s, which are
// `Sync`.
#[cfg(not(any(miri, loom, shuttle)))]
unsafe impl Send for Descriptors {}
// SAFETY: as above.
#[cfg(not(any(miri, loom, shuttle)))]
unsafe impl Sync for Descriptors {}

#[cfg(not(any(miri, loom, shuttle)))]
impl Descriptors {
    /// In huge pages, like the frames: each access to a page of the pool also accesses its
    /// descriptor.
    pub(crate) fn new(len: usize, huge_pages: bool) -> Result<Self, ArenaError> {
        let bytes = len.checked_mul(size_of::<Frame>()).filter(|&bytes| bytes > 0);
        let bytes = bytes.ok_or(ArenaError::Size { what: "the number of frames" })?;
        let base = map(bytes, huge_pages)?;
        Ok(Self { base: base.cast(), len })
    }
}

#[cfg(not(any(miri, loom, shuttle)))]
impl Deref for Descriptors {
    type Target = [Frame];

    #[inline]
    fn deref(&self) -> &[Frame] {
        // SAFETY: the region has `len` descriptors, lives as long as `self`, and is aligned to a
        // page of memory. All zeros is a valid `Frame`, since it consists of atomic integers and
        // pointers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

#[cfg(not(any(miri, loom, shuttle)))]
impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: `base` and the size are those of `map`; references borrow `self`. Frames own
        // nothing.
        unsafe { unmap(self.base.cast(), self.len * size_of::<Frame>()) };
    }
}

/// The descriptors, but not in mapped memory: a model checker's atomics are not all zeros.
#[cfg(any(miri, loom, shuttle))]
pub(crate) struct Descriptors(Box<[Frame]>);

#[cfg(any(miri, loom, shuttle))]
impl Descriptors {
    pub(crate) fn new(len: usize, _huge_pages: bool) -> Result<Self, ArenaError> {
        Ok(Self((0..len).map(|_| Frame::new()).collect()))
    }
}

#[cfg(any(miri, loom, shuttle))]
impl Deref for Descriptors {
    type Target = [Frame];

    fn deref(&self) -> &[Frame] {
        &self.0
    }
}
