//! Discarding pages: those of a fork that is dropped or truncated leave memory unwritten (rule 9).

use super::victim_batch::VictimBatch;
use crate::core::frame::{Claimer, Leaves, NoTake};
use crate::core::loading::wait_for_load;
use crate::core::page_table::{frame_of, is_absent};
use crate::core::pool::PoolCore;
use crate::core::relation::Relation;
use crate::error::BufferError;
use crate::ids::{BlockNumber, PageId};
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::hint::Backoff;

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
