//! The size of the pool, which may change while it is in use.
//!
//! A frame beyond the pool's size is *retired*: it is OWNED and RETIRED, on no freelist, and its
//! version is odd. So no session pins, takes or finds it. Its memory goes back to the system but
//! stays mapped, for optimistic readers that come too late (rule 2).
//!
//! **Retiring against growing again.** A session reads the size, and may retire a frame by it much
//! later. So after retiring a frame, a session looks at the size again. A session that raises the
//! size looks for retired frames afterwards. Both have a sequentially consistent fence between
//! their two steps. So at least one of them sees what the other has done. Both bring such a frame
//! back by a compare-and-swap, so only one of them does.

use crate::core::frame::Frame;
use crate::core::freelist::Freelists;
use millpond_sync::atomic::{AtomicUsize, Ordering, fence};
use millpond_sync::mutant;
use millpond_sync::sync::Mutex;
use std::ops::Range;

/// The size of the pool.
pub(crate) struct Size {
    /// Frames below this one are in use.
    frames: AtomicUsize,
    /// Frames below this one may hold pages.
    pub(crate) occupied: AtomicUsize,
    /// Held while the size changes: the number of frames that were ever in use.
    pub(crate) alive: Mutex<usize>,
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

    /// Frees owned frames; those beyond the size retire.
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

    /// Frees those frames that are retired or new (`are_new`). The size includes them by now.
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
