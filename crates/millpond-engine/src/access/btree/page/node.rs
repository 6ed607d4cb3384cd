//! Reading and searching a page, also one whose bytes change meanwhile.
//!
//! Every number read from the page is used only to compute further offsets (which [`PageRead`] checks) and loop
//! bounds (which are clamped here), so torn bytes give a meaningless answer but no panic and no endless loop. The
//! caller throws a meaningless answer away when validation fails (btree rule 2).

use std::cmp::Ordering;

use millpond_buffer::PAGE_SIZE;

use super::PageRead;
use super::layout::{
    BODY_HAS_TID, BODY_HEADER_BYTES, BODY_START, COUNT, CYCLE, FLAG_DELETED, FLAG_INCOMPLETE_SPLIT,
    FLAG_LEAF, FLAG_META, FLAGS, HEAD_BYTES, HIGH_AT, KIND, LEVEL, MAX_SLOTS, PAGE_KIND, PREFIX_AT,
    PREFIX_LEN, RIGHT, SLOT_BYTES, SLOTS, TID_BYTES, WHERE_LOWEST, head_of,
};

/// A place in the order of a tree: a key and a tid, of which zero is before every row and `u64::MAX` after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) tid: u64,
}

impl<'k> Target<'k> {
    /// Before the first entry of this key.
    #[inline]
    pub(crate) fn first(key: &'k [u8]) -> Self {
        Self { key, tid: 0 }
    }

    /// After the last entry of this key.
    #[inline]
    pub(crate) fn last(key: &'k [u8]) -> Self {
        Self { key, tid: u64::MAX }
    }
}

/// A slot as it lies on the page.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) head: u64,
    word: u64,
}

impl Slot {
    /// The row of a leaf's entry.
    #[inline(always)]
    pub(crate) fn tid(self) -> u64 {
        (self.word & 0xFFFF_FFFF) << 16 | (self.word >> 32 & 0xFFFF)
    }

    /// The child of an inner page's entry.
    #[inline(always)]
    pub(crate) fn child(self) -> u32 {
        self.word as u32
    }

    #[inline(always)]
    fn place(self) -> u16 {
        (self.word >> 48) as u16
    }
}

/// The part of an entry's key that is not in its slot.
#[derive(Clone, Copy)]
struct Rest {
    /// Bytes of the key after the prefix.
    len: usize,
    tid: u64,
    /// Where the bytes after prefix and head begin.
    at: usize,
}

/// A page, for reading.
pub(crate) struct Node<'p, P: PageRead + ?Sized>(pub(crate) &'p P);

impl<P: PageRead + ?Sized> Clone for Node<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: PageRead + ?Sized> Copy for Node<'_, P> {}

impl<P: PageRead + ?Sized> Node<'_, P> {
    #[inline]
    fn flags(self) -> u16 {
        self.0.u16(FLAGS)
    }

    /// Whether this is a B+tree page at all, and a node of the tree.
    #[inline]
    pub(crate) fn is_node(self) -> bool {
        self.0.u16(KIND) == PAGE_KIND && self.flags() & (FLAG_META | FLAG_DELETED) == 0
    }

    pub(crate) fn is_deleted(self) -> bool {
        self.0.u16(KIND) == PAGE_KIND && self.flags() & FLAG_DELETED != 0
    }

    pub(crate) fn is_meta(self) -> bool {
        self.0.u16(KIND) == PAGE_KIND && self.flags() & FLAG_META != 0
    }

    /// A page that was added to the file and never used.
    pub(crate) fn is_new(self) -> bool {
        self.0.u16(KIND) == 0
    }

    #[inline]
    pub(crate) fn is_leaf(self) -> bool {
        self.flags() & FLAG_LEAF != 0
    }

    #[inline]
    pub(crate) fn is_split_incomplete(self) -> bool {
        self.flags() & FLAG_INCOMPLETE_SPLIT != 0
    }

    /// The right sibling.
    #[inline]
    pub(crate) fn right(self) -> Option<u32> {
        Some(self.0.u32(RIGHT)).filter(|&block| block != 0)
    }

    #[inline]
    pub(crate) fn level(self) -> u16 {
        self.0.u16(LEVEL)
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        usize::from(self.0.u16(COUNT)).min(MAX_SLOTS)
    }

    pub(crate) fn cycle(self) -> u32 {
        self.0.u32(CYCLE)
    }

    #[inline(always)]
    pub(crate) fn slot(self, index: usize) -> Slot {
        let at = SLOTS + index * SLOT_BYTES;
        Slot { head: self.0.u64(at), word: self.0.u64(at + 8) }
    }

    #[inline(always)]
    fn head(self, index: usize) -> u64 {
        self.0.u64(SLOTS + index * SLOT_BYTES)
    }

    #[inline]
    fn rest(self, slot: Slot) -> Rest {
        let at = slot.place();
        if at <= WHERE_LOWEST {
            let len = if at == WHERE_LOWEST { 0 } else { usize::from(at) };
            return Rest { len, tid: 0, at: 0 };
        }
        self.body(usize::from(at))
    }

    fn body(self, at: usize) -> Rest {
        let header = self.0.u16(at);
        let at = at + BODY_HEADER_BYTES;
        let len = usize::from(header & !BODY_HAS_TID);
        if header & BODY_HAS_TID == 0 {
            return Rest { len, tid: 0, at };
        }
        let mut tid = [0; 8];
        self.0.copy(at, &mut tid[2..]);
        Rest { len, tid: u64::from_be_bytes(tid), at: at + TID_BYTES }
    }

    /// The bytes of a slot's body, if it has one.
    pub(crate) fn body_range(self, index: usize) -> Option<(usize, usize)> {
        let slot = self.slot(index);
        if slot.place() <= WHERE_LOWEST {
            return None;
        }
        let rest = self.rest(slot);
        Some((usize::from(slot.place()), rest.at + rest.len.saturating_sub(HEAD_BYTES)))
    }

    fn prefix_len(self) -> usize {
        usize::from(self.0.u16(PREFIX_LEN))
    }

    /// Appends the key of a slot and returns the tid that belongs to its place in the order: a leaf entry's
    /// row, or the tid of a separator.
    pub(crate) fn key_into(self, index: usize, key: &mut Vec<u8>) -> u64 {
        let slot = self.slot(index);
        if slot.place() == WHERE_LOWEST {
            return 0;
        }
        let rest = self.rest(slot);
        self.append(usize::from(self.0.u16(PREFIX_AT)), self.prefix_len(), key);
        key.extend_from_slice(&slot.head.to_be_bytes()[..rest.len.min(HEAD_BYTES)]);
        self.append(rest.at, rest.len.saturating_sub(HEAD_BYTES), key);
        if self.is_leaf() { slot.tid() } else { rest.tid }
    }

    /// Appends the high key and returns its tid; `None`, and nothing appended, if nothing bounds the page.
    pub(crate) fn high_into(self, key: &mut Vec<u8>) -> Option<u64> {
        let at = usize::from(self.0.u16(HIGH_AT));
        if at == 0 {
            return None;
        }
        let high = self.body(at);
        self.append(high.at, high.len, key);
        Some(high.tid)
    }

    fn append(self, at: usize, len: usize, key: &mut Vec<u8>) {
        let start = key.len();
        key.resize(start + len.min(PAGE_SIZE), 0);
        self.0.copy(at, &mut key[start..]);
    }

    /// Whether the target belongs further right: at or after the high key.
    #[inline]
    pub(crate) fn is_beyond(self, target: Target<'_>) -> bool {
        self.compare_high(target).is_some_and(Ordering::is_le)
    }

    /// How the high key compares with a target; `None` if nothing bounds the page.
    pub(crate) fn compare_high(self, target: Target<'_>) -> Option<Ordering> {
        let at = usize::from(self.0.u16(HIGH_AT));
        if at == 0 {
            return None;
        }
        let high = self.body(at);
        Some(self.0.compare(high.at, high.len, target.key).then(high.tid.cmp(&target.tid)))
    }

    /// The first slot of a leaf that is not before the target; `count` if all are.
    #[inline]
    pub(crate) fn lower_bound(self, target: Target<'_>) -> usize {
        self.partition(0, target, Ordering::is_lt)
    }

    /// The slot of an inner page whose child the target belongs to.
    #[inline]
    pub(crate) fn child_slot(self, target: Target<'_>) -> usize {
        // The first entry is not looked at: what comes here is not before it.
        self.partition(1, target, Ordering::is_le) - 1
    }

    /// The slot of an inner page whose child holds what comes last before the target.
    pub(crate) fn child_slot_before(self, target: Target<'_>) -> usize {
        self.partition(1, target, Ordering::is_lt) - 1
    }

    /// The first slot from `from` on for whose comparison with the target `before` no longer holds.
    #[inline(always)]
    fn partition(self, from: usize, target: Target<'_>, before: fn(Ordering) -> bool) -> usize {
        let count = self.count().max(from);
        let prefix = self.prefix_len();
        let mut suffix = target.key;
        if prefix != 0 {
            let of_key = &target.key[..prefix.min(target.key.len())];
            match self.0.compare(usize::from(self.0.u16(PREFIX_AT)), prefix, of_key) {
                Ordering::Less => return count,
                Ordering::Greater => return from,
                Ordering::Equal => suffix = &target.key[of_key.len()..],
            }
        }
        let head = head_of(suffix);
        let mut low = self.head_partition(from, count, head);
        // From here on heads are equal or greater. Mostly one look decides.
        let mut high = count;
        let mut probe = low;
        while low < high {
            let slot = self.slot(probe);
            let keep = slot.head == head && before(self.compare_rest(slot, suffix, target.tid));
            if keep {
                low = probe + 1;
            } else {
                high = probe;
            }
            probe = low + (high - low) / 2;
        }
        low
    }

    /// The first slot in `from..count` whose head is not less than `head`.
    #[inline(always)]
    fn head_partition(self, from: usize, count: usize, head: u64) -> usize {
        let (mut low, mut high) = (from, count);
        if high - low > 16 {
            // Where the head would be if heads were spread evenly, then outwards in doubling steps. On evenly
            // spread keys this touches two or three cache lines, on others it costs a few steps more than halving.
            let (first, last) = (self.head(low), self.head(high - 1));
            if head <= first {
                return low;
            }
            if head > last {
                return high;
            }
            let share = (head - first) as f64 / (last - first) as f64;
            let guess = (low + (share * (high - 1 - low) as f64) as usize).min(high - 1);
            let mut step = 1;
            if self.head(guess) < head {
                low = guess + 1;
                while low + step < high {
                    if self.head(low + step) >= head {
                        high = low + step;
                        break;
                    }
                    low += step + 1;
                    step *= 2;
                }
            } else {
                high = guess;
                while high - low > step {
                    if self.head(high - step) < head {
                        low = high - step + 1;
                        break;
                    }
                    high -= step;
                    step *= 2;
                }
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.head(middle) < head {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Compares an entry with a target whose head is the same.
    #[inline]
    fn compare_rest(self, slot: Slot, suffix: &[u8], tid: u64) -> Ordering {
        let rest = self.rest(slot);
        let item_tid = if self.is_leaf() { slot.tid() } else { rest.tid };
        self.compare_key_rest(rest, suffix).then(item_tid.cmp(&tid))
    }

    #[inline]
    fn compare_key_rest(self, rest: Rest, suffix: &[u8]) -> Ordering {
        if rest.len > HEAD_BYTES && suffix.len() > HEAD_BYTES {
            self.0.compare(rest.at, rest.len - HEAD_BYTES, &suffix[HEAD_BYTES..])
        } else {
            // Equal heads, and one of the keys ends in its head: the other continues it, maybe with zeros.
            rest.len.cmp(&suffix.len())
        }
    }

    /// Whether an entry of this key can be added to a leaf in place.
    pub(crate) fn has_room_for(self, key: &[u8]) -> bool {
        let prefix = self.prefix_len();
        if key.len() < prefix || !self.has_prefix_of(key) {
            return false;
        }
        let rest = key.len() - prefix;
        let body = if rest > HEAD_BYTES { BODY_HEADER_BYTES + rest - HEAD_BYTES } else { 0 };
        SLOTS + (self.count() + 1) * SLOT_BYTES + body <= usize::from(self.0.u16(BODY_START))
    }

    /// Whether the slot's key is exactly this one, whose position [`Node::lower_bound`] gave.
    #[inline]
    pub(crate) fn key_is(self, index: usize, key: &[u8]) -> bool {
        let Some(suffix) = key.get(self.prefix_len()..) else { return false };
        let slot = self.slot(index);
        if slot.head != head_of(suffix) || slot.place() == WHERE_LOWEST {
            return false;
        }
        let rest = self.rest(slot);
        rest.len == suffix.len()
            && (rest.len <= HEAD_BYTES || self.compare_key_rest(rest, suffix) == Ordering::Equal)
            && self.has_prefix_of(key)
    }

    fn has_prefix_of(self, key: &[u8]) -> bool {
        let prefix = self.prefix_len();
        prefix == 0
            || self.0.compare(usize::from(self.0.u16(PREFIX_AT)), prefix, &key[..prefix])
                == Ordering::Equal
    }
}
