//! Rows in the session's memory, and what becomes of a request to change one.

use millpond_buffer::Ring;

use crate::access::Tid;
use crate::access::heap::Newest;
use crate::catalog::TableDef;
use crate::types::Datum;
use crate::types::tuple::DamagedTuple;

/// A copy of a stored row. Keep one and use it again: it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct RowBuf {
    pub(crate) tid: Option<Tid>,
    /// Where the index entry points that led here, which stays the same from version to version of a chain: who wants to
    /// change the row queues for that. Unknown if no index led here.
    pub(crate) root: Option<Tid>,
    pub(crate) bytes: Vec<u8>,
}

impl RowBuf {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the row version lies.
    pub fn tid(&self) -> Option<Tid> {
        self.tid
    }

    /// The row has a newer version, or none.
    pub(crate) fn moved(&mut self, to: Option<Newest>) {
        if let Some(root) = to.and_then(|newest| newest.root) {
            self.root = Some(root);
        }
        self.tid = to.map(|newest| newest.tid);
    }

    /// The row's bytes, to be read with [`TableDef::layout`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// One column.
    pub fn column(&self, table: &TableDef, column: usize) -> Result<Datum<'_>, DamagedTuple> {
        table.layout.column(&self.bytes, column)
    }

    /// Makes this a copy of a row that a scan has yielded.
    pub fn set(&mut self, tid: Tid, bytes: &[u8]) {
        self.tid = Some(tid);
        self.root = None;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }
}

/// What became of an update, a delete or a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// Done; the row is now at this place (of a deleted row: was).
    Done(Tid),
    /// The row is gone, or this statement has changed it already: leave it out.
    Gone,
    /// READ COMMITTED only: another transaction changed the row meanwhile and has committed. The
    /// [`RowBuf`] now holds the newest version: if the statement's condition still holds for it, compute the new
    /// values from it and try again; if not, leave it out.
    Changed,
}

/// Rows to be inserted together (COPY, multi-row INSERT): encoded, not yet stored.
#[derive(Debug, Default)]
pub struct RowBatch {
    pub(crate) bytes: Vec<u8>,
    /// Ends of the rows in `bytes`.
    pub(crate) ends: Vec<usize>,
    pub(crate) frozen: bool,
    /// Once the rows turn out to be many: the load's ring of pages.
    pub(crate) ring: Option<Ring>,
}

impl RowBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// The rows are to be visible to everybody at once (`COPY ... FREEZE`), which a table allows that was created or
    /// truncated by the same transaction: [`Session::is_new`](crate::Session::is_new). Elsewhere it is ignored.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Rows in the batch.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all rows: a good size to insert is some 64 kB.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the rows, keeps the memory.
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
