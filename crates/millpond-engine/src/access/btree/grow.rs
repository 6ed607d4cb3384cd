//! How the tree grows: adding entries to latched pages, splits, and finishing splits after a crash.
//!
//! A split is one record over the page and its new right half. Above the leaves it also covers the
//! child whose downlink caused the split, if the same record adds that downlink. The split leaves
//! the page marked: only the right link leads to the right half. A second record adds the downlink
//! and removes the mark. Between the two the tree is correct, only slower. A session that latches a
//! marked page for an insertion finishes the split first (btree rule 6).
//!
//! The root keeps its block: it is split by moving its entries to two new pages, in one record
//! (btree rule 4).
//!
//! An inner page that can't be cut with the new entry is first cut without it (btree rule 16).
//!
//! Latches are taken child before parent and left before right: no deadlock (btree rule 7).

use millpond_buffer::{BlockNumber, BufferError, ExclusivePage, PAGE_SIZE, RelHandle, Wait};
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::descend::{Path, Side, Steps, damaged, find_page, right_of};
use super::env::{Env, latch, pin};
use super::order::latch_above;
use super::page::PageRead;
use super::page::item::{Item, Target};
use super::page::items::{Frame, Insertion, Items, plan_insert};
use super::page::layout::{FLAG_INCOMPLETE_SPLIT, NEXT_FREE};
use super::page::node::Node;
use super::page::split::{Cut, cut, cut_near};
use super::record::{self, INSERT, Meta, ROOT_SPLIT, SET_META, SPLIT, SplitData};
use super::{META, ROOT};
use crate::transam::Xid;
use crate::wal::{ImageMode, Record, RmgrId};
use crate::{EngineError, EngineResult};

/// The result of adding an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Added {
    Done,
    /// The inner page was cut without the entry, which now belongs to a half (btree rule 16).
    MadeRoom,
}

/// An entry, and the slot before which it goes.
type New<'i> = (usize, Item<'i>);

/// Adds an entry to a latched page, before the slot at `index`, and splits the page if needed.
/// `child` is the page whose split the entry completes. On a leaf the result is never `MadeRoom`.
///
/// An index beyond the entries (a damaged page) is an error before anything is logged.
pub(crate) fn add<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    path: &Path,
    mut page: ExclusivePage<'e>,
    index: usize,
    item: Item<'_>,
    child: Option<&mut ExclusivePage<'e>>,
) -> EngineResult<Added> {
    if index > Node(page.bytes()).count() {
        return Err(damaged(rel, page.block().get(), "has fewer entries than its links say"));
    }
    if matches!(plan_insert(page.bytes(), index, item), Insertion::Full) {
        if env.wait() == Wait::Never {
            return Err(EngineError::WouldBlock);
        }
        if page.block().get() == ROOT {
            return split_root(env, rel, page, (index, item), child);
        }
        return split_page(env, rel, path, page, (index, item), child);
    }
    let mut data = Vec::with_capacity(16 + item.key.len());
    record::insert_data(&mut data, index, &item);
    let record = new_record(INSERT).block(page.page_id(), ImageMode::IfNeeded, &data);
    log_with_child(env, &mut [&mut page], record, child)?;
    Ok(Added::Done)
}

/// Logs and applies a record over these pages, and over the child whose split it completes, if any.
fn log_with_child<'e, E: Env + ?Sized>(
    env: &'e E,
    pages: &mut [&mut ExclusivePage<'e>],
    record: Record<'_>,
    child: Option<&mut ExclusivePage<'e>>,
) -> EngineResult<()> {
    match child {
        None => env.log_and_apply(pages, record)?,
        Some(child) => {
            let record = record.block(child.page_id(), ImageMode::IfNeeded, &[]);
            let mut all = SmallVec::<[&mut ExclusivePage<'_>; 4]>::new();
            all.extend(pages.iter_mut().map(|page| &mut **page));
            all.push(child);
            env.log_and_apply(&mut all, record)?
        }
    };
    Ok(())
}

pub(crate) fn new_record<'a>(info: u8) -> Record<'a> {
    Record::new(Xid::INVALID, RmgrId::BTree, info, &[])
}

/// Finishes the split of a latched, marked page: adds its right sibling's downlink to the parent.
pub(crate) fn finish_split<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    path: &Path,
    mut page: ExclusivePage<'e>,
) -> EngineResult<ExclusivePage<'e>> {
    if env.wait() == Wait::Never {
        return Err(EngineError::WouldBlock);
    }
    let block = page.block().get();
    let node = Node(page.bytes());
    let mut key = Vec::new();
    let (Some(tid), Some(right)) = (node.high_into(&mut key), node.right()) else {
        return Err(damaged(rel, block, "split page without a right sibling"));
    };
    insert_downlink(env, rel, path, &mut page, (&key, tid), right)?;
    if Node(page.bytes()).is_split_incomplete() {
        return Err(damaged(rel, block, "a finished split is still marked"));
    }
    Ok(page)
}

/// A page for a split (from the free list, or new at the file's end), and the vacuum cycle with
/// which to stamp both halves.
///
/// The page is latched before the cycle is read. A vacuum that starts later waits for that latch
/// when it comes to the page. A vacuum that started before is seen in the cycle (btree rule 10).
fn new_page<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
) -> EngineResult<(ExclusivePage<'e>, u32)> {
    let page = match take_free(env, rel)? {
        Some(page) => page,
        None => env.buffers().extend(rel, env.wait())?,
    };
    let meta = read_meta(env, rel)?;
    Ok((page, if mutant!("btree-split-without-stamp") { 0 } else { meta.active }))
}

fn read_meta<E: Env + ?Sized>(env: &E, rel: &RelHandle) -> EngineResult<Meta> {
    Ok(env.buffers().read(rel, BlockNumber(META), env.wait(), |view| Meta::of(view))?)
}

/// Takes the first page off the list of free pages. If the split that takes it fails, the page is
/// in no list until the next vacuum finds it.
fn take_free<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
) -> EngineResult<Option<ExclusivePage<'e>>> {
    if read_meta(env, rel)?.free == 0 {
        return Ok(None);
    }
    let mut meta = latch(env, rel, META)?;
    let old = Meta::of(meta.bytes());
    if old.free == 0 {
        return Ok(None);
    }
    // The page is latched before it leaves the list: a vacuum that begins now must not find it
    // free, and list it, before the split uses it. A vacuum takes the latches in the other order
    // (page before meta page), so this code does not wait for the page's latch.
    let Ok(page) = pin(env, rel, old.free)?.try_into_exclusive() else { return Ok(None) };
    if !Node(page.bytes()).is_deleted() {
        return Err(damaged(rel, old.free, "in the list of free pages, but not deleted"));
    }
    let next = page.bytes().u32(NEXT_FREE);
    let data = Meta { free: next, ..old }.encode();
    let record = new_record(SET_META).block(meta.page_id(), ImageMode::IfNeeded, &data);
    env.log_and_apply(&mut [&mut meta], record)?;
    drop(meta);
    Ok(Some(page))
}

/// Cuts the page's entries in two: with the new one, which is then returned, or without it. The
/// latter is for an inner page with no other place to cut (btree rule 16).
fn cut_page<'i>(
    page: &ExclusivePage<'_>,
    rel: &RelHandle,
    new: New<'i>,
    right: u32,
    cycle: u32,
) -> EngineResult<(Cut, Option<New<'i>>)> {
    let mut items = Items::of(page.bytes());
    let frame = Frame { cycle, ..Frame::of(page.bytes()) };
    items.insert(new.0, new.1);
    if let Some(cut) = cut(&items, &frame, new.0, right) {
        return Ok((cut, Some(new)));
    }
    items.retain(|index| index != new.0);
    let may_make_room = !frame.is_leaf() && !mutant!("btree-inner-page-makes-no-room");
    let without = may_make_room.then(|| cut_near(&items, &frame, new.0, right)).flatten();
    let cut =
        without.ok_or_else(|| damaged(rel, page.block().get(), "no way to split the page"))?;
    Ok((cut, None))
}

fn split_page<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    path: &Path,
    mut page: ExclusivePage<'e>,
    new: New<'_>,
    child: Option<&mut ExclusivePage<'e>>,
) -> EngineResult<Added> {
    let (mut right, cycle) = new_page(env, rel)?;
    let right_block = right.block().get();
    let (cut, new) = cut_page(&page, rel, new, right_block, cycle)?;
    let (mut left_data, mut right_data) = (Vec::new(), Vec::with_capacity(PAGE_SIZE));
    let separator = (&cut.key[..], cut.tid);
    SplitData { new, at: cut.at, right: right_block, cycle, separator }.encode(&mut left_data);
    record::image(&mut right_data, &cut.right);
    let mut record = new_record(SPLIT).block(right.page_id(), ImageMode::Never, &right_data).block(
        page.page_id(),
        ImageMode::IfNeeded,
        &left_data,
    );
    let child = child.filter(|_| new.is_some());
    let mut halves = [&mut right, &mut page];
    if mutant!("btree-link-before-page") {
        record.blocks.swap(0, 1);
        halves.swap(0, 1);
    }
    log_with_child(env, &mut halves, record, child)?;
    drop(right);
    match insert_downlink(env, rel, path, &mut page, separator, right_block) {
        // The entry is in the tree. The downlink can't be added now, but the next writer may be
        // able to add it.
        Err(error) if new.is_some() && is_passing(&error) => {
            tracing::debug!(%error, block = page.block().get(), "split left incomplete");
        }
        other => other?,
    }
    Ok(added(new))
}

fn added(new: Option<New<'_>>) -> Added {
    if new.is_some() { Added::Done } else { Added::MadeRoom }
}

/// Whether the same operation may succeed later.
fn is_passing(error: &EngineError) -> bool {
    match error {
        EngineError::WouldBlock | EngineError::Buffer(BufferError::NoUnpinnedBuffers { .. }) => {
            true
        }
        EngineError::Buffer(BufferError::Store(store)) => store.is_out_of_space(),
        _ => false,
    }
}

/// Moves the root's entries to two new pages; the root becomes their parent.
fn split_root<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    mut root: ExclusivePage<'e>,
    new: New<'_>,
    child: Option<&mut ExclusivePage<'e>>,
) -> EngineResult<Added> {
    let level = level_above(rel, &root)?;
    let (mut left, _) = new_page(env, rel)?;
    let (mut right, cycle) = new_page(env, rel)?;
    let (left_block, right_block) = (left.block().get(), right.block().get());
    let (mut cut, new) = cut_page(&root, rel, new, right_block, cycle)?;
    // The same record gives both halves their downlinks.
    let flags = cut.left.u16(super::page::layout::FLAGS) & !FLAG_INCOMPLETE_SPLIT;
    cut.left[super::page::layout::FLAGS..][..2].copy_from_slice(&flags.to_le_bytes());
    let (mut root_data, mut left_data, mut right_data) = (Vec::new(), Vec::new(), Vec::new());
    record::root_data(&mut root_data, level, left_block, right_block, (&cut.key, cut.tid));
    record::image(&mut left_data, &cut.left);
    record::image(&mut right_data, &cut.right);
    let record = new_record(ROOT_SPLIT)
        .block(left.page_id(), ImageMode::Never, &left_data)
        .block(right.page_id(), ImageMode::Never, &right_data)
        .block(root.page_id(), ImageMode::Never, &root_data);
    let child = child.filter(|_| new.is_some());
    log_with_child(env, &mut [&mut left, &mut right, &mut root], record, child)?;
    Ok(added(new))
}

fn level_above(rel: &RelHandle, page: &ExclusivePage<'_>) -> EngineResult<u16> {
    let above = Node(page.bytes()).level().checked_add(1);
    above.ok_or_else(|| damaged(rel, page.block().get(), "there is no level above its own"))
}

/// Adds the downlink of `page`'s right half to its parent, which removes the mark from `page`.
fn insert_downlink<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    path: &Path,
    page: &mut ExclusivePage<'e>,
    separator: (&[u8], u64),
    right: u32,
) -> EngineResult<()> {
    let (level, block) = (level_above(rel, page)?, page.block().get());
    let target = Target { key: separator.0, tid: separator.1 };
    let item = Item { key: separator.0, tid: separator.1, child: right };
    loop {
        let parent = latch_parent(env, rel, path, target, level, block)?;
        let node = Node(parent.bytes());
        let slot = node.child_slot(target);
        if node.child(slot) != block {
            let what = format!("has no downlink to block {block}, whose split is to be completed");
            return Err(damaged(rel, parent.block().get(), &what));
        }
        // Each round leaves the parent with fewer entries, unless others add some meanwhile. With
        // three entries there is always a place to cut (btree rule 16).
        if add(env, rel, path, parent, slot + 1, item, Some(&mut *page))? == Added::Done {
            return Ok(());
        }
    }
}

fn is_of_level<P: PageRead + ?Sized>(node: Node<'_, P>, level: u16) -> bool {
    node.is_node() && node.level() == level
}

/// Latches the page of a level that a separator belongs to, starting from the block in `path`. The
/// caller holds the latch of block `child`.
fn latch_parent<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    path: &Path,
    target: Target<'_>,
    level: u16,
    child: u32,
) -> EngineResult<ExclusivePage<'e>> {
    let mut steps = Steps::new(rel);
    let mut block = path.get(usize::from(level)).copied().unwrap_or(0);
    loop {
        if block == 0 {
            // The search starts from the block in the path, not from the page found: that page may
            // lack a downlink, because its left sibling's split is incomplete.
            let mut path = Path::new();
            let found = find_page(env, rel, target, level, &mut path)?;
            block = path.get(usize::from(level)).copied().unwrap_or(found);
        }
        steps.take(rel, block)?;
        if block == child && !mutant!("btree-child-latched-as-parent") {
            return Err(damaged(
                rel,
                block,
                "links lead to it as a page of the level above its own",
            ));
        }
        let page = latch_above(env, rel, block, level)?;
        let Some(page) = page.filter(|page| is_of_level(Node(page.bytes()), level)) else {
            // The root has grown since, or the page has left the tree.
            block = 0;
            continue;
        };
        let node = Node(page.bytes());
        if node.is_split_incomplete() {
            drop(finish_split(env, rel, path, page)?);
            continue;
        }
        match right_of(node, target, Side::At) {
            None => return Ok(page),
            Some(right) => block = right,
        }
    }
}
