//! Pages leave many frames at once: to refill a freelist, when a pool is resized, and with a fork.
//!
//! **Refilling** ([`refill`]) frees frames before a session needs them. It sweeps as a session
//! would and takes the clean frames that it is offered. It writes the dirty ones that it meets, in
//! file order with neighbours joined. Then it takes as many of those as are missing. A page that
//! can't be written stays dirty and in its frame. The others are written nevertheless, and the
//! error is reported.
//!
//! **Growing** ([`PoolCore::grow`]) brings frames to life, or back from retirement
//! ([`crate::core::free_frames`]), and puts them onto the freelists. The pool grows and shrinks
//! while it is in use. It reserves the addresses for its maximal size when it is made.
//!
//! **Shrinking** first lowers the size. From then on
//!
//! - the sweep's hand goes round below it;
//! - a session that frees a frame beyond it ([`PoolCore::give_back`]), or takes one from a
//!   freelist, retires the frame.
//!
//! Then the pages beyond the size are written where needed and evicted like any other victims,
//! until all those frames are retired. The call waits for pinned pages, for a limited time. It does
//! not wait for a damaged page, which stays until it is dropped or truncated with its relation, nor
//! for a lost frame. After that the pool keeps the size that it needs to hold what is left, and
//! reports it.
//!
//! **Checkpoints** look at all frames that may hold a page: more than the size, while the pool
//! shrinks.
//!
//! **Discarding.** The pages of a fork that is dropped or truncated leave memory unwritten (rule
//! 9).

use super::evict::{MAX_ROUNDS, free_into, no_claims, settle, sweep_clean};
use crate::core::PoolCore;
use crate::core::frame::{Claimer, DAMAGED, Leaves, NoTake};
use crate::core::free_frames::Size;
use crate::core::page_table::{frame_of, is_absent};
use crate::core::relation::{Relation, wait_for_load};
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::ids::{BlockNumber, PageId};
use crate::policy::{self, Swept};
use crate::replacement::{MAX_CLAIMS, VictimBatch};
use crate::stats::Histogram;
use crate::write_back::async_write::write_victims;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::hint::Backoff;

/// How often shrinking looks again at pages that are in use, about a millisecond apart.
const PATIENCE: usize = if cfg!(any(miri, shuttle)) {
    20
} else if cfg!(test) {
    200
} else {
    3_000
};

fn wait_a_little() {
    #[cfg(not(miri))]
    millpond_sync::thread::sleep(std::time::Duration::from_millis(1));
    #[cfg(miri)]
    millpond_sync::thread::yield_now();
}

/// Changes the size of the pool to `frames` pages, while it is in use.
pub(crate) fn resize(session: &SessionCore, frames: usize) -> Result<(), BufferError> {
    let pool = &*session.pool;
    if frames == 0 || frames > pool.frames.len() {
        return Err(BufferError::Size { frames, max: pool.frames.len() });
    }
    let mut alive = pool.size.alive.lock();
    if frames >= pool.frames() {
        pool.grow(frames, &mut alive);
        return Ok(());
    }
    shrink(session, frames)
}

fn shrink(session: &SessionCore, frames: usize) -> Result<(), BufferError> {
    let pool = &*session.pool;
    // Includes the frames that an interrupted attempt has left behind.
    let before = pool.size.occupied();
    pool.set_size(frames);
    let mut left: Vec<u32> = (frames as u32..before as u32).collect();
    let mut failure = None;
    for _ in 0..PATIENCE {
        // Pages that could not be written before may have been written since.
        failure = None;
        retire_free(pool);
        vacate(session, &left, &mut failure);
        left.retain(|number| !pool.frames[*number as usize].is_retired());
        // A damaged page stays until it is dropped or truncated, a lost frame until a restart.
        if left.iter().all(|number| pool.frames[*number as usize].state() & DAMAGED != 0) {
            break;
        }
        wait_a_little();
    }
    let size = left.iter().max().map_or(frames, |last| *last as usize + 1);
    if size > frames {
        pool.set_size(size);
        Size::bring_back(&pool.free, session.near(), &pool.frames, frames..size, |_| false);
    }
    pool.size.occupied.store(size, Ordering::Release);
    pool.arena.release(size..before);
    let Some(last) = left.last().map(|last| &pool.frames[*last as usize]) else {
        return Ok(());
    };
    let (page, is_lost) = (last.page(), last.is_lost());
    Err(failure.unwrap_or(BufferError::Shrinking { frames: size, page, is_lost }))
}

/// Retires the free frames beyond the pool's size, including those that rings have in reserve.
/// Shares the other frames out again.
fn retire_free(pool: &PoolCore) {
    let mut free = pool.reserves.beyond(pool.frames());
    while let Some(popped) = pool.free.pop(0, &pool.frames) {
        free.push(popped.frame);
    }
    let size = pool.frames();
    let (stay, beyond): (Vec<_>, Vec<_>) =
        free.into_iter().partition(|number| (*number as usize) < size);
    pool.give_back(0, &beyond);
    let lists = pool.free.lists();
    for (list, some) in stay.chunks(stay.len().div_ceil(lists).max(1)).enumerate() {
        pool.give_back(list, some);
    }
}

/// Makes pages leave their frames, as far as possible. Dirty pages are written first.
fn vacate(session: &SessionCore, frames: &[u32], failure: &mut Option<BufferError>) {
    let dirty = frames.iter().filter(|number| session.pool.frames[**number as usize].is_dirty());
    let dirty: Vec<u32> = dirty.copied().collect();
    if let Err(error) = write_frames(session, &dirty) {
        *failure = Some(error);
    }
    for batch in frames.chunks(MAX_CLAIMS) {
        let mut claims = no_claims(session);
        for &number in batch {
            // A frame that can't be claimed now is looked at again.
            let _ = claims.claim(number);
        }
        settle(session, &mut claims, false);
    }
}

/// How often dropping a fork looks again at a pinned page before it gives up. Only background
/// writers pin a page that is about to go, and only for a short time.
const DROP_PATIENCE: usize = if cfg!(any(miri, shuttle)) { 100 } else { 1_000_000 };
/// By how much a look for sessions' pins reduces that patience: it costs a barrier.
const LOOK_PATIENCE: usize = if cfg!(any(miri, shuttle)) { 1 } else { 1_000 };

/// Makes every page from `first` on leave memory, dirty or not. No load can begin any more.
pub(crate) fn discard(
    pool: &PoolCore,
    relation: &Relation,
    first: BlockNumber,
) -> Result<(), BufferError> {
    // Most pages go in batches. Those being loaded, written or taken now are left to the second
    // walk.
    let Some(entries) = relation.entries_cut_off(first, &pool.pins) else {
        // Without the barrier, a load may be under way or still begin.
        return Err(BufferError::InUse { page: relation.page(first) });
    };
    let mut entries = entries.peekable();
    while entries.peek().is_some() {
        let _alone = pool.discarding.lock();
        let mut claims = VictimBatch::none(pool, Claimer::POOL, 0);
        for (block, entry) in entries.by_ref() {
            if let Some(number) = frame_of(entry.load(Ordering::Acquire)) {
                claims.claim_from(number, relation.page(block)).ok();
                if claims.is_full() {
                    break;
                }
            }
        }
        claims.settle(Leaves::Discarded, false);
    }
    for (block, entry) in relation.translation.from(first) {
        discard_one(pool, relation, block, entry)?;
    }
    Ok(())
}

/// Makes one page leave memory, dirty or not. The caller holds the fork's growth lock.
pub(crate) fn discard_one(
    pool: &PoolCore,
    relation: &Relation,
    block: BlockNumber,
    entry: &AtomicU64,
) -> Result<(), BufferError> {
    let mut backoff = Backoff::new();
    let mut patience = DROP_PATIENCE;
    loop {
        let now = entry.load(Ordering::Acquire);
        if is_absent(now) {
            return Ok(());
        }
        let Some(number) = frame_of(now) else {
            // A load that began before: it will step back or finish.
            wait_for_load(&*pool.store, entry, relation.page(block));
            continue;
        };
        let page = relation.page(block);
        match discard_frame(pool, number, page) {
            Ok(()) => return Ok(()),
            Err(NoTake::Pinned) if patience == 0 => return Err(BufferError::InUse { page }),
            Err(NoTake::Pinned) => {
                // A pin that shows in the frame's state belongs to a writer or to a read ahead
                // that just ended. Seeing it is cheap.
                let is_shown = pool.frames[number as usize].is_pinned();
                patience = patience.saturating_sub(if is_shown { 1 } else { LOOK_PATIENCE });
                backoff.snooze();
            }
            Err(_) => {
                pool.frames[number as usize].wait_for_write();
                backoff.snooze();
            }
        }
    }
}

fn discard_frame(pool: &PoolCore, number: u32, page: PageId) -> Result<(), NoTake> {
    let _alone = pool.discarding.lock();
    let mut claims = VictimBatch::none(pool, Claimer::POOL, number as usize);
    claims.claim_from(number, page)?;
    let lost = claims.settle(Leaves::Discarded, false);
    match claims.frames() {
        // Without the barrier the page may be pinned, so it counts as such: that has a limit.
        [] if lost.pinned > 0 || lost.is_refused => Err(NoTake::Pinned),
        [] => Err(NoTake::Busy),
        _ => Ok(()),
    }
}

/// How many dirty pages are gathered before they are written: of more pages, more are neighbours.
const GATHER: usize = 256;

/// Brings a freelist to `target` frames, if possible. A call frees no more than were missing
/// when it began, even if others take some meanwhile.
pub(crate) fn refill(
    session: &SessionCore,
    list: usize,
    target: usize,
) -> Result<usize, BufferError> {
    let pool = &session.pool;
    let most = target.saturating_sub(pool.free.len_of(list, &pool.frames));
    let (mut freed, mut failure) = (0, None);
    let mut search = Search::new(pool.frames());
    let mut newcomers = pool.frames();
    while freed < most && search.goes_on() {
        let mut dirty = Vec::new();
        while freed + dirty.len() < most && dirty.len() < GATHER && search.goes_on() {
            let wanted = (most - freed - dirty.len()).min(MAX_CLAIMS);
            let (claims, met, swept) = sweep_clean(session, wanted, &mut newcomers);
            let clean = free_into(session, claims, list);
            // Gather also dirty pages that are not needed now. Those that left the newcomers'
            // queue are met again only when the hand comes round. Until then, dirty pages that
            // no session wants would push out others that are in use.
            let met = met.frames().iter().copied();
            let new: Vec<u32> = met.filter(|frame| !dirty.contains(frame)).collect();
            search.spend(&swept);
            found(session, &mut search, clean);
            dirty.extend(new);
            freed += clean;
        }
        let written =
            write_and_free(session, &dirty, list, most.saturating_sub(freed), &mut failure);
        found(session, &mut search, written);
        freed += written;
    }
    match failure {
        Some(error) if freed == 0 => Err(error),
        _ => Ok(freed),
    }
}

/// If a search found frames, counts how many it examined, as a foreground sweep does.
fn found(session: &SessionCore, search: &mut Search, frames: usize) {
    if frames > 0 && search.examined > 0 {
        session.count_log2(Histogram::ExaminedAhead, search.examined as u64);
        search.examined = 0;
    }
}

/// Writes pages in file order, neighbours joined, and then takes `most` of their unused frames.
fn write_and_free(
    session: &SessionCore,
    frames: &[u32],
    list: usize,
    most: usize,
    failure: &mut Option<BufferError>,
) -> usize {
    if let Err(error) = write_frames(session, frames) {
        *failure = Some(error);
    }
    let mut freed = 0;
    for batch in frames.chunks(MAX_CLAIMS) {
        let mut claims = no_claims(session);
        let unused = |number: &u32| policy::is_spent(session.pool.frames[*number as usize].usage());
        for number in batch.iter().copied().filter(unused).take(most.saturating_sub(freed)) {
            // In use again, or still dirty: it stays.
            let _ = claims.claim(number);
        }
        freed += free_into(session, claims, list);
    }
    freed
}

/// Writes the pages in some frames in file order, neighbours joined. Those that can't be
/// written stay.
pub(crate) fn write_frames(session: &SessionCore, frames: &[u32]) -> Result<(), BufferError> {
    let descriptor = |number: u32| &session.pool.frames[number as usize];
    let named = frames.iter().filter_map(|&number| Some((descriptor(number).page()?, number)));
    write_victims(session, named.collect())
}

/// How long to look for frames: while some are found, or each round of the pool brings one nearer.
struct Search {
    frames: usize,
    /// Frames examined since one was last found.
    examined: usize,
    hope: bool,
}

impl Search {
    fn new(frames: usize) -> Self {
        Self { frames, examined: 0, hope: true }
    }

    fn spend(&mut self, swept: &Swept) {
        self.hope |= swept.hope;
        self.examined += swept.examined;
    }

    /// Whether to go on. Called once per piece.
    fn goes_on(&mut self) -> bool {
        let rounds = self.examined / self.frames.max(1);
        rounds == 0 || (self.hope && rounds < MAX_ROUNDS)
    }
}
