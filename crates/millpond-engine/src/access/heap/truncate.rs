//! Cutting empty pages off a heap's end.

use millpond_buffer::BlockNumber;

use super::page;
use super::relation::HeapRelation;
use super::vacuum::VacuumStats;
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::page::item::line_count;
use crate::page::{PageKind, kind};
use crate::wal::storage::truncate_fork;

/// This many empty pages at the end are worth locking all others out for a moment.
const WORTH_BLOCKS: u64 = 64;

/// Whether [`truncate_end`] after this vacuum would free enough: 64 pages, or a sixteenth of the
/// heap.
pub fn is_worth_truncating(stats: &VacuumStats) -> bool {
    let empty = stats.pages.saturating_sub(u64::from(stats.used_blocks));
    empty >= WORTH_BLOCKS || (empty > 0 && empty >= stats.pages / 16)
}

/// Cuts off the pages at the end that have no line pointer left, and returns how many. The caller
/// holds a lock on the table that excludes every other session. No index entry names these pages,
/// and no session may be about to use them.
pub fn truncate_end(ctx: &Ctx, heap: &HeapRelation) -> EngineResult<u32> {
    let blocks = heap.block_count();
    let mut keep = blocks;
    while let Some(last) = keep.checked_sub(1) {
        let is_empty = ctx.buffers().read(&heap.main, BlockNumber(last), ctx.wait(), |view| {
            kind(view) == PageKind::New as u16 || (page::is_heap(view) && line_count(view) == 0)
        })?;
        if !is_empty {
            break;
        }
        keep = last;
    }
    if keep < blocks {
        truncate_fork(ctx, ctx.pool(), heap.main.rel(), keep)?;
    }
    Ok(blocks - keep)
}
