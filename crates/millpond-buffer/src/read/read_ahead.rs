//! Read-ahead: loads of several neighbouring pages by one read, which no session has to wait for.
//!
//! If the store can do so, it reads pages straight into the frames, on any thread. For a read in
//! the background, the load *lends* the store the memory of the frames ([`IoFrames`]). Until the
//! store gives that memory back, no other thread stores to it, and the frames hold no page. If the
//! store never gives it back (a device has given up and may still write), the load is undone and
//! the frames are lost.
//!
//! A session begins such a load and may then go on, or end. The load owns all that it has taken:
//! entries, frames, a reference to the pool and to the fork. The thread that finishes the read is
//! one of the store's, or the session's own. It publishes the pages and wakes the sessions that
//! wait for them. So no session ever waits for an idle session (rule 10).
//!
//! ```text
//! session   take frames -> entries to LOADING -> start_read .......... goes on
//! store                                   fill the frames, finish
//! any thread                              verify, publish, entry to RESIDENT, wake, unpin
//! ```
//!
//! Invariants:
//!
//! - The caller's [`Wait`] says whether the load may wait for its first frame. It takes the others
//!   only if they are free or clean. No entry is LOADING while a session looks for a frame, so no
//!   session waits for that search.
//! - Frames in such loads are at most a quarter of the pool
//!   ([`crate::core::relation::ReadAhead::reserve`]). A session that finds every other frame
//!   pinned waits for one of these loads to end
//!   ([`crate::core::relation::ReadAhead::wait_for_one`]). So reading ahead never makes a pool
//!   run out of frames. No session holds room while it looks for a first frame, so none waits for
//!   itself.
//! - Lost frames keep their room for ever. So they are part of that quarter, however often a device
//!   gives up. No session waits for them.
//! - A page is published without a session's pin. It may be evicted before it is used, and is then
//!   loaded again.
//! - A ring ([`crate::replacement::ring`]) learns which pages come to its frames when the load
//!   begins. A stream reads ahead at most half of its ring. So a ring never comes round to a page
//!   that is still being read.
//! - A stream gives the store no more reads at a time than its settings allow. Its other prepared
//!   reads wait in a queue ([`crate::read::UnderWay`]), and a read that ends starts the next
//!   one. So they need no session's help either.
//! - A failure undoes single pages: a page that is damaged in the store does not keep out its
//!   neighbours. If the whole read fails, all entries become absent. A load reports no error to a
//!   session. A session that asks for a missing page loads it itself, and gets the error.
//!
//! **Memory ordering** is that of single loads: the swap in `end_load` publishes an entry, and
//! `publish` publishes a frame. The store's queue carries what a load owns to the thread that
//! finishes it. The thread that fills the frames, or has the kernel fill them, makes the release
//! fence itself ([`IoFrames::words`]). It knows of the odd versions through the queue that it took
//! the read from.

use crate::arena::IoFrames;
use crate::config::Wait;
use crate::core::PoolCore;
use crate::core::page_table::left_at;
use crate::core::relation::{Loading, RelHandle, Relation, Room};
use crate::core::session::SessionCore;
use crate::ids::BlockNumber;
use crate::page::words::PageWords;
use crate::page::{PageBytes, words};
use crate::policy;
use crate::read::UnderWay;
use crate::replacement::Owned;
use crate::replacement::reuse::take_frame;
use crate::replacement::ring::Ring;
use crate::stats::{Event, Histogram};
use crate::store::{Memory, PendingRead, StoreError};
use smallvec::SmallVec;
use std::sync::Arc;

/// A load of neighbouring pages: the entries are LOADING, the frames owned. Dropping it undoes the
/// pages that have not been dealt with.
struct Run {
    pool: Arc<PoolCore>,
    rel: RelHandle,
    first: BlockNumber,
    /// The frame for each block, in order, and what its entry was before.
    frames: SmallVec<[(u32, u64); 4]>,
    /// How many of them have been dealt with.
    done: usize,
    /// How many frames the load has reserved room for.
    room: usize,
    lost: usize,
    /// The freelist that gets the frames back.
    near: usize,
    in_ring: bool,
    /// Whether their memory is lent: then this thread must not touch it.
    is_lent: bool,
}

/// Where the bytes of a page of a run are.
#[derive(Clone, Copy)]
enum Found<'a> {
    Placed,
    /// Elsewhere.
    At(&'a PageBytes),
    /// Nowhere: its load is undone.
    Nowhere,
}

impl Run {
    /// Lends the memory of the frames to a read that fills them.
    fn lend(&mut self) -> IoFrames {
        self.words();
        for &(number, _) in &self.frames {
            let frame = &self.pool.frames[number as usize];
            debug_assert!(frame.may_be_lent(), "only the owner may lend a frame");
        }
        self.is_lent = true;
        self.pool.arena.lend(self.frames.iter().map(|&(number, _)| number))
    }

    /// Publishes pages that were read into lent frames, or into a buffer in their place. If the
    /// memory did not come back, the frames are lost.
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

    fn finish_placed(mut self, result: &Result<(), StoreError>) {
        while result.is_ok() && self.settle(Found::Placed) {}
    }

    /// The memory of the frames, for a read on this thread.
    fn words(&self) -> SmallVec<[&PageWords; 4]> {
        let words = |&(number, _): &(u32, u64)| {
            let words = self.pool.words(number);
            words::to_be_filled(words);
            words
        };
        self.frames.iter().map(words).collect()
    }

    /// Publishes the next page, or undoes its load. `false` if there is no next page.
    fn settle(&mut self, found: Found<'_>) -> bool {
        let Some(&(number, before)) = self.frames.get(self.done) else { return false };
        let block = BlockNumber(self.first.0 + self.done as u32);
        self.done += 1;
        let page = self.rel.0.page(block);
        // Drop order matters: `owned` is dropped first, so the frame is free before the entry is
        // absent.
        let loading = Loading::resume(self.rel.0.translation.entry(block), before);
        if self.is_lent {
            self.pool.frames[number as usize].lose();
            self.lost += 1;
            return true;
        }
        let mut owned = Owned::resume(&self.pool, self.near, number);
        let verified = match found {
            Found::Placed => owned.verify(page),
            Found::At(bytes) => self.pool.verify(page, bytes),
            Found::Nowhere => return true,
        };
        if let Err(error) = verified {
            tracing::debug!(%error, "read-ahead found an invalid page");
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

/// Whether the caller needs the pages of a run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The caller can do nothing before the pages are there: read them on its own thread.
    Now,
    /// Let the store read them in the background.
    Later,
}

/// How a run is loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How<'a> {
    pub(crate) wait: Wait,
    pub(crate) urgency: Urgency,
    /// The stream's count and queue of background reads: such a read may have to wait there.
    pub(crate) under_way: &'a UnderWay,
    /// The most reads of that stream that the store may have at a time.
    pub(crate) at_most: u32,
}

/// The outcome of [`load_run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadedRun {
    /// This number of pages is in memory; no device was waited for.
    AtHand(usize),
    /// This number of pages was read from the device, or will be.
    FromDevice(usize),
    /// Other sessions are loading the first page, or have loaded it.
    Taken,
    /// There was no frame or no room, or the load would have had to wait.
    Refused,
}

/// Loads up to `count` pages from `first` that are not in memory, by one read. Pages that could
/// not be read stay absent. `count` is at most [`MAX_COMBINE`](crate::MAX_COMBINE).
pub(crate) fn load_run(
    session: &SessionCore,
    rel: &RelHandle,
    first: BlockNumber,
    count: usize,
    ring: Option<&Ring>,
    how: How<'_>,
) -> LoadedRun {
    // Never touch another pool's entries. A session that then asks for the page gets the error.
    if session.check_handle(&rel.0).is_err() {
        return LoadedRun::Refused;
    }
    let _context = session.in_context(ring.map(Ring::io_context));
    let Some((mut frames, room)) = frames_for_run(session, count, how.wait, ring) else {
        return LoadedRun::Refused;
    };
    let mut run = Run {
        pool: Arc::clone(&session.pool),
        rel: rel.clone(),
        first,
        frames: SmallVec::with_capacity(frames.len()),
        done: 0,
        room: room.hand_over(),
        lost: 0,
        near: session.near(),
        in_ring: ring.is_some(),
        is_lent: false,
    };
    let mut allocated: SmallVec<[usize; 4]> = SmallVec::new();
    for (block, owned) in (first.0..).zip(frames.drain(..)) {
        let Some(loading) = begin_load(session, &rel.0, BlockNumber(block)) else { break };
        let (frame, examined) = owned.hand_over(rel.0.page(BlockNumber(block)));
        run.frames.push((frame, loading.hand_over()));
        allocated.extend(examined);
    }
    drop(frames);
    let loaded = match run.frames.len() {
        0 => LoadedRun::Taken,
        pages => read_run(session, run, pages, how),
    };
    if loaded != LoadedRun::Refused {
        for examined in allocated {
            session.count_log2(Histogram::Examined, examined as u64);
        }
    }
    loaded
}

/// Turns a block's entry to LOADING, if the page is absent and the fork has that block.
fn begin_load<'a>(
    session: &SessionCore,
    relation: &'a Relation,
    block: BlockNumber,
) -> Option<Loading<'a>> {
    relation.check(block).ok()?;
    let entry = relation.translation.entry(block);
    relation.begin_load(block, entry, session.pins.barriers()).ok()?
}

/// Frames for a run, at least one, and room for them.
fn frames_for_run<'a>(
    session: &'a SessionCore,
    count: usize,
    wait: Wait,
    ring: Option<&'a Ring>,
) -> Option<(SmallVec<[Owned<'a>; 4]>, Room<'a>)> {
    let first = take_frame(session, wait, ring).ok()?;
    let room = Room::reserve(&session.pool.ahead, count, session.pool.frames())?;
    let mut frames = SmallVec::with_capacity(room.frames);
    frames.push(first);
    while frames.len() < room.frames
        && let Ok(next) = take_frame(session, Wait::Never, ring)
    {
        frames.push(next);
    }
    Some((frames, room))
}

fn read_run(session: &SessionCore, mut run: Run, pages: usize, how: How<'_>) -> LoadedRun {
    let How { wait, urgency, under_way, at_most } = how;
    let (rel, first) = (run.rel.rel(), run.first);
    let store = &session.pool.store;
    let is_at_hand = match store.try_read_words(rel, first, &run.words()) {
        Ok(is_at_hand) => is_at_hand,
        Err(_) => return LoadedRun::FromDevice(pages),
    };
    if !is_at_hand && wait == Wait::Never && !store.reads_in_background() {
        return LoadedRun::Refused;
    }
    session.count(Event::ReadAhead, pages as u64);
    session.count(Event::Read, pages as u64);
    session.count(Event::ReadCall, 1);
    let back = run.frames.iter().filter(|_| !run.in_ring);
    for left in back.filter_map(|&(_, before)| left_at(before)) {
        session.count_return(left);
    }
    if is_at_hand {
        run.finish_placed(&Ok(()));
        return LoadedRun::AtHand(pages);
    }
    if urgency == Urgency::Now && wait == Wait::Allowed {
        let read = || store.read_words(rel, first, &run.words());
        let result = session.timed(Event::ReadTime, read);
        run.finish_placed(&result);
    } else {
        let frames = run.lend();
        let done = move |memory, result| run.finish_lent(memory, &result);
        let mut read = PendingRead::into_frames(rel, first, frames, done);
        if wait == Wait::Allowed {
            read.set_awaited();
        }
        under_way.begin(&session.pool.store, read, at_most);
    }
    LoadedRun::FromDevice(pages)
}
