//! Inserting index entries for rows, and checking unique keys.

use millpond_buffer::Wait;
use smallvec::SmallVec;

use super::Session;
use crate::access::Tid;
use crate::access::btree::{self, InsertOutcome, PreparedInsert, UniqueVerdict};
use crate::access::heap::{self, HeapRelation, Liveness};
use crate::catalog::{IndexDef, TableDef};
use crate::error::{EngineError, EngineResult};
use crate::lmgr::LockWait;
use crate::table::index_key::{duplicate, encode_key, must_be_unique};
use crate::transam::Xid;
use crate::types::Datum;

/// The result of inserting an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Done,
    /// The running transaction of another session has the key, and this session may not wait.
    Blocked(Xid),
}

impl Session {
    /// Under `Wait::Never`, finds out as far as possible whether the index insertions of a row
    /// would wait or fail. The caller does this before it stores the row. The result keeps the leaf
    /// pages in memory. Where waiting is allowed, does nothing.
    pub(super) fn prepare_entries(
        &self,
        table: &TableDef,
        heap: &HeapRelation,
        row: &[Datum<'_>],
    ) -> EngineResult<SmallVec<[PreparedInsert<'_>; 4]>> {
        let mut prepared = SmallVec::new();
        if self.ctx.wait() == Wait::Allowed {
            return Ok(prepared);
        }
        let mut scratch = self.scratch.borrow_mut();
        let scratch = &mut *scratch;
        for index in &table.indexes {
            encode_key(index, row, &mut scratch.key)?;
            let tree = self.engine.open_tree(index)?;
            if must_be_unique(index, row) {
                scratch.tids.clear();
                btree::lookup(&self.ctx, tree, &scratch.key, &mut scratch.tids)?;
                for &root in &scratch.tids {
                    match heap::liveness(&self.ctx, heap, root, self.ctx.proc().xid())? {
                        Liveness::Dead => {}
                        Liveness::Live(_) => {
                            // Vacuum may have removed the entry since the lookup and reused its
                            // slot for another row, which is then the live one. Vacuum removes
                            // entries before it frees slots: an entry that is still there named
                            // this row.
                            let mut still = btree::Tids::new();
                            btree::lookup(&self.ctx, tree, &scratch.key, &mut still)?;
                            if still.contains(&root) {
                                return Err(duplicate(table, index, row));
                            }
                            return Err(EngineError::WouldBlock);
                        }
                        Liveness::InProgress(_) => return Err(EngineError::WouldBlock),
                    }
                }
            }
            prepared.push(btree::prepare_insert(&self.ctx, tree, &scratch.key, Tid::MIN)?);
        }
        Ok(prepared)
    }

    /// Inserts the index entry of a stored row. Waits for a transaction that is inserting or
    /// deleting the same key, unless `may_wait` is false.
    pub(super) fn enter(
        &self,
        table: &TableDef,
        heap: &HeapRelation,
        index: &IndexDef,
        row: &[Datum<'_>],
        tid: Tid,
        may_wait: bool,
    ) -> EngineResult<Entered> {
        let tree = self.engine.open_tree(index)?;
        let own = self.ctx.proc().xid();
        let check = |other: Tid| {
            Ok(match heap::liveness(&self.ctx, heap, other, own)? {
                Liveness::Dead => UniqueVerdict::Free,
                Liveness::Live(_) => UniqueVerdict::Duplicate,
                Liveness::InProgress(xid) => UniqueVerdict::Wait(xid),
            })
        };
        let mut key = std::mem::take(&mut self.scratch.borrow_mut().key);
        let result = encode_key(index, row, &mut key).and_then(|()| {
            let unique: Option<btree::UniqueCheck<'_>> =
                if must_be_unique(index, row) { Some(&check) } else { None };
            loop {
                match btree::insert(&self.ctx, tree, &key, tid, unique)? {
                    InsertOutcome::Done => return Ok(Entered::Done),
                    InsertOutcome::Duplicate(_) => return Err(duplicate(table, index, row)),
                    InsertOutcome::Wait(xid) if may_wait => {
                        self.ctx.txns().wait_for(&self.ctx, xid, self.patience())?;
                    }
                    InsertOutcome::Wait(xid) => return Ok(Entered::Blocked(xid)),
                }
            }
        });
        self.scratch.borrow_mut().key = key;
        result
    }

    /// How long to wait for others once a change has begun. `LockWait::Never` no longer applies
    /// then.
    fn patience(&self) -> LockWait {
        match self.ctx.lock_wait() {
            LockWait::Never => LockWait::Forever,
            limit => limit,
        }
    }

    /// Runs the rest of a change that has begun. It may wait for pages in spite of `Wait::Never`;
    /// all of them were in memory a moment ago.
    pub(super) fn committed_to<R>(&self, rest: impl FnOnce() -> R) -> R {
        let wait = self.ctx.wait();
        self.ctx.set_wait(Wait::Allowed);
        let result = rest();
        self.ctx.set_wait(wait);
        result
    }
}
