//! Removes the entries of dead rows.
//!
//! Leaves are visited in block order, which reads the file from front to back. Once pages are
//! reused, a concurrent split may move entries from a leaf ahead of the vacuum to a page behind it.
//! There they would be missed. Therefore every vacuum has a number, which the meta page keeps while
//! it runs. A split stamps both halves with it. A vacuum that comes to a page with its own stamp
//! follows the right links to pages behind it (btree rule 10).
//!
//! One vacuum of an index runs at a time: the caller holds a relation lock that excludes others.

use millpond_buffer::{BlockNumber, PAGE_SIZE, RelHandle, Ring};
use millpond_sync::mutant;

use super::descend::Steps;
use super::env::{Env, latch, pin_with};
use super::grow::new_record;
use super::page::node::Node;
use super::record::{self, Meta, REMOVE, SET_META};
use super::unlink::{free, is_free, unlink};
use super::{META, ROOT};
use crate::EngineResult;
use crate::access::Tid;
use crate::wal::ImageMode;

/// What a vacuum found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumStats {
    /// Pages of the file.
    pub pages: u32,
    /// Entries removed.
    pub removed: u64,
    /// Entries left.
    pub kept: u64,
    /// Leaves without entries, which stay in the tree and take new ones.
    pub empty_leaves: u32,
    /// Empty leaves that left the tree.
    pub deleted_pages: u32,
    /// Pages that splits can use now.
    pub free_pages: u32,
}

/// Removes all entries whose tid is dead, in a ring of the pool if there is one.
pub fn vacuum<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    ring: Option<&Ring>,
    dead: &dyn Fn(Tid) -> bool,
) -> EngineResult<VacuumStats> {
    let mut stats = VacuumStats::default();
    let begun = change_meta(env, rel, |meta| {
        let next = meta.last.checked_add(1).unwrap_or(1);
        // The list of free pages is rebuilt from what the vacuum finds.
        Meta { last: next, active: next, free: 0 }
    })?;
    let visited = visit_all(env, rel, ring, dead, begun.active, &mut stats);
    // Also after an error. If the number stayed, later splits would only use an outdated stamp.
    let ended = change_meta(env, rel, |meta| Meta { active: 0, ..meta });
    visited?;
    ended?;
    Ok(stats)
}

fn change_meta<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    change: impl Fn(Meta) -> Meta,
) -> EngineResult<Meta> {
    let mut page = latch(env, rel, META)?;
    let meta = change(Meta::of(page.bytes()));
    let data = meta.encode();
    let record = new_record(SET_META).block(page.page_id(), ImageMode::IfNeeded, &data);
    env.log_and_apply(&mut [&mut page], record)?;
    Ok(meta)
}

fn visit_all<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    ring: Option<&Ring>,
    dead: &dyn Fn(Tid) -> bool,
    cycle: u32,
    stats: &mut VacuumStats,
) -> EngineResult<()> {
    let (slots, data) = (Vec::new(), Vec::new());
    let mut scratch = Scratch { ring, page: Box::new([0; PAGE_SIZE]), slots, data };
    let (mut ahead, mut stream) = (ROOT, env.maintenance_stream());
    // The end is read again each time: splits during the vacuum add pages there.
    let mut source = || {
        let next = (ahead < rel.block_count()).then_some(BlockNumber(ahead))?;
        ahead += 1;
        Some(next)
    };
    while let Some(BlockNumber(block)) =
        stream.peek(env.buffers(), rel, env.wait(), ring, &mut source)
    {
        let (mut next, mut steps) = (Some(block), Steps::new(rel));
        while let Some(visited) = next {
            steps.take(rel, visited)?;
            next = visit(env, rel, visited, dead, cycle, stats, &mut scratch)?
                .filter(|&right| right < block);
        }
        stream.advance();
        stream.ask_again();
    }
    stats.pages = rel.block_count();
    Ok(())
}

/// What all pages share: the ring, and memory.
struct Scratch<'r> {
    ring: Option<&'r Ring>,
    page: Box<[u8; PAGE_SIZE]>,
    slots: Vec<u16>,
    data: Vec<u8>,
}

/// Removes dead entries from one page. Returns its right sibling if the page was split during this
/// vacuum.
fn visit<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    block: u32,
    dead: &dyn Fn(Tid) -> bool,
    cycle: u32,
    stats: &mut VacuumStats,
    scratch: &mut Scratch<'_>,
) -> EngineResult<Option<u32>> {
    // This takes the latch, not an optimistic read: the vacuum must wait for a split that has
    // latched its pages already. The pin is kept to the end, so that further pins taken here don't
    // count as a use of the page by others.
    let page = pin_with(env, rel, block, scratch.ring)?.into_shared()?;
    scratch.page.copy_from_slice(page.bytes());
    let pinned = page.unlatch();
    if is_free(env, &scratch.page) {
        stats.free_pages += u32::from(free(env, rel, block)?);
        return Ok(None);
    }
    find_dead(&scratch.page, dead, &mut scratch.slots);
    if !scratch.slots.is_empty() {
        let mut page = pinned.clone().into_exclusive()?;
        // The page may have changed between the two latches, so it is searched again. That is
        // cheap: a page has few entries.
        find_dead(page.bytes(), dead, &mut scratch.slots);
        if !scratch.slots.is_empty() {
            record::remove_data(&mut scratch.data, &scratch.slots);
            let record =
                new_record(REMOVE).block(page.page_id(), ImageMode::IfNeeded, &scratch.data);
            env.log_and_apply(&mut [&mut page], record)?;
        }
        scratch.page.copy_from_slice(page.bytes());
    }
    let next = leave(&scratch.page, cycle, scratch.slots.len(), stats);
    if unlink(env, rel, block, &scratch.page)? {
        stats.deleted_pages += 1;
        stats.empty_leaves -= 1;
    }
    Ok(next)
}

fn find_dead(page: &[u8; PAGE_SIZE], dead: &dyn Fn(Tid) -> bool, slots: &mut Vec<u16>) {
    slots.clear();
    let node = Node(page);
    if node.is_node() && node.is_leaf() {
        let found = (0..node.count()).filter(|&slot| dead(Tid::from_u64(node.row(slot))));
        slots.extend(found.map(|slot| slot as u16));
    }
}

/// Counts what is left on a page. Returns the right sibling if the page has this vacuum's stamp.
fn leave(
    page: &[u8; PAGE_SIZE],
    cycle: u32,
    removed: usize,
    stats: &mut VacuumStats,
) -> Option<u32> {
    let node = Node(page);
    if !node.is_node() || !node.is_leaf() {
        return None;
    }
    stats.removed += removed as u64;
    stats.kept += node.count() as u64;
    stats.empty_leaves += u32::from(node.count() == 0);
    node.right().filter(|_| node.cycle() == cycle && !mutant!("btree-vacuum-never-goes-back"))
}
