//! Rows in session memory, and the results of requests to change one.

use millpond_buffer::Ring;

use crate::access::Tid;
use crate::access::heap::{FetchedRun, Newest};
use crate::catalog::TableDef;
use crate::transam::{CommandId, Xid};
use crate::types::Datum;
use crate::types::tuple::{ColumnOffsets, DamagedTuple};

/// A copy of a stored row. Reuse it: it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct RowBuf {
    pub(crate) tid: Option<Tid>,
    /// The TID in the index entry that led to this row: the root of its version chain. It is the
    /// same for all versions of a chain, and sessions that want to change the row queue for it.
    /// Unknown if no index led here.
    pub(crate) root: Option<Tid>,
    bytes: Vec<u8>,
    offsets: ColumnOffsets,
}

impl RowBuf {
    /// An empty row.
    pub fn new() -> Self {
        Self::default()
    }

    /// The TID of the row version.
    pub fn tid(&self) -> Option<Tid> {
        self.tid
    }

    /// Notes that the row has a newer version, or none.
    pub(crate) fn moved(&mut self, to: Option<Newest>) {
        if let Some(root) = to.and_then(|newest| newest.root) {
            self.root = Some(root);
        }
        self.tid = to.map(|newest| newest.tid);
    }

    /// The row's bytes, in the format of [`TableDef::layout`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The row's bytes, for another row.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        self.offsets.clear();
        &mut self.bytes
    }

    /// Where its columns begin, as far as they have been looked for.
    #[inline]
    pub fn offsets(&self) -> &ColumnOffsets {
        &self.offsets
    }

    /// One column.
    #[inline]
    pub fn column(&self, table: &TableDef, column: usize) -> Result<Datum<'_>, DamagedTuple> {
        table.layout.column(&self.bytes, column)
    }

    /// Stores a copy of the next row of a run. Returns false at its end.
    #[inline]
    pub(crate) fn set_next_of(&mut self, run: &mut FetchedRun) -> bool {
        let Some((tid, root, columns)) = run.next_row() else { return false };
        self.set(tid, columns);
        self.root = Some(root);
        true
    }

    /// Stores a copy of a row that a scan has returned.
    pub fn set(&mut self, tid: Tid, bytes: &[u8]) {
        self.tid = Some(tid);
        self.root = None;
        let own = self.bytes_mut();
        own.clear();
        own.extend_from_slice(bytes);
    }
}

/// The result of an update, a delete or a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// Done. The row is now at this TID (a deleted row: was).
    Done(Tid),
    /// The row is gone, or this statement has already changed it: skip it.
    Gone,
    /// READ COMMITTED only: another transaction changed the row meanwhile and has committed. The
    /// [`RowBuf`] now holds the newest version. If it still satisfies the statement's condition,
    /// compute the new values from it and try again. Otherwise skip it.
    Changed,
}

/// The transactions that have made, changed or locked a row version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowTransactions {
    /// The transaction that made it.
    pub xmin: Xid,
    /// The last one that deleted, replaced or locked it, whatever became of that; 0: none.
    pub xmax: Xid,
    /// The command that made it or, once a transaction has deleted it, that one's. A number of its
    /// own stands for both if one transaction did both.
    pub cid: CommandId,
}

/// Rows to be inserted together (COPY, multi-row INSERT): encoded, not yet stored.
#[derive(Debug, Default)]
pub struct RowBatch {
    pub(crate) bytes: Vec<u8>,
    /// Ends of the rows in `bytes`.
    pub(crate) ends: Vec<usize>,
    /// Where the rows of the last insertion are.
    pub(crate) stored: Vec<Tid>,
    pub(crate) frozen: bool,
    /// The load's ring of pages, once there are many rows.
    pub(crate) ring: Option<Ring>,
}

impl RowBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the rows visible to all transactions at once (`COPY ... FREEZE`). This is allowed only
    /// if the same transaction has created or truncated the table:
    /// [`Session::is_new`](crate::Session::is_new). Otherwise it is ignored.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Where the rows are that the last [`Session::insert_batch`](crate::Session::insert_batch) has
    /// stored, in their order.
    pub fn stored(&self) -> &[Tid] {
        &self.stored
    }

    /// Rows in the batch.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The total size of the rows in bytes. About 64 kB is a good size for an insertion.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The rows' bytes.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}
