//! Chooses where a new row goes: a latched page with room.
//!
//! The candidates, in order: the session's target page, the free space map's suggestions, the last
//! page, a new page. A page whose latch is taken is skipped a few times, so that sessions that
//! insert at the same time spread over pages. A page that turns out to be full corrects the map.

use millpond_buffer::{BlockNumber, ExclusivePage, Ring};
use millpond_sync::mutant;

use super::access_prune::prune_latched;
use super::relation::HeapRelation;
use super::{fsm, page};
use crate::ctx::Ctx;
use crate::error::EngineResult;

/// Candidates to try before the relation is extended.
const TRIES: usize = 12;
/// How often a taken latch makes the search try another page; after that the session waits.
const EVASIONS: usize = 4;

/// What the search is for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'r> {
    /// Bytes of columns.
    pub payload: usize,
    /// Bytes to leave free.
    pub reserve: usize,
    /// A page that is excluded: the one that the row comes from.
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
    // The page last found full. It is often the last page, which would be the next candidate again.
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

/// Another candidate when a latch is taken: from a different place in the map.
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

/// Where this session begins its search for room. Sessions begin at different places.
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
