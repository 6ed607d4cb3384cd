//! An entry that is LOADING: how a load begins and ends, and how others wait for its end.
//!
//! One session turns an absent entry to LOADING, by a compare-and-swap. It, or the thread that it
//! hands the load over to, ends the load by one swap. Threads that wait for the end mark the entry
//! as WAITED and park on its address.
//!
//! **Failure.** Dropping a [`Loading`] makes the entry absent again, as it was before (rule 6).
//!
//! [`ReadAhead`] limits the frames that loads ahead of need hold. A session waits there for one
//! such load to end.

use crate::core::page_table::{LOADING, WAITED, is_absent, resident_in};
use crate::ids::PageId;
use crate::incidents;
use crate::store::PageStore;
use millpond_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use millpond_sync::{mutant, ordering, parking};

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
        incidents::park(entry_key(entry), still, || format!("{page} to be loaded"));
        return;
    }
}

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
            incidents::park(self.key(), is_same, || "one of the reads ahead to end".to_owned());
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
