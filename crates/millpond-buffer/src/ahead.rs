//! Loads of several neighbouring pages at once, which nobody need wait for.
//!
//! Pages go straight into the frames, whoever reads them, if the store can do that. What is read in the background is *lent* the
//! frames' memory ([`Lent`]): until it gives that back nobody else stores to them, nor are they anybody's. If it never does (a device
//! that may still write, of which nothing is heard any more), the load is undone and the frames are lost.
//!
//! A session begins such a load and may go on, or go away: the load owns all that it has taken (entries, frames,
//! a reference to the pool and to the fork), and whoever finishes the read, a thread of the
//! store's or the session itself, publishes the pages and wakes those who wait for them. So nobody ever
//! waits for a session that is idle (rule 10).
//!
//! ```text
//! session   take frames -> entries to LOADING -> start_read .......... goes on
//! store                                   fill the frames, finish
//! any thread                                          verify, publish, entry to RESIDENT, wake, unpin
//! ```
//!
//! Invariants:
//!
//! - The first frame is taken as the caller may wait; the others only if a clean one is at hand. No entry is LOADING
//!   while a frame is looked for, so that nobody waits for a search.
//! - Frames in such loads are at most a quarter of the pool ([`Ahead::reserve`]), and who finds every other frame
//!   pinned waits for one of these loads to end ([`Ahead::wait_for_one`]). So reading ahead never makes a pool run out
//!   of frames. Nobody holds room while looking for a first frame, so nobody waits for himself.
//! - Lost frames keep their room for ever, so they are part of that quarter, however often a device gives up; nobody waits for them.
//! - A page is published without a pin. It may leave before it is used, and is then loaded again.
//! - A ring ([`crate::ring`]) learns which pages come to its frames when the load begins. It is asked for frames by a
//!   stream that reads ahead at most half of it, so a ring never comes round to a page that is still being read.
//! - A stream hands the store no more reads at a time than its settings say. Those that it has prepared besides wait for
//!   their turn ([`crate::turns`]): so they, too, need nobody's help.
//! - What fails is undone page by page: a page that is damaged in the store does not keep out its neighbours, and one
//!   error of the whole read makes all entries absent. Nothing is reported here: whoever asks for a page that
//!   did not come loads it himself, and learns what is wrong with it.
//!
//! **Memory ordering** is that of single loads: an entry is published by the swap in `end_load`, a frame by
//! `publish`. What a load owns reaches the finishing thread through the store's queue. Whoever fills the frames, or has a kernel
//! do so, makes the release fence himself ([`Lent::words`]), and knows of the odd versions by the queue he has the read from.

mod room;

pub(crate) use room::Ahead;
use room::Room;

use crate::PageWords;
use crate::arena::Lent;
use crate::config::Wait;
use crate::evict::Owned;
use crate::ids::BlockNumber;
use crate::load::Loading;
use crate::page::PageBytes;
use crate::policy;
use crate::pool::BufferPool;
use crate::relation::{RelHandle, Relation};
use crate::ring::Ring;
use crate::session::BufferSession;
use crate::stats::{Event, Histogram};
use crate::store::{Memory, PendingRead, StoreError};
use crate::translation::left_at;
use crate::turns::UnderWay;
use crate::words;
use smallvec::SmallVec;
use std::sync::Arc;

/// The most pages that one read joins: 256 kB.
pub const MAX_COMBINE: u32 = 32;

/// A load of neighbouring pages: the entries are LOADING, the frames owned. Dropped, what has not been dealt
/// with is undone.
struct Run {
    pool: Arc<BufferPool>,
    rel: RelHandle,
    first: BlockNumber,
    /// The frame for each block, in order, and what its entry was before.
    frames: SmallVec<[(u32, u64); 4]>,
    /// How many of them have been dealt with.
    done: usize,
    /// How much room the load has.
    room: usize,
    /// How many of its frames are lost.
    lost: usize,
    /// Whose freelist gets the frames back.
    near: usize,
    /// Whether the frames are a ring's.
    in_ring: bool,
    /// Whether their memory has been lent and not been given back: then they are not to be touched.
    is_lent: bool,
}

/// Where a page of a run is.
#[derive(Clone, Copy)]
enum Found<'a> {
    /// In its frame.
    Placed,
    /// Elsewhere.
    At(&'a PageBytes),
    /// Nowhere: its load is undone.
    Nowhere,
}

impl Run {
    /// Lends the memory of the frames, to be filled.
    fn lend(&mut self) -> Lent {
        self.words();
        for &(number, _) in &self.frames {
            let frame = &self.pool.frames[number as usize];
            debug_assert!(frame.may_be_lent(), "lent by who doesn't own it");
        }
        self.is_lent = true;
        self.pool.arena.lend(self.frames.iter().map(|&(number, _)| number))
    }

    /// Publishes what has been read to lent frames, or, in their stead, to a buffer. Without memory the frames are lost.
    fn finish_lent(mut self, memory: Option<Memory>, result: &Result<(), StoreError>) {
        let Some(Memory::Frames(lent, buffer)) = memory else { return };
        drop(lent);
        self.is_lent = false;
        let Some(buffer) = buffer else { return self.finish_placed(result) };
        if result.is_ok() {
            for page in buffer.pages() {
                self.settle(Found::At(page));
            }
        }
    }

    /// Publishes what has been read to the frames.
    fn finish_placed(mut self, result: &Result<(), StoreError>) {
        while result.is_ok() && self.settle(Found::Placed) {}
    }

    /// The memory of the frames, to be filled.
    fn words(&self) -> SmallVec<[&PageWords; 4]> {
        let words = |&(number, _): &(u32, u64)| {
            let words = self.pool.words(number);
            words::to_be_filled(words);
            words
        };
        self.frames.iter().map(words).collect()
    }

    /// Deals with the next page: publishes it, or undoes its load. `false` if there is no next page.
    fn settle(&mut self, found: Found<'_>) -> bool {
        let Some(&(number, before)) = self.frames.get(self.done) else { return false };
        let block = BlockNumber(self.first.0 + self.done as u32);
        self.done += 1;
        let page = self.rel.0.page(block);
        // In this order: an entry is absent only after its frame is free.
        let loading = Loading::resume(self.rel.0.translation.entry(block), before);
        if self.is_lent {
            self.pool.frames[number as usize].lose();
            self.lost += 1;
            return true;
        }
        let mut owned = Owned::resume(&self.pool, self.near, number);
        let verified = match found {
            Found::Placed => words::verify(&self.pool, &mut owned, page),
            Found::At(bytes) => self.pool.verify(page, bytes),
            Found::Nowhere => return true,
        };
        if let Err(error) = verified {
            tracing::debug!(%error, "found reading ahead");
            return true;
        }
        if let Found::At(bytes) = found {
            words::copy_in(self.pool.words(number), bytes);
        }
        let usage = match self.in_ring {
            true => policy::FIRST_USAGE,
            false => self.pool.first_usage_ahead(left_at(before)),
        };
        let (frame, kept) = owned.publish_kept(page, &loading, usage);
        loading.finish(frame);
        drop(kept);
        true
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        while self.settle(Found::Nowhere) {}
        self.pool.ahead.release(self.room, self.lost);
        if self.lost > 0 {
            let (frames, all) = (self.lost, self.pool.ahead.lost());
            tracing::error!(
                frames,
                all,
                "frames of the pool are lost until a restart: a device may still write to them"
            );
        }
    }
}

/// Whether a run of pages that is needed at once may be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The caller has nothing to do before the pages are there: read them on its own thread.
    Now,
    /// Let the store read them in the background.
    Later,
}

/// How a run is loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How<'a> {
    pub(crate) wait: Wait,
    pub(crate) urgency: Urgency,
    /// Where it counts, and may have to wait for its turn, if it is read in the background.
    pub(crate) under_way: &'a UnderWay,
    /// How many of those the store may have at a time.
    pub(crate) at_most: u32,
}

/// What came of a [`BufferSession::load_run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadedRun {
    /// So many pages are there; no device was waited for.
    AtHand(usize),
    /// So many pages were read from the device, or will be.
    FromDevice(usize),
    /// Others are loading the first page, or have loaded it.
    Taken,
    /// There was no frame, or no room, or it would have had to wait.
    Refused,
}

impl BufferSession {
    /// Loads up to `count` pages from `first` that are not in memory, by one read. Pages that could not be read stay
    /// absent, as they were. `count` is at most [`MAX_COMBINE`].
    pub(crate) fn load_run(
        &self,
        rel: &RelHandle,
        first: BlockNumber,
        count: usize,
        ring: Option<&Ring>,
        how: How<'_>,
    ) -> LoadedRun {
        // Another pool's entries are not to be touched. Who then asks for the page is told.
        if self.check_handle(&rel.0).is_err() {
            return LoadedRun::Refused;
        }
        let _context = self.in_context(ring);
        let Some((mut frames, room)) = self.frames_for_run(count, how.wait, ring) else {
            return LoadedRun::Refused;
        };
        let mut run = Run {
            pool: Arc::clone(&self.pool),
            rel: rel.clone(),
            first,
            frames: SmallVec::with_capacity(frames.len()),
            done: 0,
            room: room.hand_over(),
            lost: 0,
            near: self.near(),
            in_ring: ring.is_some(),
            is_lent: false,
        };
        let mut allocated: SmallVec<[usize; 4]> = SmallVec::new();
        for (block, owned) in (first.0..).zip(frames.drain(..)) {
            let Some(loading) = self.begin_load(&rel.0, BlockNumber(block)) else { break };
            let (frame, examined) = owned.hand_over(rel.0.page(BlockNumber(block)));
            run.frames.push((frame, loading.hand_over()));
            allocated.extend(examined);
        }
        drop(frames);
        let loaded = match run.frames.len() {
            0 => LoadedRun::Taken,
            pages => self.read_run(run, pages, how),
        };
        if loaded != LoadedRun::Refused {
            for examined in allocated {
                self.count_log2(Histogram::Examined, examined as u64);
            }
        }
        loaded
    }

    /// Turns the entry of a block to LOADING, if the page is absent and its fork has it.
    fn begin_load<'a>(&self, relation: &'a Relation, block: BlockNumber) -> Option<Loading<'a>> {
        relation.check(block).ok()?;
        let entry = relation.translation.entry(block);
        relation.begin_load(block, entry, self.pins.barriers()).ok()?
    }

    /// Frames for a run, at least one, and room for them.
    fn frames_for_run<'a>(
        &'a self,
        count: usize,
        wait: Wait,
        ring: Option<&'a Ring>,
    ) -> Option<(SmallVec<[Owned<'a>; 4]>, Room<'a>)> {
        let first = self.take_frame(wait, ring).ok()?;
        let room = Room::reserve(&self.pool.ahead, count, self.pool.frames())?;
        let mut frames = SmallVec::with_capacity(room.frames);
        frames.push(first);
        while frames.len() < room.frames
            && let Ok(next) = self.take_frame(Wait::Never, ring)
        {
            frames.push(next);
        }
        Some((frames, room))
    }

    fn read_run(&self, mut run: Run, pages: usize, how: How<'_>) -> LoadedRun {
        let How { wait, urgency, under_way, at_most } = how;
        let (rel, first) = (run.rel.rel(), run.first);
        let store = &self.pool.store;
        let is_at_hand = match store.try_read_words(rel, first, &run.words()) {
            Ok(is_at_hand) => is_at_hand,
            Err(_) => return LoadedRun::FromDevice(pages),
        };
        if !is_at_hand && wait == Wait::Never && !store.reads_in_background() {
            return LoadedRun::Refused;
        }
        self.count(Event::ReadAhead, pages as u64);
        self.count(Event::Read, pages as u64);
        self.count(Event::ReadCall, 1);
        let back = run.frames.iter().filter(|_| !run.in_ring);
        for left in back.filter_map(|&(_, before)| left_at(before)) {
            self.count_return(left);
        }
        if is_at_hand {
            run.finish_placed(&Ok(()));
            return LoadedRun::AtHand(pages);
        }
        if urgency == Urgency::Now && wait == Wait::Allowed {
            let read = || store.read_words(rel, first, &run.words());
            let result = self.timed(Event::ReadTime, read);
            run.finish_placed(&result);
        } else {
            let frames = run.lend();
            let done = move |memory, result| run.finish_lent(memory, &result);
            let mut read = PendingRead::into_frames(rel, first, frames, done);
            if wait == Wait::Allowed {
                read.set_awaited();
            }
            under_way.begin(&self.pool, read, at_most);
        }
        LoadedRun::FromDevice(pages)
    }
}
