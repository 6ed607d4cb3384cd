//! Scans: over an index in either direction, and over a table's pages.
//!
//! A scan holds no latch and no pin between calls: it keeps copies of a leaf's entries or of a
//! page's rows. It stays valid while its session changes rows, and does not see changes of its own
//! statement. It ends with the statement's snapshot.

use std::mem;
use std::sync::Arc;

use crate::access::{Tid, btree, heap};
use crate::catalog::{IndexDef, TableDef};
use crate::ctx::Ctx;
use crate::engine::Engine;
use crate::error::EngineResult;
use crate::table::{KeyRange, RowBuf};
use crate::transam::Snapshot;

use super::Session;
use super::index_run::{LongScan, Source};

/// An index scan is long once it has read more leaves than this (256 kB). It is also long once it
/// has looked up more rows than an eighth (`LONG_SCAN_PART`) of the pool has pages. From then on it
/// reads ahead, and reads a large table or index through a ring.
const LONG_SCAN_LEAVES: u32 = 32;
const LONG_SCAN_PART: usize = 8;

/// A scan of an index. [`Session::start_index_scan`] starts a new scan in the same memory. A caller
/// that keeps a scan but stops before its end calls [`IndexScan::end`].
#[derive(Default)]
pub struct IndexScan {
    cursor: Option<btree::Cursor>,
    target: Option<Target>,
    /// Entries on one page whose rows are still to be read: an earlier try would have had to wait.
    again: Vec<Tid>,
    /// The rows of several entries on one page.
    run: Option<Box<heap::FetchedRun>>,
    prefetch: heap::RowPrefetch,
    /// The look-ahead, once the scan is long.
    long: Option<Box<LongScan>>,
    /// The number of rows looked up before that.
    looked_up: u32,
    /// How many rows are looked up together at least: see [`IndexScan::expect`].
    least_together: usize,
}

/// What reads: the context of a session or of a worker, and the engine.
pub(super) type Reader<'r> = (&'r Ctx, &'r Engine);

struct Target {
    table: Arc<TableDef>,
    index: Arc<IndexDef>,
    snapshot: Snapshot,
}

impl IndexScan {
    /// A scan that has not begun: it returns no rows.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn start(
        &mut self,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        range: &KeyRange,
        direction: btree::Direction,
        snapshot: Snapshot,
    ) {
        match &mut self.cursor {
            Some(cursor) => cursor.restart(&range.lower, Some(&range.upper), direction),
            None => {
                self.cursor = Some(btree::Cursor::new(&range.lower, Some(&range.upper), direction));
            }
        }
        self.forget_rows();
        (self.long, self.looked_up, self.least_together) = (None, 0, 1);
        match &mut self.target {
            // All users of a definition share its reference count. Repeating the same scan does not
            // touch it.
            Some(known) if Arc::ptr_eq(&known.table, table) && Arc::ptr_eq(&known.index, index) => {
                known.snapshot = snapshot;
            }
            other => {
                let (table, index) = (Arc::clone(table), Arc::clone(index));
                *other = Some(Target { table, index, snapshot });
            }
        }
    }

    /// Says how many rows will probably be read; `usize::MAX`: all. So many are looked up together
    /// from the start, as far as they are neighbours. To be called when the scan was started.
    pub fn expect(&mut self, rows: usize) {
        self.least_together = rows;
    }

    /// Ends the scan at any position. Releases what a long scan holds: its rings for index and
    /// table, pages still to be read ahead, and copies of entries and rows.
    pub fn end(&mut self) {
        if let Some(cursor) = &mut self.cursor {
            cursor.end();
        }
        self.forget_rows();
        self.long = None;
    }

    fn forget_rows(&mut self) {
        self.again.clear();
        self.prefetch = heap::RowPrefetch::default();
        if let Some(run) = &mut self.run {
            run.clear();
        }
    }

    /// Copies the next visible row in key order into `row`. Returns false at the end. It can be
    /// called again after an error.
    #[inline]
    pub fn next(&mut self, session: &Session, row: &mut RowBuf) -> EngineResult<bool> {
        self.next_for((session.ctx(), session.engine()), row)
    }

    /// The same for a session or the worker of a scan.
    #[inline]
    pub(super) fn next_for(&mut self, reader: Reader<'_>, row: &mut RowBuf) -> EngineResult<bool> {
        if let Some(run) = &mut self.run
            && row.set_next_of(run)
        {
            return Ok(true);
        }
        match &mut self.long {
            None => self.next_of_page(reader, row),
            Some(long) => {
                if long.next_row(row) {
                    Ok(true)
                } else {
                    self.next_of_run(reader, row)
                }
            }
        }
    }

    /// Looks up the rows of the next entries until one is visible. Neighbouring entries on one page
    /// are looked up together. They are at most three times as many as those before and one more,
    /// unless [`Self::expect`] was told more. So a scan that was told nothing and stops early has
    /// not read much more than it returned.
    fn next_of_page(&mut self, reader: Reader<'_>, row: &mut RowBuf) -> EngineResult<bool> {
        let (Some(cursor), Some(target)) = (&mut self.cursor, &self.target) else {
            return Ok(false);
        };
        let (ctx, engine) = reader;
        let (heap, tree) = (engine.open_heap(&target.table)?, engine.open_tree(&target.index)?);
        loop {
            if self.again.is_empty() {
                let Some(root) = cursor.next(ctx, tree)? else { return Ok(false) };
                self.again.push(root);
                let most = (self.looked_up as usize * 3).max(self.least_together.saturating_sub(1));
                cursor.next_of_block(root.block, most, &mut self.again);
                self.looked_up += self.again.len() as u32;
            }
            if cursor.leaves() > LONG_SCAN_LEAVES
                || self.looked_up as usize > ctx.pool().frames() / LONG_SCAN_PART
            {
                cursor.set_ring(ctx.read_ring(tree.block_count()));
                let ring = ctx.wide_read_ring(heap.block_count());
                self.long = Some(Box::new(LongScan::new(ctx, ring, mem::take(&mut self.again))));
                return self.next_of_run(reader, row);
            }
            let read = self.again.len();
            let most = (self.looked_up as usize).saturating_sub(read).max(self.least_together);
            self.prefetch
                .prefetch(ctx, heap, (read, most.saturating_sub(1)), |place| cursor.peek(place));
            let found = match self.again.as_slice() {
                [root] => heap::fetch(ctx, heap, *root, &target.snapshot, row.bytes_mut())?
                    .map(|tid| (row.tid, row.root) = (Some(tid), Some(*root)))
                    .is_some(),
                roots => {
                    let run = self.run.get_or_insert_default();
                    run.fetch(ctx, heap, roots, &target.snapshot, None)?;
                    row.set_next_of(run)
                }
            };
            self.again.clear();
            if found {
                return Ok(true);
            }
            ctx.check_interrupts()?;
        }
    }

    /// Reads more rows of a long scan, and returns the first of them.
    fn next_of_run(&mut self, reader: Reader<'_>, row: &mut RowBuf) -> EngineResult<bool> {
        let (Some(cursor), Some(target), Some(long)) =
            (&mut self.cursor, &self.target, &mut self.long)
        else {
            return Ok(false);
        };
        let (ctx, engine) = reader;
        let (heap, tree) = (engine.open_heap(&target.table)?, engine.open_tree(&target.index)?);
        let source = Source { ctx, heap, tree, snapshot: &target.snapshot };
        while long.next_run(source, cursor)? {
            if long.next_row(row) {
                return Ok(true);
            }
        }
        self.end();
        Ok(false)
    }
}

impl std::fmt::Debug for IndexScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexScan")
            .field("index", &self.target.as_ref().map(|target| &target.index.name))
            .field("is_long", &self.long.is_some())
            .finish_non_exhaustive()
    }
}

/// A scan of a table's pages.
pub struct HeapScan {
    scan: heap::HeapScan,
    snapshot: Snapshot,
}

impl HeapScan {
    pub(crate) fn new(scan: heap::HeapScan, snapshot: Snapshot) -> Self {
        Self { scan, snapshot }
    }

    /// Passes the visible rows of the next page that has any to `each`. Returns false at the end.
    /// Under `Wait::Never` it can fail with `WouldBlock` before a page, and be called again.
    pub fn next_page(
        &mut self,
        session: &Session,
        each: &mut dyn FnMut(Tid, &[u8]) -> EngineResult<()>,
    ) -> EngineResult<bool> {
        next_page(&mut self.scan, session.ctx(), &self.snapshot, each)
    }

    /// Goes to the next page that has visible rows, for [`HeapScan::row`]. Otherwise like
    /// [`HeapScan::next_page`].
    pub fn advance_page(&mut self, session: &Session) -> EngineResult<bool> {
        advance_page(&mut self.scan, session.ctx(), &self.snapshot)
    }

    /// A visible row of the page that was read last, by its number from 0: its place and its bytes.
    #[inline]
    pub fn row(&self, number: usize) -> Option<(Tid, &[u8])> {
        self.scan.page_rows().get(number)
    }

    /// The number of visible rows on the next page; `None` at the end. Otherwise like
    /// [`HeapScan::next_page`].
    pub fn count_page(&mut self, session: &Session) -> EngineResult<Option<usize>> {
        count_page(&mut self.scan, session.ctx(), &self.snapshot)
    }
}

impl std::fmt::Debug for HeapScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapScan").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

pub(super) fn next_page(
    scan: &mut heap::HeapScan,
    ctx: &Ctx,
    snapshot: &Snapshot,
    each: &mut dyn FnMut(Tid, &[u8]) -> EngineResult<()>,
) -> EngineResult<bool> {
    loop {
        ctx.check_interrupts()?;
        let Some(rows) = scan.next_page(ctx, snapshot)? else { return Ok(false) };
        if rows.is_empty() {
            continue;
        }
        for (tid, bytes) in rows.iter() {
            each(tid, bytes)?;
        }
        return Ok(true);
    }
}

pub(super) fn advance_page(
    scan: &mut heap::HeapScan,
    ctx: &Ctx,
    snapshot: &Snapshot,
) -> EngineResult<bool> {
    loop {
        ctx.check_interrupts()?;
        match scan.next_page(ctx, snapshot)? {
            None => return Ok(false),
            Some(rows) if rows.is_empty() => {}
            Some(_) => return Ok(true),
        }
    }
}

pub(super) fn count_page(
    scan: &mut heap::HeapScan,
    ctx: &Ctx,
    snapshot: &Snapshot,
) -> EngineResult<Option<usize>> {
    ctx.check_interrupts()?;
    scan.count_page(ctx, snapshot)
}
