//! How many frames loads ahead may hold, and waiting for one of them to end.

use crate::overdue;
use crate::store::PageStore;
use millpond_sync::atomic::{AtomicUsize, Ordering};
use millpond_sync::parking;

/// The part of the pool that loads ahead may hold is one in so many.
const PART: usize = 4;
/// ... and never more frames than this: 32 MiB.
const MAX_FRAMES_AHEAD: usize = 4096;

/// What loads ahead share.
pub(crate) struct Ahead {
    /// Frames that they hold, or have lost.
    frames: AtomicUsize,
    /// Frames that they have lost. Raised before those who lost them give back the rest of their room, so never more than `frames`.
    lost: AtomicUsize,
}

impl Ahead {
    pub(crate) fn new() -> Self {
        Self { frames: AtomicUsize::new(0), lost: AtomicUsize::new(0) }
    }

    /// How many frames have been lost.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Room for up to `wanted` frames in a pool of `pool`. Relaxed: the count carries nothing but itself.
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

    /// Gives back the `room` of a load that has `lost` frames, but for that of those.
    pub(super) fn release(&self, room: usize, lost: usize) {
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
        // The lost ones were counted later: there may be more of them.
        if now.0 <= now.1 {
            return false;
        }
        // Whatever is under way will end with an `unpark_all`, and changes one of the counts before it does.
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

/// Room for frames that are still looked for: given back, unless somebody goes on with it.
pub(super) struct Room<'a> {
    ahead: &'a Ahead,
    pub(super) frames: usize,
}

impl<'a> Room<'a> {
    /// For up to `wanted` frames in a pool of `pool`; `None` if there is none.
    pub(super) fn reserve(ahead: &'a Ahead, wanted: usize, pool: usize) -> Option<Self> {
        let frames = ahead.reserve(wanted, pool);
        (frames > 0).then_some(Self { ahead, frames })
    }

    /// Leaves the room taken, for whoever goes on with the load.
    pub(super) fn hand_over(self) -> usize {
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
