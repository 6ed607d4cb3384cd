//! Prefetches the memory of rows that a scan of an index, or a batch of lookups, will read soon.
//!
//! The order of an index leads to rows anywhere in the table. If they are in the pool but in no
//! cache of the processor, it waits for main memory three times a row: for what the pool knows of
//! the page, for the page's header and line pointer, and for the row itself. A scan knows the next
//! entries. So it asks for the first of these some entries ahead, and for the others when what
//! comes before has come.
//!
//! These are hints, without a use of the page in the pool's eyes. They cost about 50 nanoseconds a
//! row, so a table that fits into the caches does without.

use millpond_buffer::PAGE_SIZE;
use millpond_sync::prefetch::HAS_EFFECT;

use super::relation::HeapRelation;
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::page::item;

/// How many entries ahead their pages' entries in the pool are asked for, then their line pointers,
/// then their rows.
const PAGES_AHEAD: usize = 12;
const LINES_AHEAD: usize = 8;
const ROWS_AHEAD: usize = 4;
/// A row's memory up to this length.
const MOST_BYTES: usize = 256;
/// A smaller table fits into the caches. In tests most tables are large.
const LEAST_BLOCKS: u32 = if cfg!(test) { 2 } else { (4 << 20) / PAGE_SIZE as u32 };

/// For how many of the next entries something was asked for.
#[derive(Debug, Default)]
pub struct RowPrefetch {
    pages_asked: usize,
    lines_asked: usize,
    rows_asked: usize,
}

impl RowPrefetch {
    /// Asks for entries behind the `read` ones that are read next, at most for `most`. `next` gives
    /// an entry by its place behind those.
    #[inline]
    pub fn prefetch(
        &mut self,
        ctx: &Ctx,
        heap: &HeapRelation,
        (read, most): (usize, usize),
        next: impl Fn(usize) -> Option<Tid>,
    ) {
        if !HAS_EFFECT || heap.block_count() < LEAST_BLOCKS {
            return;
        }
        self.pages_asked = self.pages_asked.saturating_sub(read);
        self.lines_asked = self.lines_asked.saturating_sub(read);
        self.rows_asked = self.rows_asked.saturating_sub(read);
        while self.pages_asked < PAGES_AHEAD.min(most)
            && let Some(tid) = next(self.pages_asked)
        {
            ctx.buffers().prefetch_entry(&heap.main, tid.block);
            self.pages_asked += 1;
        }
        while self.lines_asked < LINES_AHEAD.min(self.pages_asked)
            && let Some(tid) = next(self.lines_asked)
        {
            ask_for_line(ctx, heap, tid);
            self.lines_asked += 1;
        }
        // Those that were asked for just now have not come yet, but there may be no others.
        while self.rows_asked < ROWS_AHEAD.min(self.lines_asked)
            && let Some(tid) = next(self.rows_asked)
        {
            ask_for_row(ctx, heap, tid);
            self.rows_asked += 1;
        }
    }
}

fn ask_for_line(ctx: &Ctx, heap: &HeapRelation, tid: Tid) {
    ctx.buffers().look_ahead(&heap.main, tid.block, |page| {
        page.prefetch(0..item::LINES);
        let line = item::line_at(tid.offset);
        page.prefetch(line..line + item::LINE_LEN);
    });
}

fn ask_for_row(ctx: &Ctx, heap: &HeapRelation, tid: Tid) {
    ctx.buffers().look_ahead(&heap.main, tid.block, |page| {
        if let Some(row) = item::line(page, tid.offset).item() {
            page.prefetch(row.start..row.end.min(row.start + MOST_BYTES));
        }
    });
}
