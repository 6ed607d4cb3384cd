//! The log's table of forks. It knows how many blocks of a fork have been written to, and which
//! below that number have not (wal rules 17 and 18).
//!
//! **State.** A table of [`KnownFork`]s. It changes with each record that creates, cuts or drops a
//! fork, and with the first record that changes a block. For the catalog and the transaction
//! statuses it changes with every record, because the table has the LSNs of their pages. Each
//! checkpoint logs the whole table before its last record (`storage::log_forks`). Recovery begins
//! with that table and follows the records from the redo point on.
//!
//! **Why the table and the log agree.** A session notes a block after it has inserted the block's
//! record, and before it releases the page's latch. A checkpoint copies the table after it has
//! written the pages that were dirty at its redo point. To write them, it needed their latches. So
//! the copy has every block whose first record comes before the redo point. The record of each
//! block in the copy is in the log before the copy.
//!
//! - Recovery follows the records behind the redo point again. Those in the copy change nothing.
//! - An LSN of the copy behind the redo point is not used. The page's first record behind that
//!   point has an image, so redo restores the page.
//! - An LSN before the redo point is that of the page on disk: the checkpoint has written the page.
//! - No fork is created or cut while the copy is made and logged
//!   ([`Log::file_changes`](super::Log)).
//! - If a fork is dropped meanwhile, the record of that is behind the redo point. Or the checkpoint
//!   has waited for that commit.
//!
//! **Concurrency.** The table is sharded by relation; each shard has a lock, held for a short
//! access. No other lock is taken while one is held.

mod encoding;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use millpond_buffer::{Fork, Lsn, PageId, RelFork, RelationId};
use millpond_sync::sync::Mutex;
use millpond_sync::{CachePadded, mutant};

use super::end_record::files_to_drop;
use super::record::{Decoded, RmgrId};
use super::storage_record::StorageRecord;
use crate::error::RedoError;
use crate::ids::FIRST_NORMAL_OID;
use crate::ids::Xid;

pub(crate) use encoding::decode as decode_list;
pub(super) use encoding::encode as encode_list;
pub use encoding::{CheckpointEnd, ForkList};

const SHARDS: usize = 16;

type Shard = Mutex<HashMap<RelFork, KnownFork>>;

/// A fork as the log knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownFork {
    /// One more than the last block that has been written to. Always 0 for free space maps (not
    /// logged).
    pub blocks: u32,
    /// Blocks below `blocks` that have not been written to: pages of zeros.
    pub unwritten: BTreeSet<u32>,
    /// The transaction that created it, until that is known to have committed.
    pub made_by: Xid,
    /// Its relation has been dropped, and some of its files may be left.
    pub dropped: bool,
    /// The end of the last record of each block, which is the LSN of its page. Kept for the main
    /// forks of the engine's own relations. Zero for blocks that have not been written to.
    pub lsns: Vec<Lsn>,
}

impl KnownFork {
    /// Whether a record has changed the block.
    pub fn is_written(&self, block: u32) -> bool {
        block < self.blocks && !self.unwritten.contains(&block)
    }

    /// The LSN that the page of a block must have, if the log keeps it.
    pub fn lsn(&self, block: u32) -> Option<Lsn> {
        self.lsns.get(block as usize).copied().filter(|lsn| *lsn != Lsn::ZERO)
    }

    fn set_lsn(&mut self, block: u32, end: Lsn) {
        let length = self.lsns.len().max(self.blocks as usize);
        self.lsns.resize(length, Lsn::ZERO);
        if let Some(lsn) = self.lsns.get_mut(block as usize) {
            *lsn = end;
        }
    }

    fn write(&mut self, block: u32) {
        if block >= self.blocks {
            self.unwritten.extend(self.blocks..block);
            self.blocks = block.saturating_add(1);
        } else {
            self.unwritten.remove(&block);
        }
    }

    fn cut(&mut self, blocks: u32) {
        if blocks < self.blocks {
            self.blocks = blocks;
            self.unwritten.split_off(&blocks);
            self.lsns.truncate(blocks as usize);
        }
    }
}

/// Whether a fork belongs to the engine itself. Nothing works without it. So a start looks for
/// damage to it before anything else, and the log keeps the LSNs of its pages (wal rule 20).
pub(crate) fn is_system(rel: RelFork) -> bool {
    rel.relation.get() < FIRST_NORMAL_OID
}

/// The table of forks.
#[derive(Debug)]
pub struct Forks {
    shards: Box<[CachePadded<Shard>]>,
}

impl Default for Forks {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| CachePadded::default()).collect() }
    }
}

impl Forks {
    fn shard(&self, relation: RelationId) -> &Shard {
        &self.shards[relation.get() as usize % SHARDS]
    }

    /// A fork, if the log knows it.
    pub fn get(&self, rel: RelFork) -> Option<KnownFork> {
        self.shard(rel.relation).lock().get(&rel).cloned()
    }

    /// All forks, in order.
    pub fn all(&self) -> BTreeMap<RelFork, KnownFork> {
        let copy = |(rel, fork): (&RelFork, &KnownFork)| (*rel, fork.clone());
        self.shards
            .iter()
            .flat_map(|shard| shard.lock().iter().map(copy).collect::<Vec<_>>())
            .collect()
    }

    /// Begins with the table that a checkpoint has logged.
    pub(crate) fn restore(&self, known: &ForkList) {
        for (rel, fork) in known {
            self.shard(rel.relation).lock().insert(*rel, fork.clone());
        }
    }

    /// A fork has been created, by a transaction or outside of one.
    pub(super) fn create(&self, rel: RelFork, made_by: Xid) {
        let mut shard = self.shard(rel.relation).lock();
        shard.entry(rel).or_insert_with(|| KnownFork { made_by, ..KnownFork::default() });
    }

    /// The first record about a block ends at `end`; for the engine's own relations, any record. A
    /// fork that no record has created is ignored.
    pub(crate) fn write(&self, page: PageId, end: Lsn) {
        if let Some(fork) = self.shard(page.relation()).lock().get_mut(&page.rel_fork()) {
            fork.write(page.block().0);
            if is_system(page.rel_fork()) {
                fork.set_lsn(page.block().0, end);
            }
        }
    }

    /// A record that was read from the log changes a block that has been written to already.
    fn change(&self, page: PageId, end: Lsn) {
        if is_system(page.rel_fork())
            && let Some(fork) = self.shard(page.relation()).lock().get_mut(&page.rel_fork())
        {
            fork.set_lsn(page.block().0, end);
        }
    }

    /// A fork has been cut to `blocks` blocks.
    pub(super) fn cut(&self, rel: RelFork, blocks: u32) {
        if let Some(fork) = self.shard(rel.relation).lock().get_mut(&rel) {
            fork.cut(blocks);
        }
    }

    /// A relation has been dropped. Its files are still to be removed.
    pub(crate) fn set_dropped(&self, relation: RelationId) {
        let mut shard = self.shard(relation).lock();
        for fork in Fork::ALL.map(|fork| relation.fork(fork)) {
            if let Some(fork) = shard.get_mut(&fork) {
                fork.dropped = true;
            }
        }
    }

    /// A relation's files have been removed.
    pub(crate) fn remove(&self, relation: RelationId) {
        let mut shard = self.shard(relation).lock();
        for fork in Fork::ALL {
            shard.remove(&relation.fork(fork));
        }
    }

    /// Asks whether each fork's creating transaction has committed, and remembers the answer.
    pub(crate) fn settle_makers<E>(
        &self,
        mut has_committed: impl FnMut(Xid) -> Result<bool, E>,
    ) -> Result<(), E> {
        let makers: BTreeSet<Xid> = self.all().values().map(|fork| fork.made_by).collect();
        for maker in makers.into_iter().filter(|maker| maker.is_valid()) {
            if !has_committed(maker)? {
                continue;
            }
            for shard in &self.shards {
                for fork in shard.lock().values_mut().filter(|fork| fork.made_by == maker) {
                    fork.made_by = Xid::INVALID;
                }
            }
        }
        Ok(())
    }

    /// The least number of blocks that a fork has. `None` if it is not known, or dropped.
    pub(super) fn least_blocks(&self, rel: RelFork) -> Option<u32> {
        let shard = self.shard(rel.relation).lock();
        let known = shard.get(&rel).filter(|fork| !fork.dropped).map(|fork| fork.blocks);
        known.filter(|_| !mutant!("wal-any-length"))
    }

    /// Whether a page may be all zeros.
    pub(super) fn may_be_zero(&self, page: PageId) -> bool {
        let shard = self.shard(page.relation()).lock();
        let is_free = |fork: &KnownFork| !fork.is_written(page.block().0);
        shard.get(&page.rel_fork()).is_none_or(is_free) || mutant!("wal-zeros-are-a-page")
    }

    /// Applies a record that was read from the log to the table.
    pub(crate) fn follow(&self, record: &Decoded<'_>) -> Result<(), RedoError> {
        match record.rmgr {
            RmgrId::Storage => match StorageRecord::decode(record.payload)? {
                StorageRecord::Create(rel) => self.create(rel, record.xid),
                StorageRecord::Truncate(rel, blocks) => self.cut(rel, blocks),
            },
            RmgrId::Transaction => {
                for file in files_to_drop(record.info, record.payload)? {
                    self.set_dropped(file);
                }
            }
            _ => {}
        }
        for block in &record.blocks {
            if block.image.is_some() || block.will_init {
                self.write(block.page, record.end);
            } else {
                self.change(block.page, record.end);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
