//! The log records of the B+tree, and what they do to pages.
//!
//! - `INSERT` (blocks 0: page; 1, inner only: child): adds an entry; the child's split is complete.
//! - `SPLIT` (0: right, new; 1: left; 2, inner only: child): cuts a page, with the new entry if
//!   there is one.
//! - `ROOT_SPLIT` (0: left, new; 1: right, new; 2: root; 3, inner only: child): the root grows by a
//!   level.
//! - `PAGES` (any number, all new): pages written as a whole.
//! - `REMOVE` (0: page): removes entries.
//! - `SET_META` (0: meta page): a vacuum begins or ends, or a split takes a free page.
//! - `UNLINK` (0: left sibling; 1: parent; 2: page): an empty leaf leaves the tree; its left
//!   sibling takes its range.
//! - `FREE` (0: page; 1: meta page): a page outside the tree goes to the list of free pages.
//!
//! A split without a new entry (btree rule 16) has no child.
//!
//! Blocks are changed and published in this order, so a new page has its entries before any link
//! leads to it. The redo functions are the only code that changes B+tree pages, in normal operation
//! and in recovery (wal rule 1).

mod leaving;

#[cfg(feature = "fuzzing")]
pub(crate) use leaving::deleted;
pub(crate) use leaving::{Meta, absorb_data, absorbed, delete_data, deleted_at};

use millpond_buffer::PAGE_SIZE;
use millpond_sync::mutant;

use super::page::item::Item;
use super::page::items::{Frame, Insertion, Items, plan_insert};
use super::page::layout::{
    BODY_START, COUNT, FLAG_INCOMPLETE_SPLIT, FLAG_LEAF, FLAGS, KIND, SLOTS,
};
use super::page::node::Node;
use super::page::{PageRead, split};
use crate::wal::record::Reader;
use crate::wal::{PageEdit, RedoError, RmgrRedo};

pub(crate) const INSERT: u8 = 1;
pub(crate) const SPLIT: u8 = 2;
pub(crate) const ROOT_SPLIT: u8 = 3;
pub(crate) const PAGES: u8 = 4;
pub(crate) const REMOVE: u8 = 5;
pub(crate) const SET_META: u8 = 6;
pub(crate) const UNLINK: u8 = 7;
pub(crate) const FREE: u8 = 8;

/// Redo of the B+tree's records.
pub struct BTreeRedo;

impl RmgrRedo for BTreeRedo {
    fn redo(
        &self,
        info: u8,
        block_index: usize,
        data: &[u8],
        _payload: &[u8],
        page: &mut PageEdit<'_>,
    ) -> Result<(), RedoError> {
        let block_index = match (info, block_index) {
            (SPLIT, 0 | 1) if mutant!("btree-link-before-page") => 1 - block_index,
            _ => block_index,
        };
        match (info, block_index) {
            (INSERT, 0) => insert(data, page),
            (SPLIT, 1) => cut_left(data, page),
            (ROOT_SPLIT, 2) => grow_root(data, page),
            (SPLIT, 0) | (ROOT_SPLIT, 0 | 1) | (PAGES, _) => restore(data, page),
            (INSERT, 1) | (SPLIT, 2) | (ROOT_SPLIT, 3) => complete_split(page),
            (REMOVE, 0) => remove(data, page),
            (SET_META, 0) => leaving::set_meta(data, page),
            (UNLINK, 0) => leaving::absorb(data, page),
            (UNLINK, 1) => remove(data, page),
            (UNLINK, 2) => leaving::delete(data, page),
            (FREE, 0) => leaving::free(data, page),
            (FREE, 1) => leaving::set_free(data, page),
            _ => Err(unfit(page, "unknown kind of record")),
        }
    }
}

fn unfit(page: &PageEdit<'_>, what: &str) -> RedoError {
    RedoError::new(format!("B+tree, {}: {what}", page.page_id()))
}

/// Writes a built page, except for the pool's bytes at its start, which the caller sets.
fn replace(edit: &mut PageEdit<'_>, page: &[u8; PAGE_SIZE]) {
    let mut new = *page;
    new[..KIND].copy_from_slice(&edit.bytes()[..KIND]);
    edit.write_page(&new);
}

fn put_item(out: &mut Vec<u8>, index: usize, item: &Item<'_>) {
    out.extend_from_slice(&(index as u16).to_le_bytes());
    out.extend_from_slice(&item.child.to_le_bytes());
    out.extend_from_slice(&item.tid.to_le_bytes());
}

fn read_item<'a>(reader: &mut Reader<'a>, key: &'a [u8]) -> Option<(usize, Item<'a>)> {
    let index = usize::from(reader.u16()?);
    let child = reader.u32()?;
    let tid = reader.u64()?;
    Some((index, Item { key, tid, child }))
}

/// Data of [`INSERT`], block 0.
pub(crate) fn insert_data(out: &mut Vec<u8>, index: usize, item: &Item<'_>) {
    out.clear();
    put_item(out, index, item);
    out.extend_from_slice(item.key);
}

fn insert(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    let mut reader = Reader(data);
    let (index, item) = data
        .get(14..)
        .and_then(|key| read_item(&mut reader, key))
        .ok_or_else(|| unfit(page, "insert record is too short"))?;
    apply_insert(page, index, item)
}

fn apply_insert(page: &mut PageEdit<'_>, index: usize, item: Item<'_>) -> Result<(), RedoError> {
    let count = Node(page.bytes()).count();
    if index > count {
        return Err(unfit(page, "insert beyond the last slot"));
    }
    match plan_insert(page.bytes(), index, item) {
        Insertion::InPlace(new) => {
            let slot_bytes = new.slot().len();
            let (from, to) = (SLOTS + index * slot_bytes, SLOTS + count * slot_bytes);
            let mut slots = [0; PAGE_SIZE];
            slots[..slot_bytes].copy_from_slice(new.slot());
            let bytes = slot_bytes + to - from;
            slots[slot_bytes..bytes].copy_from_slice(&page.bytes()[from..to]);
            page.write(from, &slots[..bytes])?;
            if !new.body.is_empty() {
                page.write(new.body_at, &new.body)?;
                page.write(BODY_START, &(new.body_at as u16).to_le_bytes())?;
            }
            page.write(COUNT, &(count as u16 + 1).to_le_bytes())
        }
        Insertion::Rebuilt(new) => {
            replace(page, &new);
            Ok(())
        }
        Insertion::Full => Err(unfit(page, "no room for the entry")),
    }
}

/// The slot index in a split record without a new entry: more than a page can have.
const NO_ENTRY: usize = 0xFFFF;

/// What [`SPLIT`] says about the left page.
pub(crate) struct SplitData<'a> {
    /// The new entry and its index among the old ones; `None` if an inner page is cut to make room.
    pub(crate) new: Option<(usize, Item<'a>)>,
    /// How many entries stay left, counting the new one.
    pub(crate) at: usize,
    pub(crate) right: u32,
    pub(crate) cycle: u32,
    pub(crate) separator: (&'a [u8], u64),
}

impl<'a> SplitData<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (index, item) = self.new.unwrap_or((NO_ENTRY, Item { key: &[], tid: 0, child: 0 }));
        out.clear();
        out.extend_from_slice(&(item.key.len() as u16).to_le_bytes());
        put_item(out, index, &item);
        out.extend_from_slice(&(self.at as u16).to_le_bytes());
        out.extend_from_slice(&self.right.to_le_bytes());
        out.extend_from_slice(&self.cycle.to_le_bytes());
        out.extend_from_slice(&self.separator.1.to_le_bytes());
        out.extend_from_slice(item.key);
        out.extend_from_slice(self.separator.0);
    }

    fn decode(data: &'a [u8]) -> Option<Self> {
        const FIXED: usize = 2 + 14 + 2 + 4 + 4 + 8;
        let mut reader = Reader(data);
        let key_len = usize::from(reader.u16()?);
        let (key, separator) = data.get(FIXED..)?.split_at_checked(key_len)?;
        let new = Some(read_item(&mut reader, key)?).filter(|&(index, _)| index != NO_ENTRY);
        let at = usize::from(reader.u16()?);
        let right = reader.u32()?;
        let cycle = reader.u32()?;
        Some(Self { new, at, right, cycle, separator: (separator, reader.u64()?) })
    }
}

fn cut_left(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    let Some(split) = SplitData::decode(data) else {
        return Err(unfit(page, "split record is too short"));
    };
    let mut items = Items::of(page.bytes());
    if let Some((index, item)) = split.new {
        if index > items.len() {
            return Err(unfit(page, "split beyond the last slot"));
        }
        items.insert(index, item);
    }
    if split.at > items.len() {
        return Err(unfit(page, "split beyond the last slot"));
    }
    let frame = Frame { cycle: split.cycle, ..Frame::of(page.bytes()) };
    let (key, tid) = split.separator;
    match split::left_half(&items, &frame, split.at, split.right, key, tid) {
        Some(new) => {
            replace(page, &new);
            Ok(())
        }
        None => Err(unfit(page, "the left half of a split has no room")),
    }
}

/// Data of [`ROOT_SPLIT`], block 2: the new root's level, its two children and their separator.
pub(crate) fn root_data(
    out: &mut Vec<u8>,
    level: u16,
    left: u32,
    right: u32,
    separator: (&[u8], u64),
) {
    out.clear();
    out.extend_from_slice(&level.to_le_bytes());
    out.extend_from_slice(&left.to_le_bytes());
    out.extend_from_slice(&right.to_le_bytes());
    out.extend_from_slice(&separator.1.to_le_bytes());
    out.extend_from_slice(separator.0);
}

fn grow_root(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    let built = decode_root(data);
    let Some(new) = built else { return Err(unfit(page, "the new root cannot be built")) };
    replace(page, &new);
    Ok(())
}

fn decode_root(data: &[u8]) -> Option<Box<[u8; PAGE_SIZE]>> {
    let mut reader = Reader(data);
    let (level, left, right, tid) = (reader.u16()?, reader.u32()?, reader.u32()?, reader.u64()?);
    let mut items = Items::default();
    items.push(Item { key: &[], tid: 0, child: left });
    items.push(Item { key: reader.0, tid, child: right });
    items.build(&Frame { flags: 0, level, right: 0, cycle: 0, high: None }, 0..2)
}

/// A page without the pool's bytes and without its free middle.
pub(crate) fn image(out: &mut Vec<u8>, page: &[u8; PAGE_SIZE]) {
    let (end, low) = used(page);
    out.extend_from_slice(&page[KIND..end]);
    out.extend_from_slice(&page[low..]);
}

/// Where the slots end and where the bodies begin.
fn used(page: &[u8; PAGE_SIZE]) -> (usize, usize) {
    let end = SLOTS + Node(page).count() * Node(page).slot_bytes();
    let low = usize::from(page.u16(BODY_START)).clamp(end, PAGE_SIZE);
    (end, low)
}

fn restore(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    let mut new = [0; PAGE_SIZE];
    let Some(header) = data.get(..SLOTS - KIND) else {
        return Err(unfit(page, "page image is too short"));
    };
    new[KIND..SLOTS].copy_from_slice(header);
    let (end, low) = used(&new);
    let (head, tail) = data.split_at_checked(end - KIND).unwrap_or((data, &[]));
    if head.len() != end - KIND || tail.len() != PAGE_SIZE - low {
        return Err(unfit(page, "page image has the wrong length"));
    }
    new[KIND..end].copy_from_slice(head);
    new[low..].copy_from_slice(tail);
    replace(page, &new);
    Ok(())
}

fn complete_split(page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    let flags = page.bytes().u16(FLAGS) & !FLAG_INCOMPLETE_SPLIT;
    page.write(FLAGS, &flags.to_le_bytes())
}

/// Data of [`REMOVE`]: the slots to remove, ascending.
pub(crate) fn remove_data(out: &mut Vec<u8>, slots: &[u16]) {
    out.clear();
    for slot in slots {
        out.extend_from_slice(&slot.to_le_bytes());
    }
}

fn remove(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    let mut gone = data
        .chunks_exact(2)
        .map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
        .peekable();
    let mut items = Items::of(page.bytes());
    items.retain(|index| gone.next_if_eq(&index).is_none());
    if gone.peek().is_some() {
        return Err(unfit(page, "removal of slots that are not there"));
    }
    let Some(new) = items.build(&Frame::of(page.bytes()), 0..items.len()) else {
        return Err(unfit(page, "the page got larger by a removal"));
    };
    replace(page, &new);
    Ok(())
}

/// An empty leaf that is the whole tree: the root of a new index.
pub(crate) fn empty_root() -> Option<Box<[u8; PAGE_SIZE]>> {
    Items::default()
        .build(&Frame { flags: FLAG_LEAF, level: 0, right: 0, cycle: 0, high: None }, 0..0)
}
