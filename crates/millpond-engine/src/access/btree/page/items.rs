//! A page's entries taken apart, and pages built from entries.
//!
//! A page is either changed in place (one slot shifted in, one body added) or built anew from its
//! entries. Building chooses the prefix, packs the bodies and leaves no garbage, so a page's bytes
//! never need a vacuum. Both results depend on the entries alone, so redo gets the same bytes
//! (btree rule 5).

use std::ops::Range;

use millpond_buffer::PAGE_SIZE;

use super::PageRead;
use super::form::{Form, put_body};
use super::item::Item;
use super::layout::{
    BODY_HEADER_BYTES, BODY_START, COUNT, CYCLE, FLAG_LEAF, FLAG_NARROW, FLAGS, HIGH_AT, KIND,
    LEVEL, MAX_SLOT_BYTES, PAGE_KIND, PREFIX_AT, PREFIX_HEAD, PREFIX_LEN, RIGHT, SLOTS, TID_BYTES,
    WIDE_HEAD_BYTES, head_of, prefix_mask,
};
use super::narrow::{Narrow, NarrowCost};
use super::node::{Node, bytes_for_high};
use super::wide::Wide;

/// What a page has in addition to its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Without NARROW, which follows from the entries.
    pub(crate) flags: u16,
    pub(crate) level: u16,
    /// Zero: none.
    pub(crate) right: u32,
    pub(crate) cycle: u32,
    /// `None`: nothing bounds the page to the right.
    pub(crate) high: Option<(Vec<u8>, u64)>,
}

impl Frame {
    pub(crate) fn of<P: PageRead + ?Sized>(page: &P) -> Self {
        let node = Node(page);
        let mut key = Vec::new();
        let high = node.high_into(&mut key).map(|tid| (key, tid));
        Self {
            flags: page.u16(FLAGS) & !FLAG_NARROW,
            level: node.level(),
            right: node.right().unwrap_or(0),
            cycle: node.cycle(),
            high,
        }
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.flags & FLAG_LEAF != 0
    }

    fn high_bytes(&self) -> usize {
        self.high.as_ref().map_or(0, |(key, _)| BODY_HEADER_BYTES + TID_BYTES + key.len())
    }
}

#[derive(Clone, Copy)]
struct ItemRef {
    start: u32,
    len: u16,
    child: u32,
    tid: u64,
}

/// Entries in order, with their whole keys, in their own memory.
#[derive(Clone, Default)]
pub(crate) struct Items {
    keys: Vec<u8>,
    refs: Vec<ItemRef>,
}

impl Items {
    /// All entries of a page.
    pub(crate) fn of<P: PageRead + ?Sized>(page: &P) -> Self {
        let node = Node(page);
        let leaf = node.is_leaf();
        let mut items = Self {
            keys: Vec::with_capacity(PAGE_SIZE),
            refs: Vec::with_capacity(node.count() + 1),
        };
        for index in 0..node.count() {
            let start = items.keys.len();
            let tid = node.key_into(index, &mut items.keys);
            let child = if leaf { 0 } else { node.child(index) };
            items.note(items.refs.len(), start, tid, child);
        }
        items
    }

    fn note(&mut self, index: usize, start: usize, tid: u64, child: u32) {
        let len = (self.keys.len() - start) as u16;
        self.refs.insert(index, ItemRef { start: start as u32, len, child, tid });
    }

    /// Adds an entry before the one at `index`.
    pub(crate) fn insert(&mut self, index: usize, item: Item<'_>) {
        let start = self.keys.len();
        self.keys.extend_from_slice(item.key);
        self.note(index, start, item.tid, item.child);
    }

    pub(crate) fn push(&mut self, item: Item<'_>) {
        self.insert(self.refs.len(), item);
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.refs.clear();
    }

    /// Keeps the entries for whose index `keep` holds.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut index = 0;
        self.refs.retain(|_| {
            index += 1;
            keep(index - 1)
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.refs.len()
    }

    pub(crate) fn get(&self, index: usize) -> Item<'_> {
        let item = self.refs[index];
        let start = item.start as usize;
        Item {
            key: &self.keys[start..start + usize::from(item.len)],
            tid: item.tid,
            child: item.child,
        }
    }

    fn range(&self, range: Range<usize>) -> impl Iterator<Item = Item<'_>> {
        range.map(|index| self.get(index))
    }

    /// Length of the prefix that a wide page of these entries uses: zero if all keys fit their
    /// slots.
    fn wide_prefix(&self, range: Range<usize>) -> usize {
        if range.len() < 2
            || self.range(range.clone()).all(|item| item.key.len() <= WIDE_HEAD_BYTES)
        {
            return 0;
        }
        common_prefix(self.get(range.start).key, self.get(range.end - 1).key)
    }

    /// What the entries in `range` take in the narrow form. `None` if they are too many, or fewer
    /// than two, which are not worth the prefix.
    fn narrow_cost(&self, range: Range<usize>) -> Option<NarrowCost> {
        if range.len() < 2 || range.len() > Narrow::MAX_SLOTS {
            return None;
        }
        let common = common_prefix(self.get(range.start).key, self.get(range.end - 1).key);
        let mut cost = NarrowCost::new(common);
        self.range(range).for_each(|item| cost.add(&item));
        Some(cost)
    }

    /// Chooses how the entries in `range` lie on a page: in the form that takes less. `None` if
    /// they don't fit, or are not in order.
    pub(crate) fn plan(&self, frame: &Frame, range: Range<usize>) -> Option<Plan> {
        let (leaf, high) = (frame.is_leaf(), frame.high_bytes());
        let lowest = range.start < range.end && self.get(range.start).is_lowest(leaf);
        let with_prefix = range.start + usize::from(lowest)..range.end;
        let prefix = self.wide_prefix(with_prefix.clone());
        let bodies: usize =
            self.range(range.clone()).map(|item| Wide::body_bytes(&item, leaf, prefix)).sum();
        let others = |prefix| SLOTS + prefix + bytes_for_high(leaf, prefix, high);
        let bytes = others(prefix) + range.len() * Wide::SLOT_BYTES + bodies;
        let mut plan = Plan { narrow: false, prefix, bytes };
        if leaf && let Some(cost) = self.narrow_cost(range.clone()) {
            let (prefix, bytes) = cost.best(others);
            if bytes < plan.bytes {
                plan = Plan { narrow: true, prefix, bytes };
            }
        }
        if plan.bytes > PAGE_SIZE {
            return None;
        }
        // An empty prefix is not compared: a `memcmp` of zero bytes at a dangling address takes 90
        // ns in glibc with AVX-512. (A masked load that would fault costs the processor that much.)
        let prefix = &self.get_key(with_prefix.start)[..plan.prefix];
        let in_order =
            prefix.is_empty() || self.range(with_prefix).all(|item| item.key.starts_with(prefix));
        in_order.then_some(plan)
    }

    /// The key at an index; empty beyond the last.
    fn get_key(&self, index: usize) -> &[u8] {
        if index < self.len() { self.get(index).key } else { &[] }
    }

    /// Builds a page of the entries in `range`; `None` if they don't fit. The pool's bytes are 0.
    pub(crate) fn build(&self, frame: &Frame, range: Range<usize>) -> Option<Box<[u8; PAGE_SIZE]>> {
        let plan = self.plan(frame, range.clone())?;
        Some(self.write(frame, range, &plan))
    }

    /// Builds a page as planned.
    pub(crate) fn write(
        &self,
        frame: &Frame,
        range: Range<usize>,
        plan: &Plan,
    ) -> Box<[u8; PAGE_SIZE]> {
        let leaf = frame.is_leaf();
        let lowest = range.start < range.end && self.get(range.start).is_lowest(leaf);
        let prefix = &self.get_key(range.start + usize::from(lowest))[..plan.prefix];
        let mut page = Writer::new(frame, prefix, plan.narrow);
        page.u16(COUNT, range.len() as u16);
        for (slot, item) in self.range(range).enumerate() {
            if plan.narrow {
                page.item::<Narrow>(slot, &item, leaf, plan.prefix);
            } else {
                page.item::<Wide>(slot, &item, leaf, plan.prefix);
            }
        }
        let low = page.low as u16;
        page.u16(BODY_START, low);
        page.page
    }
}

/// How entries lie on a page.
pub(crate) struct Plan {
    narrow: bool,
    prefix: usize,
    /// What the page takes, including the room for a high key.
    bytes: usize,
}

/// Length of the longest common prefix.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

struct Writer {
    page: Box<[u8; PAGE_SIZE]>,
    low: usize,
    body: Vec<u8>,
}

impl Writer {
    /// A page without entries.
    fn new(frame: &Frame, prefix: &[u8], narrow: bool) -> Self {
        let mut page = Self { page: Box::new([0; PAGE_SIZE]), low: PAGE_SIZE, body: Vec::new() };
        page.u16(KIND, PAGE_KIND);
        page.u16(FLAGS, frame.flags & !FLAG_NARROW | if narrow { FLAG_NARROW } else { 0 });
        page.u32(RIGHT, frame.right);
        page.u16(LEVEL, frame.level);
        page.u32(CYCLE, frame.cycle);
        if let Some((key, tid)) = &frame.high {
            put_body(&mut page.body, key.len(), Some(*tid), key);
            let at = page.take_body();
            page.u16(HIGH_AT, at as u16);
        }
        if !prefix.is_empty() {
            page.body.extend_from_slice(prefix);
            let at = page.take_body();
            page.u16(PREFIX_AT, at as u16);
            page.u16(PREFIX_LEN, prefix.len() as u16);
        }
        if narrow {
            let head = head_of(prefix) & prefix_mask(prefix.len());
            page.page[PREFIX_HEAD..PREFIX_HEAD + 8].copy_from_slice(&head.to_le_bytes());
        }
        page
    }

    fn u16(&mut self, at: usize, value: u16) {
        self.page[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.page[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Puts the body built in `self.body` in front of the others and returns its offset.
    fn take_body(&mut self) -> usize {
        let end = self.low;
        self.low -= self.body.len();
        self.page[self.low..end].copy_from_slice(&self.body);
        self.body.clear();
        self.low
    }

    fn item<F: Form>(&mut self, slot: usize, item: &Item<'_>, leaf: bool, prefix: usize) {
        let body_at = self.low - F::body_bytes(item, leaf, prefix);
        let bytes = F::encode(item, leaf, prefix, body_at, &mut self.body);
        if !self.body.is_empty() {
            self.take_body();
        }
        let at = F::at(slot);
        self.page[at..at + F::SLOT_BYTES].copy_from_slice(&bytes[..F::SLOT_BYTES]);
    }
}

/// How an entry can be added to a page.
pub(crate) enum Insertion {
    /// Shift the slots from the index on, and write these bytes.
    InPlace(InPlace),
    /// The page must be built anew: its prefix or its form changes.
    Rebuilt(Box<[u8; PAGE_SIZE]>),
    /// There is no room.
    Full,
}

/// An entry ready to be added.
pub(crate) struct InPlace {
    slot: [u8; MAX_SLOT_BYTES],
    slot_bytes: usize,
    pub(crate) body: Vec<u8>,
    pub(crate) body_at: usize,
}

impl InPlace {
    fn new<F: Form>(item: &Item<'_>, leaf: bool, prefix: usize, body_at: usize) -> Self {
        let mut body = Vec::new();
        let slot = F::encode(item, leaf, prefix, body_at, &mut body);
        Self { slot, slot_bytes: F::SLOT_BYTES, body, body_at }
    }

    pub(crate) fn slot(&self) -> &[u8] {
        &self.slot[..self.slot_bytes]
    }
}

/// Plans the addition of an entry before slot `index`.
pub(crate) fn plan_insert(page: &[u8; PAGE_SIZE], index: usize, item: Item<'_>) -> Insertion {
    let node = Node(page);
    if let Some(body_at) = node.room_for(&item) {
        let (leaf, prefix) = (node.is_leaf(), usize::from(page.u16(PREFIX_LEN)));
        return Insertion::InPlace(if node.is_narrow() {
            InPlace::new::<Narrow>(&item, leaf, prefix, body_at)
        } else {
            InPlace::new::<Wide>(&item, leaf, prefix, body_at)
        });
    }
    let mut items = Items::of(page);
    items.insert(index.min(items.len()), item);
    match items.build(&Frame::of(page), 0..items.len()) {
        Some(page) => Insertion::Rebuilt(page),
        None => Insertion::Full,
    }
}
