//! VACUUM: removes dead versions, frees line pointers that no index names, freezes old ids.
//!
//! It makes three passes. When the list of dead line pointers is full, it makes the last two, and
//! then goes on with the first where it stopped:
//!
//! 1. over the heap: prune each page, which leaves a dead line pointer for each dead row, and list
//!    these;
//! 2. over the indexes: remove the entries that name a listed line pointer;
//! 3. over the pages of the list: make the line pointers unused, for new rows (heap rule 5).
//!
//! Without indexes, the first pass frees the line pointers at once, and the others are left out.
//! The first pass copies each page without a latch. It latches only pages on which there is
//! something to do, and records the free space of all. A change of a page is logged by itself, so a
//! vacuum can stop, or crash, anywhere. Empty pages at the end of the heap are only counted:
//! [`truncate`](super::truncate) removes them.

use millpond_buffer::{BlockNumber, BufferError, ExclusivePage, PAGE_SIZE, Ring};
use millpond_sync::mutant;

use super::access_prune::{apply_plan, plan_latched};
use super::fsm;
use super::header::TupleFlags;
use super::judge::judge;
use super::page::{self, is_all_visible};
use super::prune::{Fate, PruneOptions, PrunePlan, plan_free};
use super::relation::HeapRelation;
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::page::item::{self, LineSet, LineState};
use crate::page::{PageKind, kind};
use crate::transam::{Horizon, Xid};

/// Pages with dead rows to remember before the indexes are visited: 40 bytes per page.
const PAGES_PER_ROUND: usize = 1 << 18;

/// What vacuum did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VacuumStats {
    /// Pages of the heap.
    pub pages: u64,
    /// Pages that were changed.
    pub pages_changed: u64,
    /// Row versions removed.
    pub removed: u64,
    /// Rows left that a snapshot sees or will see.
    pub live: u64,
    /// Dead versions left because a snapshot may still see them.
    pub not_yet_removable: u64,
    /// Line pointers made free.
    pub lines_freed: u64,
    /// How often the indexes were visited.
    pub index_passes: u32,
    /// Pages marked all-visible now.
    pub all_visible_pages: u64,
    /// Apart from frozen ids, the heap names no transaction older than this.
    pub oldest_xid: Xid,
    /// Blocks from here on are empty, once dead line pointers are free: the heap could be truncated
    /// here.
    pub used_blocks: u32,
}

/// Tids of dead line pointers, in order.
#[derive(Debug, Default)]
pub struct DeadTids {
    pages: Vec<(BlockNumber, LineSet)>,
}

impl DeadTids {
    /// Whether `tid` is among them.
    pub fn contains(&self, tid: Tid) -> bool {
        self.pages
            .binary_search_by_key(&tid.block, |page| page.0)
            .is_ok_and(|at| self.pages[at].1.contains(tid.offset))
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The number of tids.
    pub fn len(&self) -> usize {
        self.pages.iter().map(|page| page.1.len()).sum()
    }
}

/// The index pass: removes, from every index, each entry whose tid the function says is dead.
pub type IndexPass<'a> = &'a mut dyn FnMut(&dyn Fn(Tid) -> bool) -> EngineResult<()>;

/// The heap being vacuumed; its pages are read through the ring.
#[derive(Clone, Copy)]
struct Target<'a> {
    ctx: &'a Ctx,
    heap: &'a HeapRelation,
    ring: Option<&'a Ring>,
    has_indexes: bool,
}

impl<'a> Target<'a> {
    fn latch(&self, block: BlockNumber) -> EngineResult<ExclusivePage<'a>> {
        let Self { ctx, heap, ring, .. } = *self;
        let pinned = ctx.buffers().pin_with(&heap.main, block, ctx.wait(), ring)?;
        Ok(pinned.into_exclusive()?)
    }

    /// Copies a page; `false` if the heap has become shorter.
    fn copy(&self, block: BlockNumber, copy: &mut [u8; PAGE_SIZE]) -> EngineResult<bool> {
        let Self { ctx, heap, ring, .. } = *self;
        let read = |copy: &mut _| {
            ctx.buffers()
                .read_with(&heap.main, block, ctx.wait(), ring, |view| view.copy_page(copy))
        };
        match read(copy) {
            Ok(()) => Ok(true),
            Err(BufferError::BeyondEnd { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn note_room(&self, block: BlockNumber, page: &[u8; PAGE_SIZE]) {
        let usable = page::usable_space(page, self.heap.reserve());
        fsm::record(self.ctx, self.heap, block, usable);
    }
}

/// Vacuums a heap, in a ring of the pool if there is one. `indexes` is `None` if the table has no
/// indexes; then line pointers are freed at once. The caller holds a lock that keeps others from
/// creating an index meanwhile.
pub fn vacuum(
    ctx: &Ctx,
    heap: &HeapRelation,
    ring: Option<&Ring>,
    mut indexes: Option<IndexPass<'_>>,
) -> EngineResult<VacuumStats> {
    let mut stats = VacuumStats { oldest_xid: Xid(u64::MAX), ..VacuumStats::default() };
    let counts = heap.counters().counts();
    let horizon = ctx.txns().horizon();
    let mut dead = DeadTids::default();
    let blocks = heap.block_count();
    let target = Target { ctx, heap, ring, has_indexes: indexes.is_some() };
    let (mut stream, mut rest) = (ctx.maintenance_stream(), 0..blocks);
    let mut source = || rest.next().map(BlockNumber);
    // One copy serves all pages. Where there is nothing to do, zeroing a copy for each page would
    // be a good part of the work.
    let mut copy = Box::new([0; PAGE_SIZE]);
    while let Some(block) = stream.peek(ctx.buffers(), &heap.main, ctx.wait(), ring, &mut source) {
        ctx.check_interrupts()?;
        vacuum_page(target, block, &horizon, &mut copy, &mut dead, &mut stats)?;
        stream.advance();
        if dead.pages.len() >= PAGES_PER_ROUND
            && let Some(pass) = &mut indexes
        {
            free_dead(target, pass, &mut dead, &mut stats)?;
        }
    }
    if let Some(pass) = &mut indexes
        && !dead.is_empty()
    {
        free_dead(target, pass, &mut dead, &mut stats)?;
    }
    stats.pages = u64::from(blocks);
    stats.oldest_xid = stats.oldest_xid.min(horizon.oldest_running_xid);
    heap.counters().note_vacuum(counts, stats.live, stats.not_yet_removable);
    Ok(stats)
}

/// The number of rows, if the copy shows that there is nothing to do: all rows are frozen, and none
/// is deleted or locked.
fn settled_rows(copy: &[u8; PAGE_SIZE], has_indexes: bool) -> Option<u64> {
    if !is_all_visible(copy) {
        return None;
    }
    let mut rows = 0;
    for offset in 1..=item::line_count(copy) {
        match item::line(copy, offset).state() {
            LineState::Normal => {
                let header = page::header(copy, offset)?;
                if !header.flags.contains(TupleFlags::XMIN_FROZEN) || !header.has_no_xmax() {
                    return None;
                }
                rows += 1;
            }
            LineState::Redirect if has_indexes => {}
            LineState::Redirect | LineState::Dead => return None,
            LineState::Unused => {}
        }
    }
    Some(rows)
}

fn vacuum_page(
    target: Target<'_>,
    block: BlockNumber,
    horizon: &Horizon,
    copy: &mut [u8; PAGE_SIZE],
    dead: &mut DeadTids,
    stats: &mut VacuumStats,
) -> EngineResult<()> {
    if !target.copy(block, copy)? {
        return Ok(());
    }
    if kind(copy) != PageKind::New as u16 {
        if let Some(rows) = settled_rows(copy, target.has_indexes) {
            stats.live += rows;
            if item::line_count(copy) > 0 {
                stats.used_blocks = block.0 + 1;
            }
        } else {
            let mut latched = target.latch(block)?;
            prune_page(target.ctx, &mut latched, horizon, target.has_indexes, stats)?;
            copy.copy_from_slice(latched.bytes());
            drop(latched);
            survey(target.ctx, copy, block, dead, stats, horizon)?;
        }
    }
    target.note_room(block, copy);
    Ok(())
}

/// Prunes, freezes and marks one latched page.
fn prune_page(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    horizon: &Horizon,
    has_indexes: bool,
    stats: &mut VacuumStats,
) -> EngineResult<()> {
    let options = PruneOptions { has_indexes };
    let plan = plan_latched(ctx, latched, horizon, options)?;
    let normal_before = count_state(latched.bytes(), LineState::Normal);
    let dead_before = count_state(latched.bytes(), LineState::Dead);
    if plan.is_empty() {
        return Ok(());
    }
    apply_plan(ctx, latched, &plan)?;
    stats.pages_changed += 1;
    stats.removed += normal_before - count_state(latched.bytes(), LineState::Normal);
    if !has_indexes {
        stats.lines_freed += dead_before + plan.unused.len() as u64;
    }
    stats.all_visible_pages += u64::from(plan.all_visible == Some(true));
    Ok(())
}

fn count_state(bytes: &[u8; PAGE_SIZE], state: LineState) -> u64 {
    let count = item::line_count(bytes);
    (1..=count).filter(|&offset| item::line(bytes, offset).state() == state).count() as u64
}

/// Collects the dead line pointers of a page and counts what is left on it.
fn survey(
    ctx: &Ctx,
    copy: &[u8; PAGE_SIZE],
    block: BlockNumber,
    dead: &mut DeadTids,
    stats: &mut VacuumStats,
    horizon: &Horizon,
) -> EngineResult<()> {
    let mut lines = LineSet::default();
    let count = item::line_count(copy);
    for offset in 1..=count {
        match item::line(copy, offset).state() {
            // Vacuum frees dead line pointers, so a page with no others counts as empty already.
            LineState::Dead => lines.insert(offset),
            LineState::Normal => {
                stats.used_blocks = block.0 + 1;
                let Some(header) = page::header(copy, offset) else { continue };
                let dead = !is_all_visible(copy)
                    && matches!(
                        judge(&header, horizon, ctx, || true)?.fate,
                        Fate::Dead | Fate::RecentlyDead
                    );
                if dead {
                    stats.not_yet_removable += 1;
                } else {
                    stats.live += 1;
                }
                if !header.flags.contains(TupleFlags::XMIN_FROZEN) {
                    stats.oldest_xid = stats.oldest_xid.min(header.xmin);
                }
                if !header.has_no_xmax() {
                    stats.oldest_xid = stats.oldest_xid.min(header.xmax);
                }
            }
            LineState::Redirect => stats.used_blocks = block.0 + 1,
            LineState::Unused => {}
        }
    }
    if !lines.is_empty() {
        dead.pages.push((block, lines));
    }
    Ok(())
}

/// Removes the index entries of the dead rows, then frees their line pointers.
fn free_dead(
    target: Target<'_>,
    pass: &mut IndexPass<'_>,
    dead: &mut DeadTids,
    stats: &mut VacuumStats,
) -> EngineResult<()> {
    if mutant!("heap-lines-freed-before-entries") {
        for (block, lines) in &dead.pages {
            let mut latched = target.latch(*block)?;
            let plan = plan_free(latched.bytes(), lines);
            apply_plan(target.ctx, &mut latched, &plan)?;
        }
    }
    pass(&|tid| dead.contains(tid))?;
    stats.index_passes += 1;
    let Target { ctx, heap, ring, .. } = target;
    let pages = std::mem::take(&mut dead.pages);
    let mut stream = ctx.maintenance_stream();
    let mut source = pages.iter().map(|page| page.0);
    for (block, lines) in &pages {
        ctx.check_interrupts()?;
        stream.peek(ctx.buffers(), &heap.main, ctx.wait(), ring, &mut || source.next());
        stream.advance();
        let block = *block;
        let mut latched = target.latch(block)?;
        let plan: PrunePlan = plan_free(latched.bytes(), lines);
        if plan.is_empty() {
            continue;
        }
        apply_plan(ctx, &mut latched, &plan)?;
        stats.lines_freed += plan.unused.len() as u64;
        let copy = *latched.bytes();
        drop(latched);
        target.note_room(block, &copy);
    }
    Ok(())
}
