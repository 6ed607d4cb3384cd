//! Redo: applying log records to pages.
//!
//! A block with an image is restored from it and then redone. A block that redo builds from nothing
//! is redone. Any other block is redone if its LSN is below the record's end. So it does not matter
//! which changes had reached the disk. A torn page is whole again before it is changed.
//!
//! A record may refer to a page that is missing, is all zeros or fails its checksum, because its
//! relation was dropped or truncated later. Redo notes such pages, and forgets them when it meets
//! the drop or truncation. Pages that are left at the end of the log are damaged. For a system
//! relation that is an error. For a user's relation it is reported, and later reads of the page
//! fail: it is never taken for an empty page (wal rule 18).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use millpond_buffer::{
    BackendKind, BufferPool, BufferSession, Lsn, PAGE_SIZE, PageId, RelFork, RelHandle, RelationId,
    Wait, is_new,
};
use millpond_sync::mutant;

use crate::error::{EngineError, EngineResult, relation_file};
use crate::wal::forks::is_system;
use crate::wal::reader::{LogReader, Step};
use crate::wal::record::DecodedBlock;
use crate::wal::storage_record::StorageRecord;
use crate::wal::{Decoded, Log, LogStore, PageEdit, RmgrId, RmgrRedo};

/// What recovery asks of the parts whose state is not in pages.
pub trait RedoParts {
    /// Restores the state that
    /// [`CheckpointParts::state`](crate::maintenance::checkpointer::CheckpointParts::state) gave to
    /// the last checkpoint. Empty for a new database.
    fn restore(&mut self, state: &[u8]) -> EngineResult<()>;

    /// Called with every record, in order, after its blocks were redone. It must not log anything.
    fn redo(&mut self, record: &Decoded<'_>, files: &mut RedoFiles) -> EngineResult<()>;
}

/// The results of redo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redone {
    /// Records read.
    pub records: u64,
    /// Blocks that were changed.
    pub blocks: u64,
    /// Blocks that had the change already, or that are missing or damaged.
    pub skipped: u64,
}

/// The relations' files while records are applied.
pub struct RedoFiles {
    log: Arc<Log>,
    pool: Arc<BufferPool>,
    session: BufferSession,
    handles: HashMap<RelFork, RelHandle>,
    missing: BTreeSet<PageId>,
}

impl RedoFiles {
    fn new(log: &Arc<Log>, pool: &Arc<BufferPool>) -> EngineResult<Self> {
        let session = pool.session()?;
        session.set_backend_kind(BackendKind::Other);
        let (log, pool) = (Arc::clone(log), Arc::clone(pool));
        Ok(Self { log, pool, session, handles: HashMap::new(), missing: BTreeSet::new() })
    }

    /// The buffer session that redo uses.
    pub fn session(&self) -> &BufferSession {
        &self.session
    }

    /// The pool.
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// A handle on a fork.
    pub fn handle(&mut self, rel: RelFork) -> EngineResult<RelHandle> {
        if let Some(handle) = self.handles.get(&rel) {
            return Ok(handle.clone());
        }
        let handle = self.pool.relation(rel)?;
        self.handles.insert(rel, handle.clone());
        Ok(handle)
    }

    /// Removes a relation's files; does nothing if there are none.
    pub fn drop_relation(&mut self, relation: RelationId) -> EngineResult<()> {
        self.handles.retain(|rel, _| rel.relation != relation);
        self.missing.retain(|page| page.relation() != relation);
        self.pool.drop_relation(relation)?;
        self.log.forks().remove(relation);
        Ok(())
    }

    fn storage(&mut self, payload: &[u8]) -> EngineResult<()> {
        match StorageRecord::decode(payload)? {
            StorageRecord::Create(rel) => self.pool.create(rel)?,
            StorageRecord::Truncate(rel, blocks) => {
                self.missing.retain(|page| page.rel_fork() != rel || page.block().0 < blocks);
                if self.handle(rel)?.block_count() > blocks {
                    self.pool.truncate(rel, blocks)?;
                }
            }
        }
        Ok(())
    }

    /// Applies a record to a block. `false` if it had the change, or is missing or damaged.
    fn redo_block(
        &mut self,
        redo: &dyn RmgrRedo,
        record: &Decoded<'_>,
        index: usize,
        block: &DecodedBlock<'_>,
    ) -> EngineResult<bool> {
        let handle = self.handle(block.page.rel_fork())?;
        let rebuilds = block.image.is_some() || block.will_init;
        if !rebuilds && block.page.block().0 >= handle.block_count() {
            self.missing.insert(block.page);
            return Ok(false);
        }
        let pinned = match rebuilds {
            true => self.session.pin_or_zero(&handle, block.page.block())?,
            // Not `pin_or_zero`, which would leave a page of zeros in memory.
            false => match self.session.pin(&handle, block.page.block(), Wait::Allowed) {
                Err(error) if error.is_damage() => {
                    tracing::debug!(%error, "found by redo");
                    self.missing.insert(block.page);
                    return Ok(false);
                }
                pinned => pinned?,
            },
        };
        let mut page = pinned.into_exclusive()?;
        if !rebuilds && is_new(page.bytes()) && !mutant!("wal-redo-on-zeros") {
            self.missing.insert(block.page);
            return Ok(false);
        }
        if !rebuilds && page.lsn() >= record.end {
            return Ok(false);
        }
        self.missing.remove(&block.page);
        let mut change = page.change();
        if let Some(image) = block.image {
            let mut bytes = [0; PAGE_SIZE];
            image.restore(&mut bytes);
            change.write_page(&bytes);
        }
        let mut edit = PageEdit::new(block.page, &mut change);
        redo.redo(record.info, index, block.data, record.payload, &mut edit).map_err(|error| {
            EngineError::Corruption {
                place: format!("log record at {}, {}", record.start, block.page),
                what: error.what,
            }
        })?;
        change.publish(record.end);
        Ok(true)
    }
}

/// Applies all records from `from` to `end`.
pub(super) fn redo(
    store: &Arc<dyn LogStore>,
    from: Lsn,
    end: Lsn,
    log: &Arc<Log>,
    pool: &Arc<BufferPool>,
    parts: &mut dyn RedoParts,
) -> EngineResult<Redone> {
    let mut reader = LogReader::new(Arc::clone(store), from)?;
    let mut files = RedoFiles::new(log, pool)?;
    let mut redone = Redone::default();
    while reader.position() < end {
        let record = match reader.next()? {
            Step::Record(record) => record,
            Step::End { at, why, .. } => {
                let place = format!("the log at {at}");
                return Err(EngineError::Corruption { place, what: format!("it changed: {why}") });
            }
        };
        redone.records += 1;
        log.forks().follow(&record)?;
        if record.rmgr == RmgrId::Storage {
            files.storage(record.payload)?;
        }
        if !record.blocks.is_empty() {
            let redo = log.redo_of(record.rmgr)?;
            for (index, block) in record.blocks.iter().enumerate() {
                let changed = files.redo_block(redo, &record, index, block)?;
                *if changed { &mut redone.blocks } else { &mut redone.skipped } += 1;
            }
        }
        parts.redo(&record, &mut files)?;
    }
    report_missing(&files)?;
    Ok(redone)
}

/// Reports the pages that records change and that are missing or damaged.
fn report_missing(files: &RedoFiles) -> EngineResult<()> {
    const WHAT: &str = "the log changes this page, but it is missing from the file";
    for page in &files.missing {
        if is_system(page.rel_fork()) {
            let what = format!("{WHAT} ({} such pages)", files.missing.len());
            return Err(EngineError::Corruption { place: page.to_string(), what });
        }
        tracing::error!(%page, file = %relation_file(page.rel_fork()), "{WHAT}, or damaged there");
        // Not a system page, so no LSN is kept.
        files.log.forks().write(*page, Lsn::ZERO);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
