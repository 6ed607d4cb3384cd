//! Scans: a page at a time, copied into the session's memory.
//!
//! One optimistic read makes the copy. The visible versions are then found on the copy, without
//! latch or pin, and their bytes are returned as slices of it. On an all-visible page no header is
//! read. Elsewhere the scan remembers the last fate, because rows loaded together have one xmin. A
//! scan that only counts rows does not copy an all-visible page: its line pointers are enough.
//!
//! Blocks come from [`ScanBlocks`]: a range of the scan's own, or one that several workers share.
//! The range is fixed when the scan starts, because rows on pages added later were inserted later.
//! A scan of a large table uses a ring of the pool's frames, and can begin where another scan of
//! the table is (`sync_scan.rs`).

use std::ops::Range;

use millpond_buffer::{
    AccessStrategy, BlockNumber, BufferError, PAGE_SIZE, ReadStream, Ring, StreamOptions,
};
use millpond_sync::mutant;

use super::access_prune::prune_in_passing;
use super::header::{TUPLE_HEADER_LEN, TupleHeader};
use super::last_fate::LastFate;
use super::page::{self, is_all_visible};
use super::relation::HeapRelation;
use super::scan_blocks::{ScanBlocks, Source};
use super::sync_scan::REPORT_EVERY;
use crate::access::Tid;
use crate::access::heap::visibility::{Fates, visible};
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::page::item;
use crate::transam::Snapshot;

/// A visible version on the copied page: its line pointer and where its columns are.
#[derive(Clone, Copy, Debug)]
struct Row {
    offset: u16,
    start: u16,
    end: u16,
}

/// A sequential scan.
pub struct HeapScan {
    heap: HeapRelation,
    source: Source,
    /// Blocks from the source that are being read ahead, or come next.
    stream: ReadStream,
    /// The lane in which it reports its position, if it does.
    lane: Option<usize>,
    ring: Option<Ring>,
    copy: Box<[u8; PAGE_SIZE]>,
    rows: Vec<Row>,
    /// The page of the rows.
    block: BlockNumber,
}

/// The visible rows of one page, in the order of line pointers.
#[derive(Clone, Copy)]
pub struct PageRows<'a> {
    block: BlockNumber,
    copy: &'a [u8; PAGE_SIZE],
    rows: &'a [Row],
}

impl<'a> PageRows<'a> {
    /// The page.
    pub fn block(&self) -> BlockNumber {
        self.block
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Row `index`: its tid and its columns.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(Tid, &'a [u8])> {
        let row = self.rows.get(index)?;
        let payload = self.copy.get(row.start as usize..row.end as usize).unwrap_or_default();
        Some((Tid::new(self.block, row.offset), payload))
    }

    /// All rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Tid, &'a [u8])> + use<'a> {
        let (block, copy) = (self.block, self.copy);
        self.rows.iter().map(move |row| {
            let payload = copy.get(row.start as usize..row.end as usize).unwrap_or_default();
            (Tid::new(block, row.offset), payload)
        })
    }
}

impl HeapScan {
    /// Gives the scan of a table, or of a part of it, read-ahead by the session's settings. If the
    /// table is large, also a ring and synchronization. `lane` distinguishes the parts.
    pub(crate) fn for_bulk(self, ctx: &Ctx, lane: usize) -> Self {
        let is_large = ctx.pool().is_large(self.heap().block_count());
        let scan = self.for_bulk_pieces(ctx);
        let synchronizes = is_large && ctx.bulk_access().synchronize_scans;
        if synchronizes { scan.synchronized(lane) } else { scan }
    }

    /// The same without synchronization, for a scan that gets its blocks piece by piece.
    pub(crate) fn for_bulk_pieces(self, ctx: &Ctx) -> Self {
        let scan = self.reading_ahead(ctx.bulk_access().streams);
        if !ctx.pool().is_large(scan.heap().block_count()) {
            return scan;
        }
        scan.in_ring(ctx.ring(AccessStrategy::BulkRead))
    }

    /// Goes on with other blocks, once those before have been read.
    pub(crate) fn go_on_with(&mut self, blocks: Range<u32>) {
        self.source = Source::new(ScanBlocks::Range(blocks));
        self.stream.ask_again();
    }

    /// A scan of the blocks that the heap has now.
    pub fn new(heap: HeapRelation) -> Self {
        let blocks = ScanBlocks::Range(0..heap.block_count());
        Self::over(heap, blocks)
    }

    /// A scan of these blocks.
    pub fn over(heap: HeapRelation, blocks: ScanBlocks) -> Self {
        Self {
            heap,
            source: Source::new(blocks),
            stream: ReadStream::default(),
            lane: None,
            ring: None,
            copy: Box::new([0; PAGE_SIZE]),
            rows: Vec::new(),
            block: BlockNumber(0),
        }
    }

    /// The heap.
    pub fn heap(&self) -> &HeapRelation {
        &self.heap
    }

    /// The same scan, in a ring of the pool.
    #[must_use]
    pub fn in_ring(mut self, ring: Option<Ring>) -> Self {
        self.ring = ring;
        self
    }

    /// The same scan, not yet begun, reading ahead with these options.
    #[must_use]
    pub fn reading_ahead(mut self, options: StreamOptions) -> Self {
        self.stream = ReadStream::new(options);
        self
    }

    /// The same scan, not yet begun, starting where the last scan in this lane was. (Blocks that
    /// workers share are handed out in order.)
    #[must_use]
    pub fn synchronized(mut self, lane: usize) -> Self {
        if let ScanBlocks::Range(range) = &self.source.blocks {
            let start = self.heap.counters().scans().start(lane, range);
            self.source.chunk = start..range.end;
            let is_whole = !mutant!("heap-scan-without-wrap");
            self.source.wrapped = range.start..if is_whole { start } else { range.start };
            self.lane = Some(lane);
        }
        self
    }

    /// Goes on to the block after `done`. Now and then it reports the position to other scans.
    fn advance(&mut self, done: BlockNumber) {
        self.stream.advance();
        let (Some(lane), ScanBlocks::Range(range)) = (self.lane, &self.source.blocks) else {
            return;
        };
        let next = done.0 + 1;
        if next.is_multiple_of(REPORT_EVERY) || next == range.end {
            // After the end of the range it wraps to the beginning; so may a scan that starts now.
            let next = if next == range.end { range.start } else { next };
            self.heap.counters().scans().report(lane, next);
        }
    }

    /// The rows that the snapshot sees on the next page; `None` after the last page. A page can
    /// have none.
    pub fn next_page(
        &mut self,
        ctx: &Ctx,
        snapshot: &Snapshot,
    ) -> EngineResult<Option<PageRows<'_>>> {
        let Some(block) = self.peek(ctx) else { return Ok(None) };
        let (copy, ring) = (&mut *self.copy, self.ring.as_ref());
        let read = ctx
            .buffers()
            .read_with(&self.heap.main, block, ctx.wait(), ring, |view| view.copy_page(copy));
        self.rows.clear();
        self.block = block;
        match read {
            Ok(()) => self.judge_copy(ctx, snapshot, block)?,
            // Vacuum has truncated the block since the scan began, so it held no rows.
            Err(BufferError::BeyondEnd { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.advance(block);
        Ok(Some(self.page_rows()))
    }

    /// The rows of the page that was read last.
    #[inline]
    pub fn page_rows(&self) -> PageRows<'_> {
        PageRows { block: self.block, copy: &self.copy, rows: &self.rows }
    }

    /// How many rows the snapshot sees on the next page; `None` after the last page.
    pub fn count_page(&mut self, ctx: &Ctx, snapshot: &Snapshot) -> EngineResult<Option<usize>> {
        let Some(block) = self.peek(ctx) else { return Ok(None) };
        let (copy, ring) = (&mut *self.copy, self.ring.as_ref());
        let read = ctx.buffers().read_with(&self.heap.main, block, ctx.wait(), ring, |view| {
            // An all-visible page has nothing to prune.
            if page::is_heap(view) && is_all_visible(view) {
                return Some(usize::from(page::count_tuples(view)));
            }
            view.copy_page(copy);
            None
        });
        self.rows.clear();
        self.block = block;
        let count = match read {
            Ok(Some(count)) => count,
            Ok(None) => {
                self.judge_copy(ctx, snapshot, block)?;
                self.rows.len()
            }
            Err(BufferError::BeyondEnd { .. }) => 0,
            Err(error) => return Err(error.into()),
        };
        self.advance(block);
        Ok(Some(count))
    }

    /// The next block. It stays the next one until it has been read, so a failed call can be
    /// repeated.
    fn peek(&mut self, ctx: &Ctx) -> Option<BlockNumber> {
        let (source, ring) = (&mut self.source, self.ring.as_ref());
        let mut next = || source.next();
        self.stream.peek(ctx.buffers(), &self.heap.main, ctx.wait(), ring, &mut next)
    }

    /// Finds the visible rows of the page that has been copied.
    fn judge_copy(
        &mut self,
        ctx: &Ctx,
        snapshot: &Snapshot,
        block: BlockNumber,
    ) -> EngineResult<()> {
        visible_rows(&self.copy, snapshot, ctx, &mut self.rows)?;
        self.prune_if_worth_it(ctx, block);
        Ok(())
    }

    /// Prunes a page that is nearly full and whose hint says that something on it may go.
    fn prune_if_worth_it(&self, ctx: &Ctx, block: BlockNumber) {
        let hint = page::prune_hint(&*self.copy);
        let free = item::hole(&*self.copy);
        if !page::is_heap(&*self.copy) || !hint.is_valid() || free > PAGE_SIZE / 10 {
            return;
        }
        prune_in_passing(ctx, &self.heap, block, hint, self.ring.as_ref());
    }
}

/// The block with which a scan of blocks `0..blocks` begins, to go on together with another one.
pub(crate) fn first_block(heap: &HeapRelation, blocks: u32) -> u32 {
    heap.counters().scans().start(0, &(0..blocks))
}

/// Tells other scans that a scan in pieces goes on with `block`.
pub(crate) fn report_block(heap: &HeapRelation, block: u32) {
    heap.counters().scans().report(0, block);
}

/// Finds the versions on `page` that the snapshot sees.
fn visible_rows(
    page: &[u8; PAGE_SIZE],
    snapshot: &Snapshot,
    fates: &impl Fates,
    rows: &mut Vec<Row>,
) -> EngineResult<()> {
    if !page::is_heap(page) {
        return Ok(());
    }
    let fates = LastFate::new(fates);
    let all_visible = is_all_visible(page);
    for offset in 1..=item::line_count(page) {
        let Some(range) = page::tuple(page, offset) else { continue };
        if !all_visible && !visible(&TupleHeader::read(page, range.start), snapshot, &fates)? {
            continue;
        }
        let start = (range.start + TUPLE_HEADER_LEN) as u16;
        rows.push(Row { offset, start, end: range.end as u16 });
    }
    Ok(())
}

/// Counts the rows that the snapshot sees in blocks `range`, without copying pages, in a ring of
/// the pool if there is one.
pub fn count_rows(
    ctx: &Ctx,
    heap: &HeapRelation,
    range: Range<u32>,
    snapshot: &Snapshot,
    ring: Option<&Ring>,
) -> EngineResult<u64> {
    let fates = LastFate::new(ctx);
    let mut total = 0;
    let (mut stream, mut range) = (ctx.maintenance_stream(), range);
    let mut blocks = || range.next().map(BlockNumber);
    let (session, main, wait) = (ctx.buffers(), &heap.main, ctx.wait());
    while let Some(block) = stream.peek(session, main, wait, ring, &mut blocks) {
        let read = ctx.buffers().read_with(&heap.main, block, ctx.wait(), ring, |view| {
            if !page::is_heap(view) {
                return EngineResult::Ok(0);
            }
            if is_all_visible(view) {
                return Ok(u64::from(page::count_tuples(view)));
            }
            let mut rows = 0u64;
            for offset in 1..=item::line_count(view) {
                let Some(range) = page::tuple(view, offset) else { continue };
                if visible(&TupleHeader::read(view, range.start), snapshot, &fates)? {
                    rows += 1;
                }
            }
            Ok(rows)
        });
        match read {
            Ok(rows) => total += rows?,
            Err(BufferError::BeyondEnd { .. }) => break,
            Err(error) => return Err(error.into()),
        }
        stream.advance();
    }
    Ok(total)
}
