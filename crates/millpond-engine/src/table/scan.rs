//! Scans: over an index in key order either way, over a table's pages, and over them in parallel.
//!
//! A scan holds no latch and no pin between calls: it keeps copies of a leaf's entries or of a page's
//! rows. It stays valid while its session goes on changing rows (it doesn't see changes of its own
//! statement), and ends with the statement's snapshot.

use std::ops::Range;
use std::sync::Arc;

use crate::access::Tid;
use crate::catalog::TableDef;
use crate::error::{EngineError, EngineResult};
use crate::session::Session;

use super::RowBuf;

/// Which end of an index a scan begins at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest key up.
    #[default]
    Forward,
    /// From the highest key down.
    Backward,
}

/// A half-open range of encoded keys, `lower <= key < upper`: see
/// [`KeyLayout::range`](crate::types::key::KeyLayout::range). Keep one and use it again.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// The lowest key, inclusive.
    pub lower: Vec<u8>,
    /// The highest key, exclusive.
    pub upper: Vec<u8>,
}

/// A scan of an index. Reusable: [`Session::start_index_scan`] begins anew in the same memory.
#[derive(Debug, Default)]
pub struct IndexScan {}

impl IndexScan {
    /// A scan that has not begun: yields nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next visible row in key order, copied into `row`; false at the end.
    pub fn next(&mut self, session: &Session, row: &mut RowBuf) -> EngineResult<bool> {
        let _ = (session, row);
        Err(EngineError::Internal { what: "scans are not connected yet" })
    }
}

/// A scan of a table's pages.
#[derive(Debug)]
pub struct HeapScan {}

impl HeapScan {
    /// The visible rows of the next page that has any; false at the end. Under [`Wait::Never`]
    /// it can stop with WouldBlock before a page, and be called again.
    ///
    /// [`Wait::Never`]: millpond_buffer::Wait::Never
    pub fn next_page(
        &mut self,
        session: &Session,
        each: &mut dyn FnMut(Tid, &[u8]) -> EngineResult<()>,
    ) -> EngineResult<bool> {
        let _ = (session, each);
        Err(EngineError::Internal { what: "scans are not connected yet" })
    }
}

/// A table under one statement's snapshot, for several threads: see [`Session::parallel_scan`]. Cheap to
/// clone. Usable until the session ends the statement; workers that go on after that get an error.
#[derive(Clone, Debug)]
pub struct ParallelScan {
    pub(crate) table: Arc<TableDef>,
    pub(crate) blocks: u32,
}

impl ParallelScan {
    /// The table.
    pub fn table(&self) -> &Arc<TableDef> {
        &self.table
    }

    /// Blocks of the table when the scan was made: split these among the workers.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// A worker over some of the blocks, for one thread.
    pub fn worker(&self, blocks: Range<u32>) -> EngineResult<ScanWorker> {
        let _ = blocks;
        Err(EngineError::Internal { what: "scans are not connected yet" })
    }
}

/// One thread's share of a [`ParallelScan`].
#[derive(Debug)]
pub struct ScanWorker {}

impl ScanWorker {
    /// The visible rows of the next page that has any; false at the end. Stops with `Cancelled` when the
    /// session that made the scan is cancelled.
    pub fn next_page(
        &mut self,
        each: &mut dyn FnMut(Tid, &[u8]) -> EngineResult<()>,
    ) -> EngineResult<bool> {
        let _ = each;
        Err(EngineError::Internal { what: "scans are not connected yet" })
    }
}
