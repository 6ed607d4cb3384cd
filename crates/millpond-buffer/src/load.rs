//! Misses: bringing a page into memory. Making room for it is [`crate::evict`]'s.
//!
//! ```text
//!            compare-and-swap        take a frame, read into it, verify       swap
//!  ABSENT ----------------------> LOADING --------------------------------> RESIDENT(frame)
//!     ^                             |                                            |
//!     |   error, panic, drop        |                 frame taken by an evictor  |
//!     +-----------------------------+--------------------------------------------+
//! ```
//!
//! Exactly one session turns an entry to LOADING; the others park on it. A session that would load holds
//! no frame yet, so that nobody loses one in a race (a run of several takes its frames first, and may: [`crate::ahead`]); and when it takes a frame, the page that leaves
//! is unlinked completely before the new one is linked (rule 3).
//!
//! The store puts the page into the frame itself, under the eyes of optimistic readers that come too late: the frame is
//! OWNED and its version odd since before, so whatever they see they refuse. Until it has been verified the page is nobody's.
//!
//! Two guards make every step undo itself when it fails or panics: [`Loading`] sets the entry to absent
//! and wakes the waiters, [`crate::evict::Owned`] gives the frame to a freelist (rule 6).

use crate::config::Wait;
use crate::error::BufferError;
use crate::evict::Owned;
use crate::frame::NoPin;
use crate::guard::{ExclusivePage, PinnedPage};
use crate::ids::{BlockNumber, PageId};
use crate::overdue;
use crate::policy;
use crate::relation::{Growth, RelHandle, Relation};
use crate::ring::Ring;
use crate::session::BufferSession;
use crate::stats::Event;
use crate::store::{PageStore, StoreError};
use crate::trace::TraceFlags;
use crate::translation::{LOADING, WAITED, frame_of, is_absent, left_at, resident_in};
use crate::words;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::hint::Backoff;
use millpond_sync::{mutant, ordering, parking};

/// What to do about a page that isn't there or is not valid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fail,
    Zero,
}

/// An entry that this session has turned to LOADING. Dropped, it is what it was before: absent.
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
        // What was written of the page before it left is in the store.
        let order = ordering!("pool-load-begin-relaxed", Acquire);
        let swapped = entry.compare_exchange(before, LOADING, order, Ordering::Relaxed);
        swapped.ok().map(|before| Self { entry, before })
    }

    /// The page is in `frame`.
    pub(crate) fn finish(self, frame: u32) {
        end_load(self.entry, resident_in(frame));
        std::mem::forget(self);
    }

    /// The entry.
    pub(crate) fn entry(&self) -> &'a AtomicU64 {
        self.entry
    }

    /// What the entry was: absent, with when the page left if that is known.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// Leaves the entry LOADING, for whoever finishes the load; returns what it was before.
    pub(crate) fn hand_over(self) -> u64 {
        let before = self.before;
        std::mem::forget(self);
        before
    }

    /// Goes on with a load that was handed over.
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

/// Waits until the load of a page that is going on has ended, or for less. If the store reads it,
/// it may do so on this thread.
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

impl BufferSession {
    /// Pins a page that was not found in memory. (It returns the frame, not a guard: what a function that is
    /// not inlined returns has to go through memory, and the guard of a hit would go with it.)
    #[cold]
    #[inline(never)]
    pub(crate) fn pin_slow(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
        ring: Option<&Ring>,
    ) -> Result<u32, BufferError> {
        self.pin_or_load(rel, block, wait, Missing::Fail, ring)
    }

    /// Pins a page whatever its state in the store, for recovery: a page that is missing or not valid
    /// is a page of zeros in memory. Creates and extends the fork where needed.
    pub fn pin_or_zero(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
    ) -> Result<PinnedPage<'_>, BufferError> {
        if block.0 >= rel.block_count() {
            self.grow_to(rel, block)?;
        }
        let frame = self.pin_or_load(rel, block, Wait::Allowed, Missing::Zero, None)?;
        Ok(PinnedPage::new(self, frame, rel.0.page(block)))
    }

    /// Refuses another pool's fork, before anything of it is touched: its entries would lead to this pool's frames.
    pub(crate) fn check_handle(&self, relation: &Relation) -> Result<(), BufferError> {
        if relation.pool == self.pool.number() {
            Ok(())
        } else {
            Err(BufferError::ForeignHandle { rel: relation.rel })
        }
    }

    fn pin_or_load(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
        missing: Missing,
        ring: Option<&Ring>,
    ) -> Result<u32, BufferError> {
        let relation = &*rel.0;
        self.check_handle(relation)?;
        let page = relation.page(block);
        let mut backoff = Backoff::new();
        loop {
            relation.check(block)?;
            let entry = relation.translation.entry(block);
            let now = entry.load(Ordering::Acquire);
            if let Some(frame) = frame_of(now) {
                match self.pin_resident(frame, page, ring) {
                    Ok(()) => {
                        self.count(Event::Hit, 1);
                        self.trace(page, TraceFlags::HIT);
                        return Ok(frame);
                    }
                    Err(NoPin::Damaged) => return Err(BufferError::Damaged { page }),
                    // It is just leaving. The session that takes its frame has a few steps to do,
                    // but it may have lost the processor.
                    Err(NoPin::Changed) => match wait {
                        Wait::Allowed => backoff.snooze(),
                        Wait::Never if backoff.spin() => {}
                        Wait::Never => return Err(BufferError::WouldBlock),
                    },
                }
            } else if now & LOADING != 0 {
                if wait == Wait::Never {
                    return Err(BufferError::WouldBlock);
                }
                self.count(Event::LoadWait, 1);
                self.timed(Event::ReadTime, || wait_for_load(&*self.pool.store, entry, page));
            } else if let Some(loading) = relation.begin_load(block, entry, self.pins.barriers())? {
                return self.load(relation, block, loading, wait, missing, ring);
            }
        }
    }

    /// The usage of a page that is loaded now and left memory at that time. A page that a ring brings has no
    /// probation: its ring sees to it that it leaves.
    fn first_usage(&self, left_at: Option<u64>, ring: Option<&Ring>) -> u8 {
        match ring {
            Some(_) => policy::FIRST_USAGE,
            None => self.pool.first_usage(left_at),
        }
    }

    /// Loads a page and leaves it pinned by this session.
    fn load(
        &self,
        relation: &Relation,
        block: BlockNumber,
        loading: Loading<'_>,
        wait: Wait,
        missing: Missing,
        ring: Option<&Ring>,
    ) -> Result<u32, BufferError> {
        let page = relation.page(block);
        let mut owned = self.take_frame(wait, ring)?;
        let usage = self.first_usage(left_at(loading.before), ring);
        self.fetch(relation, block, &mut owned, wait, missing)?;
        let frame = owned.publish(self, page, &loading, usage);
        let left_at = left_at(loading.before);
        loading.finish(frame);
        self.count(Event::Miss, 1);
        // A ring's page is not back: it leaves again, as if it had never come.
        if let Some(left_at) = left_at.filter(|_| ring.is_none()) {
            self.count_return(left_at);
        }
        self.trace(page, TraceFlags::NORMAL);
        Ok(frame)
    }

    /// Reads a page from the store into a frame and checks it. Whatever comes of it, the frame's bytes may have changed.
    fn fetch(
        &self,
        relation: &Relation,
        block: BlockNumber,
        owned: &mut Owned<'_>,
        wait: Wait,
        missing: Missing,
    ) -> Result<(), BufferError> {
        let (rel, store) = (relation.rel, &self.pool.store);
        let words = self.pool.words(owned.number());
        words::to_be_filled(words);
        let read = match wait {
            Wait::Never => match store.try_read_words(rel, block, &[words]) {
                Ok(true) => Ok(()),
                Ok(false) => return Err(BufferError::WouldBlock),
                Err(error) => Err(error),
            },
            Wait::Allowed => self.timed(Event::ReadTime, || store.read_words(rel, block, &[words])),
        };
        let checked = match read {
            Ok(()) => {
                self.count(Event::Read, 1);
                self.count(Event::ReadCall, 1);
                words::verify(&self.pool, owned, relation.page(block))
            }
            Err(error @ (StoreError::BeyondEnd { .. } | StoreError::Missing { .. })) => {
                Err(error.into())
            }
            Err(error) => return Err(error.into()),
        };
        if checked.is_err() && missing == Missing::Zero {
            words::clear(self.pool.words(owned.number()));
            return Ok(());
        }
        checked
    }

    pub(crate) fn extend_slow(
        &self,
        rel: &RelHandle,
        wait: Wait,
        ring: Option<&Ring>,
    ) -> Result<ExclusivePage<'_>, BufferError> {
        let relation = &*rel.0;
        self.check_handle(relation)?;
        let owned = self.take_frame(wait, ring)?;
        words::clear(self.pool.words(owned.number()));
        let mut growth = match wait {
            Wait::Allowed => relation.growth(),
            Wait::Never => relation.try_growth().ok_or(BufferError::WouldBlock)?,
        };
        if relation.is_dropped() {
            return Err(BufferError::Dropped { rel: relation.rel });
        }
        let block = relation.blocks();
        if block == growth.allocated {
            if wait == Wait::Never {
                return Err(BufferError::WouldBlock);
            }
            self.allocate(relation, &mut growth, block)?;
        }
        let page = relation.page(BlockNumber(block));
        let entry = relation.translation.entry(BlockNumber(block));
        // Nobody loads a block beyond the end; one who has begun to will step back. What is there is left over from
        // a truncation that failed half-way.
        let mut backoff = Backoff::new();
        let loading = loop {
            match Loading::begin(entry) {
                Some(loading) => break loading,
                // Both of these may wait.
                None if wait == Wait::Never => return Err(BufferError::WouldBlock),
                None if frame_of(entry.load(Ordering::Acquire)).is_some() => {
                    self.pool.discard_one(relation, BlockNumber(block), entry)?;
                }
                None => backoff.snooze(),
            }
        };
        let number = owned.number();
        let frame = &self.pool.frames[number as usize];
        // Free, since the frame is owned; or held for a moment, by who has latched it for the page that it had and is about
        // to notice.
        frame.latch().exclusive();
        owned.publish(self, page, &loading, self.first_usage(None, ring));
        if block < growth.stale {
            frame.mark_dirty();
        }
        relation.set_blocks(block + 1);
        loading.finish(number);
        drop(growth);
        self.count(Event::Extended, 1);
        self.count(Event::ExtendCall, 1);
        self.trace(page, TraceFlags::EXTEND);
        Ok(ExclusivePage::latched(PinnedPage::new(self, number, page)))
    }

    /// Makes room in the store for blocks from `first` on: the more, the larger the fork.
    fn allocate(
        &self,
        relation: &Relation,
        growth: &mut Growth,
        first: u32,
    ) -> Result<(), BufferError> {
        let room = (u32::MAX - 1).saturating_sub(first);
        if room == 0 {
            return Err(BufferError::RelationFull { rel: relation.rel });
        }
        let count = (first / 8).clamp(1, 64).min(room);
        let extend = || self.pool.store.extend(relation.rel, BlockNumber(first), count);
        self.timed(Event::ExtendTime, extend)?;
        growth.allocated = first + count;
        Ok(())
    }

    /// Makes a fork exist and have `block`.
    fn grow_to(&self, rel: &RelHandle, block: BlockNumber) -> Result<(), BufferError> {
        let relation = &*rel.0;
        self.check_handle(relation)?;
        if block.0 >= u32::MAX - 1 {
            return Err(BufferError::RelationFull { rel: relation.rel });
        }
        let mut growth = relation.growth();
        if relation.is_dropped() {
            return Err(BufferError::Dropped { rel: relation.rel });
        }
        let needed = block.0 + 1;
        if growth.allocated < needed {
            self.pool.store.create(relation.rel)?;
            let first = growth.allocated;
            self.pool.store.extend(relation.rel, BlockNumber(first), needed - first)?;
            growth.allocated = needed;
        }
        if relation.blocks() < needed {
            relation.set_blocks(needed);
        }
        Ok(())
    }
}
