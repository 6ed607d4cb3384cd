//! Scans: a page at a time, copied into the session's memory.
//!
//! The copy is made by one optimistic read; then the visible versions are found on it, without latch
//! or pin, and their bytes are handed out as slices of the copy. On an all-visible page no header is
//! looked at; elsewhere the fate of the last transaction met is remembered, because rows loaded
//! together carry one xmin.
//!
//! Blocks come from [`ScanBlocks`]: a range of the scan's own, or one that several workers share. The range is
//! fixed when the scan starts: rows on pages added later were inserted later.

use std::ops::Range;

use millpond_buffer::{BlockNumber, BufferError, PAGE_SIZE};
use millpond_sync::atomic::{AtomicU32, Ordering};

use super::access_prune::prune_in_passing;
use super::header::{TUPLE_HEADER_LEN, TupleHeader};
use super::last_fate::LastFate;
use super::page::{self, is_all_visible};
use super::relation::HeapRelation;
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::page::item;
use crate::transam::Snapshot;
use crate::transam::visibility::{Fates, visible};

/// How a scan or a load uses the buffer pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AccessStrategy {
    /// Like everybody.
    #[default]
    Normal,
    /// A large scan: its pages should not push out those of others.
    BulkRead,
    /// A large load.
    BulkWrite,
    /// VACUUM.
    Vacuum,
}

/// Blocks that several workers of one scan share out among themselves.
#[derive(Debug)]
pub struct ParallelBlocks {
    next: AtomicU32,
    end: u32,
    chunk: u32,
}

impl ParallelBlocks {
    /// The blocks of `range`, to be handed out in pieces of `chunk`.
    pub fn new(range: Range<u32>, chunk: u32) -> Self {
        Self { next: AtomicU32::new(range.start), end: range.end, chunk: chunk.max(1) }
    }

    /// The next piece. Relaxed: the counter carries nothing but itself.
    pub fn claim(&self) -> Option<Range<u32>> {
        // No overrun: at the end the counter is not raised any more.
        let claimed = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            (next < self.end).then(|| next.saturating_add(self.chunk))
        });
        claimed.ok().map(|start| start..start.saturating_add(self.chunk).min(self.end))
    }
}

/// Where a scan's blocks come from.
#[derive(Clone, Debug)]
pub enum ScanBlocks {
    /// This scan's own.
    Range(Range<u32>),
    /// Shared with others.
    Parallel(std::sync::Arc<ParallelBlocks>),
}

/// A visible version on the copied page: its line pointer and where its columns are.
#[derive(Clone, Copy, Debug)]
struct Row {
    offset: u16,
    start: u16,
    end: u16,
}

/// A sequential scan. Keep it for the next scan: it keeps its memory.
pub struct HeapScan {
    heap: HeapRelation,
    blocks: ScanBlocks,
    chunk: Range<u32>,
    copy: Box<[u8; PAGE_SIZE]>,
    rows: Vec<Row>,
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

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Row `index`: where it is, and its columns.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(Tid, &'a [u8])> {
        let row = self.rows.get(index)?;
        let payload = self.copy.get(row.start as usize..row.end as usize).unwrap_or_default();
        Some((Tid::new(self.block, row.offset), payload))
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Tid, &'a [u8])> + use<'a> {
        let (block, copy) = (self.block, self.copy);
        self.rows.iter().map(move |row| {
            let payload = copy.get(row.start as usize..row.end as usize).unwrap_or_default();
            (Tid::new(block, row.offset), payload)
        })
    }
}

impl HeapScan {
    /// A scan of the blocks that the heap has now.
    pub fn new(heap: HeapRelation, strategy: AccessStrategy) -> Self {
        let blocks = ScanBlocks::Range(0..heap.block_count());
        Self::over(heap, blocks, strategy)
    }

    /// A scan of these blocks.
    pub fn over(heap: HeapRelation, blocks: ScanBlocks, _strategy: AccessStrategy) -> Self {
        let mut scan =
            Self { heap, blocks, chunk: 0..0, copy: Box::new([0; PAGE_SIZE]), rows: Vec::new() };
        if let ScanBlocks::Range(range) = &scan.blocks {
            scan.chunk = range.clone();
        }
        scan
    }

    /// Begins again, in the memory of this scan.
    pub fn restart(&mut self, heap: HeapRelation, blocks: ScanBlocks) {
        self.chunk = if let ScanBlocks::Range(range) = &blocks { range.clone() } else { 0..0 };
        (self.heap, self.blocks) = (heap, blocks);
    }

    /// The next block, which stays next until it has been read: a call that fails can be repeated.
    fn peek_block(&mut self) -> Option<BlockNumber> {
        if self.chunk.is_empty() {
            let ScanBlocks::Parallel(shared) = &self.blocks else { return None };
            self.chunk = shared.claim()?;
        }
        Some(BlockNumber(self.chunk.start))
    }

    /// The rows that the snapshot sees on the next page; `None` after the last page. A page can have none.
    pub fn next_page(
        &mut self,
        ctx: &Ctx,
        snapshot: &Snapshot,
    ) -> EngineResult<Option<PageRows<'_>>> {
        let Some(block) = self.peek_block() else { return Ok(None) };
        let copy = &mut *self.copy;
        let read =
            ctx.buffers().read(&self.heap.main, block, ctx.wait(), |view| view.copy_page(copy));
        self.rows.clear();
        match read {
            Ok(()) => {
                visible_rows(&self.copy, snapshot, ctx, &mut self.rows)?;
                self.prune_if_worth_it(ctx, block)?;
            }
            // Cut off by vacuum since the scan began: it held no rows.
            Err(BufferError::BeyondEnd { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.chunk.start += 1;
        Ok(Some(PageRows { block, copy: &self.copy, rows: &self.rows }))
    }

    /// Prunes a page that is nearly full and says that something on it may go.
    fn prune_if_worth_it(&self, ctx: &Ctx, block: BlockNumber) -> EngineResult<()> {
        let hint = page::prune_hint(&*self.copy);
        let free = item::hole(&*self.copy);
        if !page::is_heap(&*self.copy) || !hint.is_valid() || free > PAGE_SIZE / 10 {
            return Ok(());
        }
        prune_in_passing(ctx, &self.heap, block, hint)
    }
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

/// Counts the rows that the snapshot sees in blocks `range`, without copying pages.
pub fn count_rows(
    ctx: &Ctx,
    heap: &HeapRelation,
    range: Range<u32>,
    snapshot: &Snapshot,
) -> EngineResult<u64> {
    let fates = LastFate::new(ctx);
    let mut total = 0;
    for block in range {
        let read = ctx.buffers().read(&heap.main, BlockNumber(block), ctx.wait(), |view| {
            if !page::is_heap(view) {
                return EngineResult::Ok(0);
            }
            let all_visible = is_all_visible(view);
            let mut rows = 0u64;
            for offset in 1..=item::line_count(view) {
                let Some(range) = page::tuple(view, offset) else { continue };
                if all_visible || visible(&TupleHeader::read(view, range.start), snapshot, &fates)?
                {
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
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_every_block_once() {
        let blocks = ParallelBlocks::new(3..20, 4);
        let claimed: Vec<u32> = std::iter::from_fn(|| blocks.claim()).flatten().collect();
        assert_eq!(claimed, (3..20).collect::<Vec<_>>());
        assert_eq!(ParallelBlocks::new(0..0, 4).claim(), None);
        assert_eq!(
            ParallelBlocks::new(u32::MAX - 1..u32::MAX, 9).claim().map(|r| r.len()),
            Some(1)
        );
    }
}
