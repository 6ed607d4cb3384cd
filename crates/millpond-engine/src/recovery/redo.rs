//! Applying records.
//!
//! A block with an image is restored from it and then redone; one that redo builds from nothing is
//! redone; any other is redone if its LSN is below the record's end. So it does not matter which of the changes
//! had reached the disk before, and a page that was torn is whole again before it is changed.
//!
//! A record may speak of a page that is not there, or is all zeros: if its relation was dropped or truncated
//! later. Such pages are noted, and forgotten when the drop or truncation comes along. If one
//! is left at the end of the log, pages are missing, which is an error.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use millpond_buffer::{
    BackendKind, BufferPool, BufferSession, Lsn, PAGE_SIZE, PageId, RelFork, RelHandle, RelationId,
    is_new,
};

use crate::error::{EngineError, EngineResult};
use crate::wal::reader::{LogReader, Step};
use crate::wal::record::DecodedBlock;
use crate::wal::rmgr::redo_of;
use crate::wal::storage::StorageRecord;
use crate::wal::{Decoded, LogStore, PageEdit, RmgrId, RmgrRedo};

/// What recovery asks of the parts whose state is not in pages.
pub trait RedoParts {
    /// Takes back what [`CheckpointParts::state`](crate::maintenance::checkpointer::CheckpointParts::state)
    /// gave to the last checkpoint; empty for a new database.
    fn restore(&mut self, state: &[u8]) -> EngineResult<()>;

    /// Learns of every record, in order, after its blocks were redone. It must not log anything.
    fn redo(&mut self, record: &Decoded<'_>, files: &mut RedoFiles) -> EngineResult<()>;
}

/// What redo has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redone {
    /// Records read.
    pub records: u64,
    /// Blocks that were changed.
    pub blocks: u64,
    /// Blocks that had the change already.
    pub skipped: u64,
}

/// The relations' files while records are applied.
pub struct RedoFiles {
    pool: Arc<BufferPool>,
    session: BufferSession,
    handles: HashMap<RelFork, RelHandle>,
    missing: BTreeSet<PageId>,
}

impl RedoFiles {
    fn new(pool: &Arc<BufferPool>) -> EngineResult<Self> {
        let session = pool.session()?;
        session.set_backend_kind(BackendKind::Other);
        let handles = HashMap::new();
        Ok(Self { pool: Arc::clone(pool), session, handles, missing: BTreeSet::new() })
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
        Ok(self.pool.drop_relation(relation)?)
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

    /// Applies a record to one of its blocks. `false` if the page had the change already.
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
        let mut page = self.session.pin_or_zero(&handle, block.page.block())?.into_exclusive()?;
        if !rebuilds && is_new(page.bytes()) {
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
    pool: &Arc<BufferPool>,
    parts: &mut dyn RedoParts,
) -> EngineResult<Redone> {
    let mut reader = LogReader::new(Arc::clone(store), from)?;
    let mut files = RedoFiles::new(pool)?;
    let mut redone = Redone::default();
    while reader.position() < end {
        let record = match reader.next()? {
            Step::Record(record) => record,
            Step::End { at, why } => {
                let place = format!("the log at {at}");
                return Err(EngineError::Corruption { place, what: format!("it changed: {why}") });
            }
        };
        redone.records += 1;
        if record.rmgr == RmgrId::Storage {
            files.storage(record.payload)?;
        }
        if !record.blocks.is_empty() {
            let redo = redo_of(record.rmgr)?;
            for (index, block) in record.blocks.iter().enumerate() {
                let changed = files.redo_block(redo, &record, index, block)?;
                *if changed { &mut redone.blocks } else { &mut redone.skipped } += 1;
            }
        }
        parts.redo(&record, &mut files)?;
    }
    match files.missing.first() {
        None => Ok(redone),
        Some(page) => Err(EngineError::Corruption {
            place: page.to_string(),
            what: format!(
                "the log changes this page, but it is missing from the file ({} such pages)",
                files.missing.len()
            ),
        }),
    }
}
