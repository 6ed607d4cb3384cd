//! How the tree shrinks: empty leaves leave it, and are used again.
//!
//! One record does it all: the left sibling takes over the range of the leaf, and the parent loses
//! a downlink. The leaf is marked deleted with the current moment (a [`Stamp`](super::Stamp)). The
//! first leaf below a parent stays, and so do the last leaf of the tree and inner pages. So a
//! parent always has a child, and no level but the lowest ever shrinks (btree rule 14).
//!
//! Readers that hold nothing may still reach the page by a link they read before. They find it
//! deleted and begin anew. The moment tells when all of them have ended. Only then does a later
//! vacuum put the page into the list of free pages, from which splits take it.

use millpond_buffer::{BlockNumber, ExclusivePage, PAGE_SIZE, RelHandle};

use millpond_sync::mutant;

use super::META;
use super::descend::{Path, Side, find_page_on, right_of};
use super::env::{Env, latch};
use super::grow::new_record;
use super::order::{latch_above, latch_right};
use super::page::PageRead;
use super::page::item::Target;
use super::page::node::Node;
use super::record::{self, FREE, Meta, UNLINK};
use crate::EngineResult;
use crate::wal::ImageMode;

/// Whether a page, looked at alone, is a leaf that may leave the tree.
fn may_leave<P: PageRead + ?Sized>(node: Node<'_, P>) -> bool {
    node.is_node()
        && node.is_leaf()
        && node.count() == 0
        && node.right().is_some()
        && !node.is_split_incomplete()
}

/// Takes an empty leaf (a copy of which is `copy`) out of the tree. If anything speaks against
/// that, the leaf stays.
pub(crate) fn unlink<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    block: u32,
    copy: &[u8; PAGE_SIZE],
) -> EngineResult<bool> {
    let mut high = Vec::new();
    let (true, Some(tid)) = (may_leave(Node(copy)), Node(copy).high_into(&mut high)) else {
        return Ok(false);
    };
    let target = Target { key: &high, tid };
    // The leaf holds what comes last before its high key, so this search finds its parent.
    let parent = find_page_on(env, rel, target, Side::Before, 1, &mut Path::new())?;
    let left = env.buffers().read(rel, BlockNumber(parent), env.wait(), |view| {
        neighbours(Node(view), target).filter(|&(_, child, _)| child == block)
    })?;
    let Some((left, ..)) = left else { return Ok(false) };
    // Left before right, child before parent (btree rule 7). Then everything is checked again.
    let mut left = latch(env, rel, left)?;
    let node = Node(left.bytes());
    if !node.is_node()
        || !node.is_leaf()
        || node.is_split_incomplete()
        || node.right() != Some(block)
    {
        return Ok(false);
    }
    let mut page = latch_right(env, rel, left.bytes(), block)?;
    let node = Node(page.bytes());
    if !may_leave(node) || node.compare_high(target) != Some(std::cmp::Ordering::Equal) {
        return Ok(false);
    }
    let Some(mut parent) = latch_above(env, rel, parent, 1)? else { return Ok(false) };
    let node = Node(parent.bytes());
    if !node.is_node() || node.level() != 1 || right_of(node, target, Side::Before).is_some() {
        return Ok(false);
    }
    match neighbours(node, target) {
        Some((before, child, slot)) if (before, child) == (left.block().get(), block) => {
            log_unlink(env, [&mut left, &mut parent, &mut page], slot, (&high, tid))
        }
        _ => Ok(false),
    }
}

/// The child that holds what comes last before the target, with the child before it and its slot.
fn neighbours<P: PageRead + ?Sized>(
    node: Node<'_, P>,
    target: Target<'_>,
) -> Option<(u32, u32, usize)> {
    if !node.is_node() || node.is_leaf() {
        return None;
    }
    let slot = node.child_slot_before(target);
    let before = node.child(slot.checked_sub(1)?);
    Some((before, node.child(slot), slot))
}

fn log_unlink<'e, E: Env + ?Sized>(
    env: &'e E,
    pages: [&mut ExclusivePage<'e>; 3],
    slot: usize,
    high: (&[u8], u64),
) -> EngineResult<bool> {
    let [left, parent, page] = pages;
    let right = Node(page.bytes()).right().unwrap_or(0);
    if record::absorbed(left.bytes(), right, high).is_none() {
        return Ok(false);
    }
    let (mut left_data, mut parent_data) = (Vec::new(), Vec::new());
    let mut own_high = Vec::new();
    let taken_over = match Node(left.bytes()).high_into(&mut own_high) {
        Some(tid) if mutant!("btree-range-not-taken-over") => (&own_high[..], tid),
        _ => high,
    };
    record::absorb_data(&mut left_data, right, taken_over);
    record::remove_data(&mut parent_data, &[slot as u16]);
    let data = record::delete_data(env.stamp());
    let record = new_record(UNLINK)
        .block(left.page_id(), ImageMode::IfNeeded, &left_data)
        .block(parent.page_id(), ImageMode::IfNeeded, &parent_data)
        .block(page.page_id(), ImageMode::IfNeeded, &data);
    env.log_and_apply(&mut [left, parent, page], record)?;
    Ok(true)
}

/// Whether a page outside the tree may be used again. It may if it is new and was never used, or
/// was deleted before every operation now under way began.
pub(crate) fn is_free<E: Env + ?Sized>(env: &E, page: &[u8; PAGE_SIZE]) -> bool {
    let node = Node(page);
    let is_over = |stamp| env.is_over(stamp) || mutant!("btree-page-free-at-once");
    node.is_new() || (node.is_deleted() && is_over(record::deleted_at(page)))
}

/// Puts a page that [`is_free`] into the list. The vacuum emptied the list when it began, so the
/// page isn't in it yet.
pub(crate) fn free<E: Env + ?Sized>(env: &E, rel: &RelHandle, block: u32) -> EngineResult<bool> {
    let mut page = latch(env, rel, block)?;
    if !is_free(env, page.bytes()) {
        return Ok(false);
    }
    let mut meta = latch(env, rel, META)?;
    let next = Meta::of(meta.bytes()).free.to_le_bytes();
    let first = block.to_le_bytes();
    let record = new_record(FREE).block(page.page_id(), ImageMode::Never, &next).block(
        meta.page_id(),
        ImageMode::IfNeeded,
        &first,
    );
    env.log_and_apply(&mut [&mut page, &mut meta], record)?;
    Ok(true)
}
