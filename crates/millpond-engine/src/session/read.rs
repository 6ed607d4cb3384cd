//! Reading rows: by key, by TID, by scans.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_buffer::RelHandle;

use super::scan::{HeapScan, IndexScan};
use super::{Scratch, Session};
use crate::access::heap::{self, HeapRelation, TupleHeader};
use crate::access::{Tid, btree};
use crate::catalog::{IndexDef, TableDef};
use crate::error::EngineResult;
use crate::table::{Direction, KeyRange, RowBuf, RowTransactions, TableError};
use crate::transam::{CommandId, Isolation, Snapshot, Xid, XidStatus};
use crate::types::Datum;

impl Session {
    #[inline]
    pub(crate) fn heap<'t>(&self, table: &'t TableDef) -> EngineResult<&'t HeapRelation> {
        self.engine.open_heap(table)
    }

    #[inline]
    pub(crate) fn tree<'t>(&self, index: &'t IndexDef) -> EngineResult<&'t RelHandle> {
        self.engine.open_tree(index)
    }

    /// The number of blocks of an index.
    pub fn index_blocks(&self, index: &IndexDef) -> EngineResult<u32> {
        Ok(self.tree(index)?.block_count())
    }

    /// Which part of an index's `entries` lie in a range of keys, from 0 to 1: an estimate, from
    /// the inner pages alone if the range is small. It needs no snapshot and no lock.
    pub fn index_share(
        &self,
        index: &IndexDef,
        range: &KeyRange,
        entries: f64,
    ) -> EngineResult<f64> {
        let KeyRange { lower, upper } = range;
        btree::share_between(&self.ctx, self.tree(index)?, lower, upper, entries)
    }

    /// How many of an index's `entries` lie in a range of keys: an estimate likewise, which looks
    /// at leaves if the range is within one or two.
    pub fn index_rows(
        &self,
        index: &IndexDef,
        range: &KeyRange,
        entries: f64,
    ) -> EngineResult<f64> {
        let KeyRange { lower, upper } = range;
        btree::rows_between(&self.ctx, self.tree(index)?, lower, upper, entries)
    }

    /// About how many of an index's `entries` the first `groups` groups have, read in a direction.
    /// A group is the entries that are equal in the first `columns`. It needs no snapshot and no
    /// lock. `None` if the index has no entry.
    pub fn index_group_rows(
        &self,
        index: &IndexDef,
        columns: usize,
        (groups, direction): (f64, Direction),
        entries: f64,
    ) -> EngineResult<Option<f64>> {
        let prefix = |key: &[u8]| index.keys.prefix_length(key, columns);
        let tree = self.tree(index)?;
        btree::rows_of_groups(&self.ctx, tree, (groups, direction), &prefix, entries)
    }

    /// Copies the visible row with this key into `row`. There is at most one, because the index is
    /// unique and the key is complete (but see [`Self::may_see_keys_twice`]). Allocates nothing
    /// once `row` is large enough. Writes no shared memory if all pages are in memory.
    pub fn lookup(
        &self,
        table: &TableDef,
        index: &IndexDef,
        key: &[Datum<'_>],
        row: &mut RowBuf,
    ) -> EngineResult<bool> {
        let mut scratch = self.scratch.borrow_mut();
        let Scratch { key: bytes, tids, .. } = &mut *scratch;
        bytes.clear();
        index.keys.encode(key, bytes).map_err(TableError::from)?;
        self.look_up(table, index, bytes, tids, row)
    }

    /// The same with a key as the index has it: [`KeyLayout::encode`] of all its columns.
    ///
    /// [`KeyLayout::encode`]: crate::types::key::KeyLayout::encode
    pub fn lookup_encoded(
        &self,
        table: &TableDef,
        index: &IndexDef,
        key: &[u8],
        row: &mut RowBuf,
    ) -> EngineResult<bool> {
        let mut scratch = self.scratch.borrow_mut();
        self.look_up(table, index, key, &mut scratch.tids, row)
    }

    #[inline]
    fn look_up(
        &self,
        table: &TableDef,
        index: &IndexDef,
        key: &[u8],
        tids: &mut btree::Tids,
        row: &mut RowBuf,
    ) -> EngineResult<bool> {
        let snapshot = self.snapshot()?;
        self.check_usable(index, &snapshot)?;
        let (heap, tree) = (self.heap(table)?, self.tree(index)?);
        tids.clear();
        btree::lookup(&self.ctx, tree, key, tids)?;
        for &root in tids.iter() {
            if let Some(tid) = heap::fetch(&self.ctx, heap, root, &snapshot, row.bytes_mut())? {
                (row.tid, row.root) = (Some(tid), Some(root));
                return Ok(true);
            }
        }
        (row.tid, row.root) = (None, None);
        Ok(false)
    }

    /// Reads the version at this TID, if the statement sees it.
    pub fn fetch(&self, table: &TableDef, tid: Tid, row: &mut RowBuf) -> EngineResult<bool> {
        let snapshot = self.snapshot()?;
        let found = heap::fetch_at(&self.ctx, self.heap(table)?, tid, &snapshot, row.bytes_mut())?;
        (row.tid, row.root) = (found.then_some(tid), None);
        Ok(found)
    }

    /// The transactions of the version at this TID, as they are now; `None` if there is no version.
    pub fn row_transactions(
        &self,
        table: &TableDef,
        tid: Tid,
    ) -> EngineResult<Option<RowTransactions>> {
        let header = heap::header_at(&self.ctx, self.heap(table)?, tid)?;
        Ok(header.map(|TupleHeader { xmin, xmax, cid, .. }| RowTransactions { xmin, xmax, cid }))
    }

    /// Begins a scan of an index, and reuses the memory of an earlier scan.
    pub fn start_index_scan(
        &self,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        range: &KeyRange,
        direction: Direction,
        scan: &mut IndexScan,
    ) -> EngineResult<()> {
        let snapshot = self.snapshot()?;
        self.check_usable(index, &snapshot)?;
        scan.start(table, index, range, direction, snapshot);
        Ok(())
    }

    /// Begins a scan of a table.
    pub fn heap_scan(&self, table: &Arc<TableDef>) -> EngineResult<HeapScan> {
        let scan = heap::HeapScan::new(self.heap(table)?.clone());
        Ok(HeapScan::new(scan.for_bulk(&self.ctx, 0), self.snapshot()?))
    }

    /// The number of blocks of a table.
    pub fn block_count(&self, table: &TableDef) -> EngineResult<u32> {
        self.engine.block_count(table)
    }

    /// Fails if the index is too new for the statement's snapshot. A statement asks before the
    /// workers of its scans read the index.
    pub fn check_index(&self, index: &IndexDef) -> EngineResult<()> {
        self.check_usable(index, &self.snapshot()?)
    }

    /// Fails if the index is too new for the snapshot. An index lacks old row versions that were
    /// still visible to some snapshots when it was built; those snapshots must not use it.
    #[inline]
    pub(super) fn check_usable(&self, index: &IndexDef, snapshot: &Snapshot) -> EngineResult<()> {
        let maker = index.valid_after.load(Ordering::Relaxed);
        if snapshot.csn.0 < index.valid_from.load(Ordering::Relaxed)
            || (maker != 0 && !self.is_seen(Xid(maker), snapshot)?)
        {
            return Err(TableError::IndexTooNew(index.name.clone()).into());
        }
        Ok(())
    }

    /// Whether a plan that is made now should use an index. It should not if the index is too new
    /// for the held snapshot, or for one taken now ([`TableError::IndexTooNew`]).
    pub fn is_usable(&self, index: &IndexDef) -> EngineResult<bool> {
        let maker = index.valid_after.load(Ordering::Relaxed);
        let from = index.valid_from.load(Ordering::Relaxed);
        if maker == 0 && from == 0 {
            return Ok(true);
        }
        let own = self.ctx.proc().xid();
        match self.transaction.snapshot_number() {
            Some(csn) if csn.0 < from => Ok(false),
            _ if maker == 0 => Ok(true),
            Some(csn) => {
                let command = CommandId::FIRST;
                self.is_seen(Xid(maker), &Snapshot { csn, own, command })
            }
            None => {
                let maker = Xid(maker);
                Ok(own == Some(maker) || self.ctx.txns().status(&self.ctx, maker)?.is_committed())
            }
        }
    }

    /// Whether the statement may see two rows with one key in a unique index. The transaction's
    /// snapshot still sees a row that others have deleted since, and the transaction has inserted
    /// another one. Then [`Self::lookup`], which finds one row, is not enough.
    #[inline]
    pub fn may_see_keys_twice(&self) -> bool {
        self.transaction.isolation() == Isolation::RepeatableRead && self.ctx.proc().xid().is_some()
    }

    /// Whether a snapshot sees the changes of a transaction.
    #[cold]
    fn is_seen(&self, xid: Xid, snapshot: &Snapshot) -> EngineResult<bool> {
        if snapshot.own == Some(xid) {
            return Ok(true);
        }
        let status = self.ctx.txns().status(&self.ctx, xid)?;
        Ok(matches!(status, XidStatus::Committed(csn) if csn <= snapshot.csn))
    }
}
