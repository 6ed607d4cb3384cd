//! Splitting a page that is too full: where to cut it, and the separator between the halves.
//!
//! The cut is near the middle by bytes, where the separator is shortest. A page at the right end
//! that is full by appending keeps 90% of the bytes, since no key will come between. The separator
//! is after all left entries and not after any right entry. In a leaf it is the shortest such start
//! of a key (suffix truncation). In an inner page it is the first right entry, as its parent knows
//! it.

use std::ops::Range;

use millpond_buffer::PAGE_SIZE;
use millpond_sync::mutant;

use super::item::Item;
use super::items::{Frame, Items, common_prefix};
use super::layout::{FLAG_INCOMPLETE_SPLIT, FLAG_LEAF, WIDE_SLOT_BYTES};

/// A page cut in two.
pub(crate) struct Cut {
    /// The number of entries that stay left.
    pub(crate) at: usize,
    /// The separator: after all left entries, not after any right entry.
    pub(crate) key: Vec<u8>,
    pub(crate) tid: u64,
    pub(crate) left: Box<[u8; PAGE_SIZE]>,
    pub(crate) right: Box<[u8; PAGE_SIZE]>,
}

/// The fill, in percent, of the left page of an append.
const APPEND_FILL: usize = 90;
/// How far from the middle a cut may be for a shorter separator, in percent of the entries.
const TOLERANCE: usize = 6;

/// The separator between two neighbours: the shortest start of the right key that is after the left
/// key. If the keys are equal, it is the whole right entry.
pub(crate) fn separator<'a>(left: &Item<'_>, right: &Item<'a>) -> (&'a [u8], u64) {
    if left.key == right.key {
        return (right.key, right.tid);
    }
    let common = common_prefix(left.key, right.key);
    (&right.key[..(common + 1).min(right.key.len())], 0)
}

/// The separator at a cut. The first right entry of an inner page already is a separator and must
/// stay what its parent says.
fn separator_at(items: &Items, leaf: bool, at: usize) -> (Vec<u8>, u64) {
    let right = items.get(at);
    if leaf {
        let (key, tid) = separator(&items.get(at - 1), &right);
        (key.to_vec(), tid)
    } else {
        (right.key.to_vec(), right.tid)
    }
}

/// Cuts the entries of a page (including the new one, at `new_index`). `frame` is the page's,
/// `right_block` is the new page. `None` if no cut fits, which the limit on key lengths excludes in
/// leaves (btree rule 12).
pub(crate) fn cut(items: &Items, frame: &Frame, new_index: usize, right_block: u32) -> Option<Cut> {
    let count = items.len();
    let leaf = frame.flags & FLAG_LEAF != 0;
    let append = frame.right == 0 && new_index + 1 == count;
    let wanted = if append { fill_point(items) } else { middle(items, leaf) };
    cut_near(items, frame, wanted, right_block)
}

/// Cuts as near to `wanted` as possible so that both halves fit their pages.
pub(crate) fn cut_near(
    items: &Items,
    frame: &Frame,
    wanted: usize,
    right_block: u32,
) -> Option<Cut> {
    let count = items.len();
    let wanted = wanted.clamp(1, count.saturating_sub(1).max(1));
    (0..count)
        .flat_map(|distance| [wanted.checked_sub(distance), Some(wanted + distance)])
        .flatten()
        .filter(|&at| at > 0 && at < count)
        .find_map(|at| cut_at(items, frame, at, right_block))
}

/// Cuts before the entry `at`, if both halves fit their pages.
pub(crate) fn cut_at(items: &Items, frame: &Frame, at: usize, right_block: u32) -> Option<Cut> {
    let (key, tid) = separator_at(items, frame.flags & FLAG_LEAF != 0, at);
    let left_frame = left_frame(frame, right_block, &key, tid);
    let right_frame = Frame { flags: frame.flags & !FLAG_INCOMPLETE_SPLIT, ..frame.clone() };
    let (left, right) = (0..at, at..items.len());
    // Both halves must fit before either is written.
    let left_plan = items.plan(&left_frame, left.clone())?;
    let right_plan = items.plan(&right_frame, right.clone())?;
    let left = items.write(&left_frame, left, &left_plan);
    let right = items.write(&right_frame, right, &right_plan);
    Some(Cut { at, key, tid, left, right })
}

/// The left page after the cut; redo builds it again.
pub(crate) fn left_half(
    items: &Items,
    frame: &Frame,
    at: usize,
    right_block: u32,
    key: &[u8],
    tid: u64,
) -> Option<Box<[u8; PAGE_SIZE]>> {
    items.build(&left_frame(frame, right_block, key, tid), 0..at)
}

fn left_frame(frame: &Frame, right_block: u32, key: &[u8], tid: u64) -> Frame {
    let mark = if mutant!("btree-split-unmarked") { 0 } else { FLAG_INCOMPLETE_SPLIT };
    Frame {
        flags: frame.flags | mark,
        right: right_block,
        high: Some((key.to_vec(), tid)),
        ..frame.clone()
    }
}

fn weight(item: &Item<'_>) -> usize {
    WIDE_SLOT_BYTES + item.key.len().saturating_sub(8)
}

/// The first cut with at least `target` bytes to its left.
fn first_cut_with(items: &Items, target: usize) -> usize {
    let mut bytes = 0;
    for index in 0..items.len() {
        bytes += weight(&items.get(index));
        if bytes >= target {
            return index + 1;
        }
    }
    items.len()
}

fn total(items: &Items) -> usize {
    (0..items.len()).map(|index| weight(&items.get(index))).sum()
}

fn fill_point(items: &Items) -> usize {
    first_cut_with(items, total(items) * APPEND_FILL / 100)
}

/// Near the middle by bytes, where the separator is shortest.
fn middle(items: &Items, leaf: bool) -> usize {
    let middle = first_cut_with(items, total(items) / 2);
    let slack = items.len() * TOLERANCE / 100;
    let candidates: Range<usize> =
        middle.saturating_sub(slack).max(1)..(middle + slack + 1).min(items.len());
    candidates
        .min_by_key(|&at| {
            let (left, right) = (items.get(at - 1), items.get(at));
            let len = if leaf { separator(&left, &right).0.len() } else { right.key.len() };
            (len, at.abs_diff(middle))
        })
        .unwrap_or(middle)
}
