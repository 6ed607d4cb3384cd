//! The limit on frames held by read-ahead, and waiting for one such load to end.

use crate::overdue;
use crate::store::PageStore;
use millpond_sync::atomic::{AtomicUsize, Ordering};
use millpond_sync::parking;

/// Read-ahead may hold this fraction of the pool: one frame in `PART`.
const PART: usize = 4;
/// The most frames that read-ahead may hold in any pool: 32 MiB.
const MAX_FRAMES_AHEAD: usize = 4096;

pub(crate) struct ReadAhead {
    /// Frames that the loads hold or have lost.
    frames: AtomicUsize,
    /// Frames that the loads have lost. A load raises this count before it gives back the rest of
    /// its room, so it never exceeds `frames`.
    lost: AtomicUsize,
}

impl ReadAhead {
    pub(crate) fn new() -> Self {
        Self { frames: AtomicUsize::new(0), lost: AtomicUsize::new(0) }
    }

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
            overdue::park(self.key(), is_same, || "one of the reads ahead to end".to_owned());
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
