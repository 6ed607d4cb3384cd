//! Where a new row goes: a latched page with room.
//!
//! Candidates in turn: the session's target page, what the free space map suggests, the last page, a new
//! page. A page whose latch is taken is passed over a few times, so that sessions inserting at the same
//! time spread over pages. A page that turns out to be full corrects the map.

use millpond_buffer::{BlockNumber, ExclusivePage, Ring, Wait};
use millpond_sync::mutant;

use super::access_prune::prune_latched;
use super::relation::HeapRelation;
use super::{fsm, page};
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};

/// Candidates to try before the relation is extended.
const TRIES: usize = 12;
/// How often a taken latch makes the search go on elsewhere.
const EVASIONS: usize = 4;

/// What the search is for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'r> {
    /// Bytes of columns.
    pub payload: usize,
    /// Bytes to be left free.
    pub reserve: usize,
    /// A page that will not do: the one that the row comes from.
    pub avoid: Option<BlockNumber>,
    /// Go to new pages without looking for room in old ones (bulk loads into new tables).
    pub only_new: bool,
    /// The ring of a bulk load.
    pub ring: Option<&'r Ring>,
}

/// Finds or makes a page with room and returns it latched. The page may be new (all zeros).
pub fn page_with_room<'s>(
    ctx: &'s Ctx,
    heap: &HeapRelation,
    wanted: Wanted<'_>,
) -> EngineResult<ExclusivePage<'s>> {
    let mut evasions = 0;
    // The page that was found full last: often the last page, and the next candidate again.
    let mut full = None;
    let mut candidate = ctx.heap().target(heap.id());
    let mut searched = wanted.only_new;
    let start = start_of_search(ctx, heap);
    let bytes = page::tuple_space(wanted.payload);
    for _ in 0..TRIES {
        let block = match candidate.take().filter(|block| block.0 < heap.block_count()) {
            Some(block) => block,
            None if searched => break,
            None => match fsm::search(ctx, heap, bytes, BlockNumber(start)) {
                Some(block) => block,
                None => {
                    searched = true;
                    match heap.block_count().checked_sub(1) {
                        Some(last) => BlockNumber(last),
                        None => break,
                    }
                }
            },
        };
        if wanted.avoid == Some(block) || full == Some(block) {
            searched = true;
            continue;
        }
        let pinned = ctx.buffers().pin_with(&heap.main, block, ctx.wait(), wanted.ring)?;
        let latched = if evasions < EVASIONS {
            match pinned.try_into_exclusive() {
                Ok(latched) => Some(latched),
                Err(_taken) => {
                    evasions += 1;
                    candidate = evade(ctx, heap, bytes, start, evasions);
                    None
                }
            }
        } else {
            Some(pinned.into_exclusive()?)
        };
        if let Some(mut latched) = latched {
            if has_room(ctx, heap, &mut latched, wanted)? || mutant!("heap-map-believed") {
                ctx.heap().set_target(heap.id(), Some(block));
                return Ok(latched);
            }
            let usable = page::usable_space(latched.bytes(), wanted.reserve);
            drop(latched);
            full = Some(block);
            fsm::record(ctx, heap, block, usable.min(bytes.saturating_sub(1)));
        }
    }
    let new = ctx.buffers().extend_with(&heap.main, ctx.wait(), wanted.ring)?;
    ctx.heap().set_target(heap.id(), Some(new.block()));
    Ok(new)
}

/// Another candidate when a latch is taken: some place else in the map.
fn evade(
    ctx: &Ctx,
    heap: &HeapRelation,
    bytes: usize,
    start: u32,
    evasions: usize,
) -> Option<BlockNumber> {
    let elsewhere = start.wrapping_add(evasions as u32 * 61);
    fsm::search(ctx, heap, bytes, BlockNumber(elsewhere))
}

/// Sessions look for room from different places on.
fn start_of_search(ctx: &Ctx, heap: &HeapRelation) -> u32 {
    let blocks = u64::from(heap.block_count().max(1));
    let spread = (ctx.no().index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((spread * blocks) >> 32) as u32
}

fn has_room(
    ctx: &Ctx,
    heap: &HeapRelation,
    latched: &mut ExclusivePage<'_>,
    wanted: Wanted<'_>,
) -> EngineResult<bool> {
    if page::slot_for(latched.bytes(), wanted.payload, wanted.reserve).is_some() {
        return Ok(true);
    }
    if !prune_latched(ctx, heap, latched)? {
        return Ok(false);
    }
    Ok(page::slot_for(latched.bytes(), wanted.payload, wanted.reserve).is_some())
}

/// Fails with `WouldBlock` if the session may not wait and the log might make it: to be asked before
/// the first change. `pages`: how many page images may go along.
pub fn log_has_room(ctx: &Ctx, pages: usize, bytes: usize) -> EngineResult<()> {
    let image = millpond_buffer::PAGE_SIZE + 64;
    if ctx.wait() == Wait::Never && !ctx.log().has_room(pages * image + bytes + 128) {
        return Err(EngineError::WouldBlock);
    }
    Ok(())
}
