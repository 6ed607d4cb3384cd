//! Resizing: the pool grows and shrinks while it is in use, up to a maximum whose addresses are reserved
//! when it is made.
//!
//! A frame beyond the pool's size is *retired*: OWNED and RETIRED, so that nobody pins, takes or finds it,
//! on no freelist, its version odd. Its memory goes back to the system but stays mapped, for optimistic readers
//! who come too late (rule 2).
//!
//! **Growing** brings frames to life, or back from retirement, and puts them onto the freelists.
//!
//! **Shrinking** first lowers the size. From then on
//!
//! - the sweep's hand goes round below it;
//! - who frees a frame beyond it ([`BufferPool::give_back`]), or takes one from a freelist, retires it.
//!
//! Then the pages beyond it are written where that is needed, and taken like any other victims, until all those
//! frames are retired. What stays pinned is waited for a while; a damaged page, which stays until it is dropped or cut
//! off with its relation, and a lost frame are not; after that the pool keeps the
//! size that it must have to hold them, and says so.
//!
//! **Retiring against growing again.** A size is read, and then a frame retired by it, maybe much
//! later. So a session that has retired a frame looks at the size again; and one that raises the
//! size looks for retired frames afterwards. Both have a sequentially consistent fence between the
//! two steps, so one of them sees what the other has done, at least. Both bring such a frame back
//! by a compare-and-swap, so only one of them does.
//!
//! **Checkpoints** look at all frames that may hold a page, which while the pool shrinks are more than its size says.

use crate::claims::MAX_CLAIMS;
use crate::error::BufferError;
use crate::frame::{DAMAGED, Frame};
use crate::freelist::Freelists;
use crate::pool::BufferPool;
use crate::session::BufferSession;
use millpond_sync::atomic::{AtomicUsize, Ordering, fence};
use millpond_sync::mutant;
use millpond_sync::sync::Mutex;
use std::ops::Range;

/// How often shrinking looks again at pages that are in use, about a millisecond apart.
const PATIENCE: usize = if cfg!(any(miri, shuttle)) {
    20
} else if cfg!(test) {
    200
} else {
    3_000
};

/// How large the pool is.
pub(crate) struct Size {
    /// Frames below this one are used.
    frames: AtomicUsize,
    /// Frames below this one may hold pages.
    occupied: AtomicUsize,
    /// Held while the size changes: how many frames were ever used.
    alive: Mutex<usize>,
}

impl Size {
    pub(crate) fn new() -> Self {
        Self { frames: AtomicUsize::new(0), occupied: AtomicUsize::new(0), alive: Mutex::new(0) }
    }

    #[inline]
    pub(crate) fn frames(&self) -> usize {
        self.frames.load(Ordering::Relaxed)
    }

    pub(crate) fn occupied(&self) -> usize {
        self.occupied.load(Ordering::Acquire)
    }

    /// Sets the size. What the caller then sees of frames is no older.
    pub(crate) fn set(&self, frames: usize) {
        self.frames.store(frames, Ordering::Relaxed);
        if !mutant!("pool-resize-without-fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Frees owned frames: those beyond the size retire.
    pub(crate) fn give_back(&self, lists: &Freelists, near: usize, frames: &[Frame], free: &[u32]) {
        let size = self.frames();
        if free.iter().all(|&number| (number as usize) < size) {
            lists.push(near, frames, free);
            return;
        }
        for &number in free {
            let frame = &frames[number as usize];
            frame.retire();
            if !mutant!("pool-retire-without-fence") {
                fence(Ordering::SeqCst);
            }
            let is_wanted = (number as usize) < self.frames();
            if !mutant!("pool-retire-without-second-look") && is_wanted && frame.come_back() {
                lists.push(near, frames, &[number]);
            }
        }
    }

    /// Frees those of the frames that are retired, or that `are_new`, now that the size includes
    /// them.
    pub(crate) fn bring_back(
        lists: &Freelists,
        list: usize,
        frames: &[Frame],
        some: Range<usize>,
        are_new: impl Fn(usize) -> bool,
    ) {
        let back = some.filter(|&number| are_new(number) || frames[number].come_back());
        let back: Vec<u32> = back.map(|number| number as u32).collect();
        lists.push(list, frames, &back);
    }
}

fn wait_a_little() {
    #[cfg(not(miri))]
    millpond_sync::thread::sleep(std::time::Duration::from_millis(1));
    #[cfg(miri)]
    millpond_sync::thread::yield_now();
}

impl BufferPool {
    /// How many pages the pool holds.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.size.frames()
    }

    /// How many it can be made to hold.
    #[must_use]
    pub fn max_frames(&self) -> usize {
        self.frames.len()
    }

    /// Makes the pool hold `frames` pages, while it is in use. To shrink it, pages are made to leave; those that
    /// stay pinned, also by this session, are waited for, three seconds or more; then they keep it larger than that
    /// ([`BufferError::Shrinking`] says how large, and which page), and it can be tried again. Lost frames
    /// ([`PoolStats::lost_frames`](crate::PoolStats::lost_frames)) are not waited for.
    pub fn resize(&self, session: &BufferSession, frames: usize) -> Result<(), BufferError> {
        self.check_session(session)?;
        if frames == 0 || frames > self.max_frames() {
            return Err(BufferError::Size { frames, max: self.max_frames() });
        }
        let mut alive = self.size.alive.lock();
        if frames >= self.frames() {
            self.grow(frames, &mut alive);
            return Ok(());
        }
        self.shrink(session, frames)
    }

    /// The first size.
    pub(crate) fn begin_life(&self, frames: usize) {
        self.grow(frames, &mut self.size.alive.lock());
    }

    fn grow(&self, frames: usize, alive: &mut usize) {
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
            // Neighbours to the same list.
            let share = |nth: usize| before + (frames - before) * nth / lists;
            let is_new = |number| never_used.contains(&number);
            let some = share(list)..share(list + 1);
            Size::bring_back(&self.free, list, &self.frames, some, is_new);
        }
    }

    fn set_size(&self, frames: usize) {
        self.size.set(frames);
        self.clock.resize(frames);
        if let Some(probation) = &self.probation {
            probation.resized();
        }
    }

    /// Frees owned frames: those beyond the pool's size retire.
    pub(crate) fn give_back(&self, near: usize, free: &[u32]) {
        self.size.give_back(&self.free, near, &self.frames, free);
    }

    fn shrink(&self, session: &BufferSession, frames: usize) -> Result<(), BufferError> {
        // Also what an attempt that was broken off has left behind.
        let before = self.size.occupied();
        self.set_size(frames);
        let mut left: Vec<u32> = (frames as u32..before as u32).collect();
        let mut failure = None;
        for _ in 0..PATIENCE {
            // What failed before may have been written since.
            failure = None;
            self.retire_free();
            session.vacate(&left, &mut failure);
            left.retain(|number| !self.frames[*number as usize].is_retired());
            // A damaged page stays until it is dropped or cut off, a lost frame until a restart.
            if left.iter().all(|number| self.frames[*number as usize].state() & DAMAGED != 0) {
                break;
            }
            wait_a_little();
        }
        let size = left.iter().max().map_or(frames, |last| *last as usize + 1);
        if size > frames {
            self.set_size(size);
            Size::bring_back(&self.free, session.near(), &self.frames, frames..size, |_| false);
        }
        self.size.occupied.store(size, Ordering::Release);
        self.arena.release(size..before);
        let Some(last) = left.last().map(|last| &self.frames[*last as usize]) else {
            return Ok(());
        };
        let (page, is_lost) = (last.page(), last.is_lost());
        Err(failure.unwrap_or(BufferError::Shrinking { frames: size, page, is_lost }))
    }

    /// Retires the free frames beyond the pool's size, and those that rings have in reserve. The others are shared out again.
    fn retire_free(&self) {
        let mut free = self.spares.beyond(self.frames());
        while let Some(popped) = self.free.pop(0, &self.frames) {
            free.push(popped.frame);
        }
        let size = self.frames();
        let (stay, beyond): (Vec<_>, Vec<_>) =
            free.into_iter().partition(|number| (*number as usize) < size);
        self.give_back(0, &beyond);
        let lists = self.free.lists();
        for (list, some) in stay.chunks(stay.len().div_ceil(lists).max(1)).enumerate() {
            self.give_back(list, some);
        }
    }
}

impl BufferSession {
    /// Makes pages leave their frames, as far as they can, written where that is needed.
    fn vacate(&self, frames: &[u32], failure: &mut Option<BufferError>) {
        let dirty = frames.iter().filter(|number| self.pool.frames[**number as usize].is_dirty());
        let dirty: Vec<u32> = dirty.copied().collect();
        if let Err(error) = self.write_frames(&dirty) {
            *failure = Some(error);
        }
        for batch in frames.chunks(MAX_CLAIMS) {
            let mut claims = self.no_claims();
            for &number in batch {
                // What can't be claimed now is looked at again.
                let _ = claims.claim(number);
            }
            self.settle(&mut claims, false);
        }
    }
}
