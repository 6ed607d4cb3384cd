//! Entering rows into indexes, and the check that keys are unique.

use millpond_buffer::Wait;
use smallvec::SmallVec;

use super::Session;
use crate::access::Tid;
use crate::access::btree::{self, InsertOutcome, PreparedInsert, UniqueVerdict};
use crate::access::heap::{self, HeapRelation, Liveness};
use crate::catalog::{IndexDef, TableDef};
use crate::error::{EngineError, EngineResult};
use crate::lmgr::LockWait;
use crate::table::TableError;
use crate::transam::Xid;
use crate::types::{Datum, Value};

/// What an index entry came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Done,
    /// Somebody else is about to have the key, and the session may not wait.
    Blocked(Xid),
}

/// Values of the index's columns, in its order.
pub(super) fn key_values<'d>(index: &IndexDef, row: &[Datum<'d>]) -> SmallVec<[Datum<'d>; 4]> {
    index.columns.iter().map(|column| row.get(column.column).copied().unwrap_or_default()).collect()
}

/// Appends the row's key in the index.
pub(crate) fn encode_key(
    index: &IndexDef,
    row: &[Datum<'_>],
    key: &mut Vec<u8>,
) -> EngineResult<()> {
    key.clear();
    for (position, column) in index.columns.iter().enumerate() {
        let datum = row.get(column.column).copied().unwrap_or_default();
        index.keys.encode_column(position, &datum, key).map_err(TableError::from)?;
    }
    btree::check_key(key)
}

/// Whether the key must be the only one of its kind: NULLs are never the same.
pub(super) fn must_be_unique(index: &IndexDef, row: &[Datum<'_>]) -> bool {
    let is_null = |column: usize| row.get(column).is_none_or(Datum::is_null);
    index.unique && !index.columns.iter().any(|column| is_null(column.column))
}

/// The error for a key that is there already.
#[cold]
pub(super) fn duplicate(table: &TableDef, index: &IndexDef, row: &[Datum<'_>]) -> EngineError {
    TableError::DuplicateKey {
        table: table.name.clone(),
        index: index.name.clone(),
        columns: key_columns(table, index),
        values: key_values(index, row).iter().map(Datum::to_value).collect::<Vec<Value>>(),
    }
    .into()
}

pub(super) fn key_columns(table: &TableDef, index: &IndexDef) -> Vec<String> {
    let name = |column: usize| table.columns.get(column).map(|column| column.name.clone());
    index.columns.iter().filter_map(|column| name(column.column)).collect()
}

impl Session {
    /// Finds out before a row is stored whether entering it into the indexes would wait or fail, as far as one
    /// can know: what it returns keeps the leaves in memory. Where waiting is allowed there is nothing to
    /// find out.
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
            let tree = self.tree(index)?;
            if must_be_unique(index, row) {
                scratch.tids.clear();
                btree::lookup(&self.ctx, tree, &scratch.key, &mut scratch.tids)?;
                for &root in &scratch.tids {
                    match heap::liveness(&self.ctx, heap, root, self.ctx.proc().xid())? {
                        Liveness::Dead => {}
                        Liveness::Live(_) => {
                            // Nothing kept vacuum from removing the entry and giving its place to another row, which is
                            // then the live one. Entries go first: one that is still there named this row.
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

    /// Enters a stored row into an index. Waits for whoever is about to insert or delete the same key,
    /// unless `may_wait` is false.
    pub(super) fn enter(
        &self,
        table: &TableDef,
        heap: &HeapRelation,
        index: &IndexDef,
        row: &[Datum<'_>],
        tid: Tid,
        may_wait: bool,
    ) -> EngineResult<Entered> {
        let tree = self.tree(index)?;
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

    /// How long to wait for others once a change has begun: as if waiting were allowed.
    fn patience(&self) -> LockWait {
        match self.ctx.lock_wait() {
            LockWait::Never => LockWait::Forever,
            limit => limit,
        }
    }

    /// Does what may wait for a page in spite of `Wait::Never`: the rest of a change that has begun, whose pages
    /// were all in memory a moment ago.
    pub(super) fn committed_to<R>(&self, rest: impl FnOnce() -> R) -> R {
        let wait = self.ctx.wait();
        self.ctx.set_wait(Wait::Allowed);
        let result = rest();
        self.ctx.set_wait(wait);
        result
    }
}
