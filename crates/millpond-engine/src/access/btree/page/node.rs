//! Reading and searching a page, even one whose bytes change meanwhile.
//!
//! Every number read from the page is used only to compute further offsets (which [`PageRead`]
//! checks) and loop bounds (which are clamped here). So torn bytes give a meaningless answer but no
//! panic and no endless loop. This holds even if the flags, read more than once, show first one
//! form of slots and then the other. The caller discards a meaningless answer when validation fails
//! (btree rule 2).

use std::cmp::Ordering;

use millpond_buffer::PAGE_SIZE;
use millpond_sync::mutant;

use super::PageRead;
use super::form::{Form, body};
use super::item::{Item, Target};
use super::layout::{
    BODY_HEADER_BYTES, BODY_START, COUNT, CYCLE, FLAG_DELETED, FLAG_INCOMPLETE_SPLIT, FLAG_LEAF,
    FLAG_META, FLAG_NARROW, FLAGS, HIGH_AT, KIND, LEVEL, PAGE_KIND, PREFIX_AT, PREFIX_LEN, RIGHT,
    TID_BYTES,
};
use super::narrow::Narrow;
use super::search::{Start, partition};
use super::wide::Wide;

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

    /// Whether this is a B+tree page that is a node of the tree.
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

    /// Whether the page was added to the file and never used.
    pub(crate) fn is_new(self) -> bool {
        self.0.u16(KIND) == 0
    }

    #[inline]
    pub(crate) fn is_leaf(self) -> bool {
        self.flags() & FLAG_LEAF != 0
    }

    /// Whether the slots are of the narrow form, which only leaves have.
    #[inline]
    pub(crate) fn is_narrow(self) -> bool {
        const BOTH: u16 = FLAG_LEAF | FLAG_NARROW;
        self.flags() & BOTH == BOTH
    }

    /// Bytes of a slot of this page.
    #[inline]
    pub(crate) fn slot_bytes(self) -> usize {
        if self.is_narrow() { Narrow::SLOT_BYTES } else { Wide::SLOT_BYTES }
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
        let most = if self.is_narrow() { Narrow::MAX_SLOTS } else { Wide::MAX_SLOTS };
        let most = if mutant!("btree-count-unclamped") { usize::MAX } else { most };
        usize::from(self.0.u16(COUNT)).min(most)
    }

    pub(crate) fn cycle(self) -> u32 {
        self.0.u32(CYCLE)
    }

    /// The row of a leaf's entry.
    #[inline]
    pub(crate) fn row(self, index: usize) -> u64 {
        if self.is_narrow() {
            Narrow::rest(self.0, Narrow::slot(self.0, index)).tid
        } else {
            Wide::slot(self.0, index).row()
        }
    }

    /// The child of an inner page's entry.
    #[inline]
    pub(crate) fn child(self, index: usize) -> u32 {
        Wide::slot(self.0, index).child()
    }

    /// Where the body of a slot begins and ends, if it has one.
    pub(crate) fn body_range(self, index: usize) -> Option<(usize, usize)> {
        if self.is_narrow() {
            self.body_range_of::<Narrow>(index)
        } else {
            self.body_range_of::<Wide>(index)
        }
    }

    fn body_range_of<F: Form>(self, index: usize) -> Option<(usize, usize)> {
        let slot = F::slot(self.0, index);
        let from = F::body_at(slot)?;
        let rest = F::rest(self.0, slot);
        Some((from, rest.at + rest.len.saturating_sub(F::HEAD_BYTES)))
    }

    #[inline]
    fn prefix_len(self) -> usize {
        usize::from(self.0.u16(PREFIX_LEN))
    }

    /// Appends the key of a slot. Returns the tid that orders it among equal keys: a leaf entry's
    /// row, or the tid of a separator.
    pub(crate) fn key_into(self, index: usize, key: &mut Vec<u8>) -> u64 {
        if self.is_narrow() {
            return self.key_of::<Narrow>(Narrow::slot(self.0, index), key);
        }
        let slot = Wide::slot(self.0, index);
        if slot.is_lowest() { 0 } else { self.key_of::<Wide>(slot, key) }
    }

    fn key_of<F: Form>(self, slot: F::Slot, key: &mut Vec<u8>) -> u64 {
        let rest = F::rest(self.0, slot);
        self.append(usize::from(self.0.u16(PREFIX_AT)), self.prefix_len(), key);
        let head = F::head(slot) << (64 - 8 * F::HEAD_BYTES);
        key.extend_from_slice(&head.to_be_bytes()[..rest.len.min(F::HEAD_BYTES)]);
        self.append(rest.at, rest.len.saturating_sub(F::HEAD_BYTES), key);
        F::tid(self.0, slot, &rest)
    }

    /// Appends the high key and returns its tid. `None` if there is none; then nothing is appended.
    pub(crate) fn high_into(self, key: &mut Vec<u8>) -> Option<u64> {
        let at = usize::from(self.0.u16(HIGH_AT));
        if at == 0 {
            return None;
        }
        let high = body(self.0, at);
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

    /// How the high key compares with a target; `None` if the page has no high key.
    pub(crate) fn compare_high(self, target: Target<'_>) -> Option<Ordering> {
        let at = usize::from(self.0.u16(HIGH_AT));
        if at == 0 {
            return None;
        }
        let high = body(self.0, at);
        Some(self.0.compare(high.at, high.len, target.key).then(high.tid.cmp(&target.tid)))
    }

    /// The first slot of a leaf that is not before the target; `count` if there is none.
    #[inline]
    pub(crate) fn lower_bound(self, target: Target<'_>) -> usize {
        self.first_slot(0, target, Start::Interpolated)
    }

    /// Like [`Node::lower_bound`], if all slots before `from` are before the target. It is fast if
    /// the result is close to `from`.
    #[inline]
    pub(crate) fn lower_bound_from(self, from: usize, target: Target<'_>) -> usize {
        self.first_slot(from, target, Start::Low)
    }

    #[inline(always)]
    fn first_slot(self, from: usize, target: Target<'_>, start: Start) -> usize {
        if self.is_narrow() {
            partition::<Narrow, P>(self.0, from, target, Ordering::is_lt, start)
        } else {
            partition::<Wide, P>(self.0, from, target, Ordering::is_lt, start)
        }
    }

    /// The slot of an inner page whose child the target belongs to.
    #[inline]
    pub(crate) fn child_slot(self, target: Target<'_>) -> usize {
        // The first entry is not compared: the target is never before it.
        partition::<Wide, P>(self.0, 1, target, Ordering::is_le, Start::Interpolated) - 1
    }

    /// The slot of an inner page whose child holds what comes last before the target.
    pub(crate) fn child_slot_before(self, target: Target<'_>) -> usize {
        partition::<Wide, P>(self.0, 1, target, Ordering::is_lt, Start::Interpolated) - 1
    }

    /// Whether the slot's key is exactly `key`. [`Node::lower_bound`] gave the slot.
    #[inline(always)]
    pub(crate) fn key_is(self, index: usize, key: &[u8]) -> bool {
        if self.is_narrow() {
            return self.slot_key_is::<Narrow>(Narrow::slot(self.0, index), key);
        }
        let slot = Wide::slot(self.0, index);
        !slot.is_lowest() && self.slot_key_is::<Wide>(slot, key)
    }

    #[inline(always)]
    fn slot_key_is<F: Form>(self, slot: F::Slot, key: &[u8]) -> bool {
        let Some(suffix) = key.get(self.prefix_len()..) else { return false };
        if F::head(slot) != F::head_of(suffix) {
            return false;
        }
        let rest = F::rest(self.0, slot);
        rest.len == suffix.len()
            && (rest.len <= F::HEAD_BYTES
                || F::compare_key_rest(self.0, &rest, suffix) == Ordering::Equal)
            && self.has_prefix_of::<F>(key)
    }

    #[inline(always)]
    fn has_prefix_of<F: Form>(self, key: &[u8]) -> bool {
        let prefix = self.prefix_len();
        prefix == 0 || F::compare_prefix(self.0, prefix, key) == Ordering::Equal
    }

    /// The offset of an entry's body if the entry can be added in place. `None` if it can't: its
    /// key lacks the page's prefix, or there is no room.
    pub(crate) fn room_for(self, item: &Item<'_>) -> Option<usize> {
        if self.is_narrow() { self.room_in::<Narrow>(item) } else { self.room_in::<Wide>(item) }
    }

    fn room_in<F: Form>(self, item: &Item<'_>) -> Option<usize> {
        let (leaf, prefix) = (self.is_leaf(), self.prefix_len());
        if !item.is_lowest(leaf) && !self.has_prefix_of::<F>(item.key) {
            return None;
        }
        let count = usize::from(self.0.u16(COUNT));
        let low = usize::from(self.0.u16(BODY_START)).min(PAGE_SIZE);
        let body = F::body_bytes(item, leaf, prefix);
        let high = self.high_bytes();
        let kept = bytes_for_high(leaf, prefix, high) - high;
        let fits = count < F::MAX_SLOTS && F::at(count + 1) + body + kept <= low;
        fits.then(|| low - body)
    }

    fn high_bytes(self) -> usize {
        match usize::from(self.0.u16(HIGH_AT)) {
            0 => 0,
            at => BODY_HEADER_BYTES + TID_BYTES + body(self.0, at).len,
        }
    }
}

/// Room that a page keeps for a high key; the page's own takes `high` bytes.
///
/// A leaf keeps room for one as long as its prefix. A key without that prefix comes before or after
/// all others, and a cut at that end needs no longer separator (btree rule 12).
pub(crate) fn bytes_for_high(leaf: bool, prefix: usize, high: usize) -> usize {
    let leaf = leaf && !mutant!("btree-leaf-without-room-for-high");
    let separator = if leaf && prefix != 0 { BODY_HEADER_BYTES + TID_BYTES + prefix } else { 0 };
    high.max(separator)
}
