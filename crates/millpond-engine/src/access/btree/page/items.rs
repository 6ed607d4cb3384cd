//! A page's entries taken apart, and pages built from entries.
//!
//! A page is either changed in place (one slot shifted in, one body added) or built anew from its entries. Building
//! chooses the prefix, packs the bodies and leaves no garbage, so a page never needs a vacuum of its own bytes.
//! Both are functions of the entries alone: redo comes to the same bytes (btree rule 5).

use millpond_buffer::PAGE_SIZE;

use super::PageRead;
use super::layout::{
    BODY_HAS_TID, BODY_HEADER_BYTES, BODY_START, COUNT, CYCLE, FLAG_LEAF, FLAGS, HEAD_BYTES,
    HIGH_AT, KIND, LEVEL, MAX_SLOTS, PAGE_KIND, PREFIX_AT, PREFIX_LEN, RIGHT, SLOT_BYTES, SLOTS,
    TID_BYTES, WHERE_LOWEST, head_of,
};
use super::node::Node;

/// An entry: of a leaf (key, row) or of an inner page (separator, child).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item<'a> {
    pub(crate) key: &'a [u8],
    /// Leaf: the row. Inner: the separator's tid, zero when the key alone separates.
    pub(crate) tid: u64,
    /// Inner: the child. Leaf: zero.
    pub(crate) child: u32,
}

impl Item<'_> {
    /// The entry before every key, of an inner page.
    fn is_lowest(&self, leaf: bool) -> bool {
        !leaf && self.key.is_empty() && self.tid == 0
    }

    /// Bytes of the item's body when the page's keys share a prefix of that length.
    fn body_bytes(&self, leaf: bool, prefix: usize) -> usize {
        if self.is_lowest(leaf) {
            return 0;
        }
        let rest = self.key.len().saturating_sub(prefix);
        let with_tid = !leaf && self.tid != 0;
        if rest <= HEAD_BYTES && !with_tid {
            return 0;
        }
        let tid = if with_tid { TID_BYTES } else { 0 };
        BODY_HEADER_BYTES + tid + rest.saturating_sub(HEAD_BYTES)
    }
}

/// What a page has besides its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
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
            flags: page.u16(FLAGS),
            level: node.level(),
            right: node.right().unwrap_or(0),
            cycle: node.cycle(),
            high,
        }
    }

    fn is_leaf(&self) -> bool {
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

/// Entries in order, with their whole keys, in memory of their own.
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
            let child = if leaf { 0 } else { node.slot(index).child() };
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

    fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Item<'_>> {
        range.map(|index| self.get(index))
    }

    /// The prefix that a page of these entries uses: none when every key fits its slot anyway.
    fn prefix(&self, range: std::ops::Range<usize>, leaf: bool) -> &[u8] {
        let lowest = range.start < range.end && self.get(range.start).is_lowest(leaf);
        let range = range.start + usize::from(lowest)..range.end;
        if range.len() < 2 || self.range(range.clone()).all(|item| item.key.len() <= HEAD_BYTES) {
            return &[];
        }
        let (first, last) = (self.get(range.start).key, self.get(range.end - 1).key);
        &first[..common_prefix(first, last)]
    }

    /// Builds a page of the entries in `range`; `None` if they don't fit. The pool's bytes are zero.
    pub(crate) fn build(
        &self,
        frame: &Frame,
        range: std::ops::Range<usize>,
    ) -> Option<Box<[u8; PAGE_SIZE]>> {
        if range.len() > MAX_SLOTS {
            return None;
        }
        let leaf = frame.is_leaf();
        let prefix = self.prefix(range.clone(), leaf);
        // Not asked where there is none: `memcmp` of no bytes, one side of which is at no address, takes glibc with AVX-512
        // 90 ns, for a masked load that would fault costs the processor that much.
        let mut keys = self.range(range.clone()).filter(|item| !item.is_lowest(leaf));
        if !prefix.is_empty() && !keys.all(|item| item.key.starts_with(prefix)) {
            return None; // Not in order: no page of a tree.
        }
        let bodies: usize =
            self.range(range.clone()).map(|item| item.body_bytes(leaf, prefix.len())).sum();
        let needed = SLOTS + range.len() * SLOT_BYTES + frame.high_bytes() + prefix.len() + bodies;
        if needed > PAGE_SIZE {
            return None;
        }
        let mut page = Writer { page: Box::new([0; PAGE_SIZE]), low: PAGE_SIZE };
        page.u16(KIND, PAGE_KIND);
        page.u16(FLAGS, frame.flags);
        page.u32(RIGHT, frame.right);
        page.u16(LEVEL, frame.level);
        page.u16(COUNT, range.len() as u16);
        page.u32(CYCLE, frame.cycle);
        if let Some((key, tid)) = &frame.high {
            let at = page.body(key.len(), Some(*tid), key);
            page.u16(HIGH_AT, at);
        }
        if !prefix.is_empty() {
            let at = page.bytes(prefix);
            page.u16(PREFIX_AT, at);
            page.u16(PREFIX_LEN, prefix.len() as u16);
        }
        for (slot, item) in self.range(range).enumerate() {
            page.item(slot, &item, leaf, prefix.len());
        }
        let low = page.low as u16;
        page.u16(BODY_START, low);
        Some(page.page)
    }
}

/// Length of the longest common prefix.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

struct Writer {
    page: Box<[u8; PAGE_SIZE]>,
    low: usize,
}

impl Writer {
    fn u16(&mut self, at: usize, value: u16) {
        self.page[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.page[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Puts bytes in front of the other bodies and returns where.
    fn bytes(&mut self, bytes: &[u8]) -> u16 {
        self.low -= bytes.len();
        self.page[self.low..self.low + bytes.len()].copy_from_slice(bytes);
        self.low as u16
    }

    fn body(&mut self, len: usize, tid: Option<u64>, bytes: &[u8]) -> u16 {
        self.bytes(bytes);
        let mut header = len as u16;
        if let Some(tid) = tid {
            self.bytes(&tid.to_be_bytes()[2..]);
            header |= BODY_HAS_TID;
        }
        self.bytes(&header.to_le_bytes())
    }

    fn item(&mut self, slot: usize, item: &Item<'_>, leaf: bool, prefix: usize) {
        let place = self.item_body(item, leaf, prefix);
        let bytes = slot_bytes(item, leaf, prefix, place);
        let at = SLOTS + slot * SLOT_BYTES;
        self.page[at..at + SLOT_BYTES].copy_from_slice(&bytes);
    }

    fn item_body(&mut self, item: &Item<'_>, leaf: bool, prefix: usize) -> u16 {
        if item.is_lowest(leaf) {
            return WHERE_LOWEST;
        }
        let rest = &item.key[prefix..];
        if item.body_bytes(leaf, prefix) == 0 {
            return rest.len() as u16;
        }
        let tid = (!leaf && item.tid != 0).then_some(item.tid);
        self.body(rest.len(), tid, rest.get(HEAD_BYTES..).unwrap_or(&[]))
    }
}

fn slot_bytes(item: &Item<'_>, leaf: bool, prefix: usize, place: u16) -> [u8; SLOT_BYTES] {
    let head = if place == WHERE_LOWEST { 0 } else { head_of(&item.key[prefix..]) };
    let value = if leaf {
        (item.tid >> 16 & 0xFFFF_FFFF) | (item.tid & 0xFFFF) << 32
    } else {
        u64::from(item.child)
    };
    let mut bytes = [0; SLOT_BYTES];
    bytes[..8].copy_from_slice(&head.to_le_bytes());
    bytes[8..].copy_from_slice(&(value | u64::from(place) << 48).to_le_bytes());
    bytes
}

/// How an entry can be added to a page.
pub(crate) enum Insertion {
    /// Shift the slots from the index on and put these bytes where they belong.
    InPlace { slot: [u8; SLOT_BYTES], body: Vec<u8>, body_at: usize },
    /// The page has to be built anew: its prefix changes.
    Rebuilt(Box<[u8; PAGE_SIZE]>),
    /// There is no room.
    Full,
}

/// Plans the addition of an entry before slot `index`.
pub(crate) fn plan_insert(page: &[u8; PAGE_SIZE], index: usize, item: Item<'_>) -> Insertion {
    let node = Node(page);
    let leaf = node.is_leaf();
    let prefix_at = usize::from(page.u16(PREFIX_AT));
    let prefix = usize::from(page.u16(PREFIX_LEN));
    let same =
        page.get(prefix_at..prefix_at + prefix).is_some_and(|prefix| item.key.starts_with(prefix));
    if same || item.is_lowest(leaf) {
        let bytes = item.body_bytes(leaf, prefix);
        let low = usize::from(page.u16(BODY_START)).min(PAGE_SIZE);
        let end = SLOTS + (node.count() + 1) * SLOT_BYTES;
        if end + bytes <= low && node.count() < MAX_SLOTS {
            return in_place(&item, leaf, prefix, low - bytes, bytes);
        }
        return Insertion::Full;
    }
    let mut items = Items::of(page);
    items.insert(index.min(items.len()), item);
    match items.build(&Frame::of(page), 0..items.len()) {
        Some(page) => Insertion::Rebuilt(page),
        None => Insertion::Full,
    }
}

fn in_place(item: &Item<'_>, leaf: bool, prefix: usize, body_at: usize, bytes: usize) -> Insertion {
    let mut body = Vec::with_capacity(bytes);
    let mut place = (item.key.len().saturating_sub(prefix)) as u16;
    if item.is_lowest(leaf) {
        place = WHERE_LOWEST;
    } else if bytes != 0 {
        let rest = &item.key[prefix..];
        let with_tid = !leaf && item.tid != 0;
        let flag = if with_tid { BODY_HAS_TID } else { 0 };
        body.extend_from_slice(&(rest.len() as u16 | flag).to_le_bytes());
        if with_tid {
            body.extend_from_slice(&item.tid.to_be_bytes()[2..]);
        }
        body.extend_from_slice(rest.get(HEAD_BYTES..).unwrap_or(&[]));
        place = body_at as u16;
    }
    Insertion::InPlace { slot: slot_bytes(item, leaf, prefix, place), body, body_at }
}
