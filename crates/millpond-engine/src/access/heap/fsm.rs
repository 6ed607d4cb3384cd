//! The free space map of a heap: hints which pages may have room, never relied on (heap rule 9).
//!
//! The map is not logged (wal rule 14). A crash may lose or tear its pages; a torn page fails its
//! checksum. So a read error counts as "unknown", and writing starts such a page anew.

use millpond_buffer::{BlockNumber, BufferError, Wait};
use millpond_sync::mutant;

use super::fsm_page::{self, BLOCKS_PER_PAGE};
use super::relation::HeapRelation;
use crate::ctx::Ctx;

/// Pages of the map that one search looks at.
const SEARCH_PAGES: u32 = 64;

/// Finds a block that may have `bytes` usable; the search begins near `start`. Sessions that start
/// at different places find different pages. It waits for a page of the map if the session may
/// wait.
pub fn search(
    ctx: &Ctx,
    heap: &HeapRelation,
    bytes: usize,
    start: BlockNumber,
) -> Option<BlockNumber> {
    let blocks = heap.block_count();
    let pages = blocks.div_ceil(BLOCKS_PER_PAGE).min(heap.fsm.block_count());
    if pages == 0 {
        return None;
    }
    let wanted = fsm_page::category_needed(bytes);
    let (first, place) = fsm_page::place_of(BlockNumber(start.0 % blocks.max(1)));
    (0..pages.min(SEARCH_PAGES)).find_map(|step| {
        let page = BlockNumber((first.0 % pages + step) % pages);
        let from = if step == 0 { place } else { 0 };
        let found = ctx
            .buffers()
            .read(&heap.fsm, page, ctx.wait(), |view| fsm_page::find(view, wanted, from))
            .ok()??;
        let block = BlockNumber(page.0 * BLOCKS_PER_PAGE + found as u32);
        if block.0 < blocks {
            return Some(block);
        }
        // The map promises a block that does not exist, after a truncation or because it holds
        // garbage.
        record(ctx, heap, block, 0);
        None
    })
}

/// Notes how much of a block is usable. A failure changes nothing that other code relies on.
pub fn record(ctx: &Ctx, heap: &HeapRelation, block: BlockNumber, usable: usize) {
    let value = fsm_page::category(usable);
    let (page, place) = fsm_page::place_of(block);
    if page.0 < heap.fsm.block_count() {
        let read =
            ctx.buffers().read(&heap.fsm, page, ctx.wait(), |view| fsm_page::leaf(view, place));
        match read {
            Ok(known) if known == value => return,
            Ok(_) | Err(BufferError::Checksum { .. }) => {}
            Err(_) => return,
        }
    } else if value == 0 {
        return;
    }
    if let Err(error) = write(ctx, heap, page, place, value)
        && !matches!(error, BufferError::WouldBlock)
    {
        tracing::debug!(relation = %heap.id(), %error, "free space map not updated");
    }
}

fn write(
    ctx: &Ctx,
    heap: &HeapRelation,
    page: BlockNumber,
    place: usize,
    value: u8,
) -> Result<(), BufferError> {
    while heap.fsm.block_count() <= page.0 {
        if ctx.wait() == Wait::Never {
            return Err(BufferError::WouldBlock);
        }
        drop(ctx.buffers().extend(&heap.fsm, ctx.wait())?);
    }
    let pinned = match ctx.buffers().pin(&heap.fsm, page, ctx.wait()) {
        Err(BufferError::Checksum { .. }) if !mutant!("wal-torn-hint-is-damage") => {
            ctx.buffers().pin_or_zero(&heap.fsm, page)?
        }
        other => other?,
    };
    let mut latched = pinned.into_exclusive()?;
    if fsm_page::leaf(latched.bytes(), place) != value {
        let mut copy = *latched.bytes();
        fsm_page::set(&mut copy, place, value);
        let mut change = latched.change();
        change.write_page(&copy);
        change.publish_unlogged();
    }
    Ok(())
}
