//! An entry that is LOADING: how a load begins and ends, and how others wait for its end.
//!
//! One session turns an absent entry to LOADING, by a compare-and-swap. It, or the thread that it
//! hands the load over to, ends the load by one swap. Threads that wait for the end mark the entry
//! as WAITED and park on its address.
//!
//! **Failure.** Dropping a [`Loading`] makes the entry absent again, as it was before (rule 6).

use crate::core::page_table::{LOADING, WAITED, is_absent, resident_in};
use crate::ids::PageId;
use crate::overdue;
use crate::store::PageStore;
use millpond_sync::atomic::{AtomicU64, Ordering};
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
        overdue::park(entry_key(entry), still, || format!("{page} to be loaded"));
        return;
    }
}
