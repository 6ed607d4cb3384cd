//! Forks that are dropped or cut: their pages leave memory unwritten, then the store has them no more (rule 9).
//!
//! **Failure.** A fork that is cut has its new size at once, whatever comes of the rest. What could not be made to leave memory, or the
//! store, is owed: the next cut, or who needs the blocks again, begins with it; and it is never written.

use super::BufferPool;
use crate::claims::Claims;
use crate::error::BufferError;
use crate::frame::{Claimer, Leaves, NoTake};
use crate::ids::{BlockNumber, PageId, RelFork, RelationId};
use crate::load::wait_for_load;
use crate::relation::{Growth, Relation};
use crate::translation::{frame_of, is_absent};
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::hint::Backoff;

/// How often dropping a fork looks again at a page that is pinned before it gives up. Only background
/// writers pin a page that is about to go, and not for long.
const DROP_PATIENCE: usize = if cfg!(any(miri, shuttle)) { 100 } else { 1_000_000 };
/// How much of that patience it takes to look for sessions' pins, which costs a barrier.
const LOOK_PATIENCE: usize = if cfg!(any(miri, shuttle)) { 1 } else { 1_000 };

impl BufferPool {
    /// Drops all forks of a relation: their pages leave memory unwritten and their files go. The caller
    /// sees to it that nobody uses the relation: if a page is pinned, that is [`BufferError::InUse`], and no other page can be had any more;
    /// the call is to be repeated. Costs what the relation holds in memory, not a walk of
    /// the pool (rule 9).
    pub fn drop_relation(&self, relation: RelationId) -> Result<(), BufferError> {
        let forks: Vec<_> = {
            let relations = self.relations.lock();
            relations.values().filter(|known| known.rel.relation == relation).cloned().collect()
        };
        for fork in &forks {
            let _growth = fork.growth();
            fork.mark_dropped();
            self.discard(fork, BlockNumber(0))?;
        }
        self.store.remove(relation)?;
        // Forgotten only now that no frame refers to their entries (rule 4). A fork that was first
        // used meanwhile is a misuse, and stays.
        let mut relations = self.relations.lock();
        relations.retain(|_, known| known.rel.relation != relation || !known.is_dropped());
        Ok(())
    }

    /// Cuts a fork down to `blocks` blocks; the others leave memory unwritten. The caller sees to it that
    /// nobody uses them: if one is pinned, that is [`BufferError::InUse`], the fork has its new size all the same, and the call is to
    /// be repeated.
    pub fn truncate(&self, rel: RelFork, blocks: u32) -> Result<(), BufferError> {
        let handle = self.relation(rel)?;
        let relation = &*handle.0;
        let mut growth = relation.growth();
        if relation.is_dropped() {
            return Err(BufferError::Dropped { rel });
        }
        if blocks < relation.blocks() {
            // Until the store has been cut, too.
            growth.stale = growth.stale.max(growth.allocated);
            relation.set_blocks(blocks);
        }
        // Also when the count was right already: an earlier attempt may have stopped half-way.
        self.cut(relation, &mut growth)
    }

    /// Cuts the store down to a fork's size, after what is in memory of the rest, which nobody may write any more.
    fn cut(&self, relation: &Relation, growth: &mut Growth) -> Result<(), BufferError> {
        let blocks = relation.blocks();
        let held = growth.allocated.max(growth.stale);
        if blocks < held {
            self.discard(relation, BlockNumber(blocks))?;
            // Should it fail, nobody knows how many are left. None counts as had, so that the next to need one asks the
            // store for it; and each may be an old one.
            (growth.allocated, growth.stale) = (blocks, held);
            self.store.truncate(relation.rel, blocks)?;
            growth.stale = 0;
        }
        Ok(())
    }

    /// Gives back the room that the store holds beyond the ends of the forks. For a clean shutdown. One that can't be cut does not keep the
    /// others from it; the first error is told, one of the store's rather than [`BufferError::InUse`].
    pub fn trim(&self) -> Result<(), BufferError> {
        let all: Vec<_> = self.relations.lock().values().cloned().collect();
        let mut trimmed = Ok(());
        for relation in all {
            let mut growth = relation.growth();
            if !relation.is_dropped() {
                let cut = self.cut(&relation, &mut growth);
                if cut.is_err() && matches!(trimmed, Ok(()) | Err(BufferError::InUse { .. })) {
                    trimmed = cut;
                }
            }
        }
        trimmed
    }

    /// Calls `owes` with each fork of which the store may have more than its blocks, since a truncation has failed, and with how many
    /// it has: the fork does not grow meanwhile. For a log that must not forget a truncation before the store has been cut.
    pub fn for_each_owed_cut<E>(
        &self,
        mut owes: impl FnMut(RelFork, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let all: Vec<_> = self.relations.lock().values().cloned().collect();
        for relation in all {
            let growth = relation.growth();
            if growth.stale > relation.blocks() && !relation.is_dropped() {
                owes(relation.rel, relation.blocks())?;
            }
        }
        Ok(())
    }

    /// Makes every page from `first` on leave memory, written or not. Loads can't begin any more.
    fn discard(&self, relation: &Relation, first: BlockNumber) -> Result<(), BufferError> {
        // Most go in batches. What is being loaded, written or taken just now is left to the second walk.
        let Some(entries) = relation.entries_cut_off(first, &self.pins) else {
            // Nobody knows whether it is, or will be.
            return Err(BufferError::InUse { page: relation.page(first) });
        };
        let mut entries = entries.peekable();
        while entries.peek().is_some() {
            let _alone = self.discarding.lock();
            let mut claims = Claims::none(self, Claimer::POOL, 0);
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
            self.discard_one(relation, block, entry)?;
        }
        Ok(())
    }

    /// Makes one page leave memory, written or not. The caller holds the fork's growth lock.
    pub(crate) fn discard_one(
        &self,
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
                // A load that began before and will step back, or finish.
                wait_for_load(&*self.store, entry, relation.page(block));
                continue;
            };
            let page = relation.page(block);
            match self.discard_frame(number, page) {
                Ok(()) => return Ok(()),
                Err(NoTake::Pinned) if patience == 0 => return Err(BufferError::InUse { page }),
                Err(NoTake::Pinned) => {
                    // A pin that shows in the frame is somebody's who writes or has just read it: cheap to see.
                    let is_shown = self.frames[number as usize].is_pinned();
                    patience = patience.saturating_sub(if is_shown { 1 } else { LOOK_PATIENCE });
                    backoff.snooze();
                }
                Err(_) => {
                    self.frames[number as usize].wait_for_write();
                    backoff.snooze();
                }
            }
        }
    }

    fn discard_frame(&self, number: u32, page: PageId) -> Result<(), NoTake> {
        let _alone = self.discarding.lock();
        let mut claims = Claims::none(self, Claimer::POOL, number as usize);
        claims.claim_from(number, page)?;
        let lost = claims.settle(Leaves::Discarded, false);
        match claims.frames() {
            // Without the barrier the page may be pinned. That counts as pinned, for which there is
            // a limit.
            [] if lost.pinned > 0 || lost.is_refused => Err(NoTake::Pinned),
            [] => Err(NoTake::Busy),
            _ => Ok(()),
        }
    }
}
