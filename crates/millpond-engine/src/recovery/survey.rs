//! The survey: what recovery learns from the log before it writes anything. It collects the forks
//! that the last checkpoint knew, and checks that the system files are whole (wal rules 17 and 20).

use std::collections::{HashMap, HashSet};

use millpond_buffer::{
    BlockNumber, BufferError, Fork, Lsn, PageBuffer, PageId, PageStore, RelFork, StoreError,
    is_new, page_lsn, verify_checksum,
};

use crate::control::Control;
use crate::error::{EngineError, EngineResult, relation_file};
use crate::wal::forks::{CheckpointEnd, ForkList, KnownFork, decode_list, is_system};
use crate::wal::storage_record::StorageRecord;
use crate::wal::{Decoded, RmgrId, WalError, info};

/// What the records since the redo point say.
pub(crate) struct Survey {
    control: Control,
    known: ForkList,
    entries: u64,
    end: Option<CheckpointEnd>,
    /// How far the log was synced, by the records and the control file.
    durable: Lsn,
    /// Pages of system forks that redo restores, whatever the files hold.
    restored: HashSet<PageId>,
    /// System forks that redo creates.
    made: HashSet<RelFork>,
    /// System forks that redo cuts, with the fewest blocks that it leaves.
    cut: HashMap<RelFork, u32>,
}

impl Survey {
    pub(super) fn new(control: &Control) -> Self {
        Self {
            control: control.clone(),
            known: ForkList::new(),
            entries: 0,
            end: None,
            durable: control.checkpoint_end,
            restored: HashSet::new(),
            made: HashSet::new(),
            cut: HashMap::new(),
        }
    }

    /// Notes a record.
    pub(super) fn see(&mut self, record: &Decoded<'_>) -> EngineResult<()> {
        self.durable = self.durable.max(record.flushed);
        let malformed = |what: &str| WalError::Corrupt { at: record.start, what: what.to_owned() };
        match (record.rmgr, record.info) {
            (RmgrId::Log, info::FORKS) => {
                let added = decode_list(record.payload, self.control.redo, &mut self.known);
                self.entries += added.ok_or_else(|| malformed("malformed list of forks"))?;
            }
            (RmgrId::Log, info::CHECKPOINT_END) => {
                let end = CheckpointEnd::decode(record.payload)
                    .ok_or_else(|| malformed("malformed end of a checkpoint"))?;
                if end.redo == self.control.redo {
                    self.end = Some(end);
                }
            }
            (RmgrId::Storage, _) => match StorageRecord::decode(record.payload)? {
                StorageRecord::Create(rel) if is_system(rel) => {
                    self.made.insert(rel);
                }
                StorageRecord::Truncate(rel, blocks) if is_system(rel) => {
                    let least = self.cut.entry(rel).or_insert(blocks);
                    *least = blocks.min(*least);
                }
                _ => {}
            },
            _ => {}
        }
        for block in record.blocks.iter().filter(|block| is_system(block.page.rel_fork())) {
            if block.image.is_some() || block.will_init {
                self.restored.insert(block.page);
            }
        }
        Ok(())
    }

    /// Ends the walk. Fails unless it has met all of the checkpoint's list.
    pub(super) fn finish(&self) -> EngineResult<()> {
        let control = &self.control;
        // A new database has no checkpoint until its first start is complete.
        let is_whole = match self.end {
            Some(end) => end.forks == self.entries,
            None => control.checkpoint_end == control.redo,
        };
        if is_whole {
            return Ok(());
        }
        let what = "the list of forks of the last checkpoint is not complete".to_owned();
        Err(WalError::Corrupt { at: control.checkpoint_end, what }.into())
    }

    /// How far the log was synced for certain.
    pub(super) fn durable(&self) -> Lsn {
        self.durable
    }

    /// The forks that the checkpoint knew.
    pub(super) fn into_known(self) -> ForkList {
        self.known
    }

    /// Reads every system page that redo does not restore. Fails if one is missing or damaged.
    pub(super) fn check_system_forks(&self, store: &dyn PageStore) -> EngineResult<()> {
        for (rel, fork) in &self.known {
            if is_system(*rel) && rel.fork == Fork::Main && !self.made.contains(rel) {
                self.check_fork(store, *rel, fork).map_err(|error| damaged_system(*rel, error))?;
            }
        }
        Ok(())
    }

    fn check_fork(
        &self,
        store: &dyn PageStore,
        rel: RelFork,
        fork: &KnownFork,
    ) -> Result<(), BufferError> {
        if !store.exists(rel)? {
            return Err(StoreError::Missing { rel }.into());
        }
        let blocks = store.block_count(rel)?;
        let cut = self.cut.get(&rel).copied().unwrap_or(u32::MAX);
        let mut buffer = PageBuffer::new(1);
        for block in (0..fork.blocks.min(cut)).filter(|&block| fork.is_written(block)) {
            let page = rel.page(BlockNumber(block));
            if self.restored.contains(&page) {
                continue;
            }
            if block >= blocks {
                return Err(BufferError::CutShort { rel, blocks, least: fork.blocks });
            }
            store.read(rel, BlockNumber(block), &mut buffer.pages_mut())?;
            for bytes in buffer.pages() {
                verify_checksum(page, bytes)?;
                if is_new(bytes) {
                    return Err(BufferError::Zeroed { page });
                }
                // No redo changes this page, so it is as the checkpoint has left it (wal rule 20).
                let (lsn, known) = (page_lsn(bytes), fork.lsn(block));
                if known.is_some_and(|known| known != lsn) {
                    let known = known.unwrap_or(Lsn::ZERO);
                    return Err(BufferError::OtherVersion { page, lsn, known });
                }
            }
        }
        Ok(())
    }
}

/// The error for a damaged system fork. Nothing works without such a fork.
pub(super) fn damaged_system(rel: RelFork, source: BufferError) -> EngineError {
    if !source.is_damage() {
        return source.into();
    }
    let what = match rel.relation {
        crate::ids::CATALOG_RELATION => "the catalog".to_owned(),
        crate::ids::CLOG_RELATION => "the transaction statuses".to_owned(),
        other => format!("relation {other}"),
    };
    EngineError::DamagedFile { what, file: relation_file(rel), source }
}
