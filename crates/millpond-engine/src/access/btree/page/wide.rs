//! The wide form of slots, for inner pages and for leaves whose keys differ more: 16 bytes, of
//! which the key has 8.

use std::cmp::Ordering;

use super::PageRead;
use super::form::{Form, Rest, body, put_body};
use super::item::Item;
use super::layout::{
    BODY_HEADER_BYTES, FLAG_LEAF, FLAGS, MAX_SLOT_BYTES, MAX_WIDE_SLOTS, PREFIX_AT, TID_BYTES,
    WHERE_LOWEST, WIDE_HEAD_BYTES, WIDE_SLOT_BYTES, head_of,
};

/// The form.
pub(super) enum Wide {}

#[derive(Clone, Copy)]
pub(super) struct WideSlot {
    head: u64,
    word: u64,
}

impl WideSlot {
    #[inline(always)]
    fn place(self) -> u16 {
        (self.word >> 48) as u16
    }

    /// The row of a leaf's entry.
    #[inline(always)]
    pub(super) fn row(self) -> u64 {
        (self.word & 0xFFFF_FFFF) << 16 | (self.word >> 32 & 0xFFFF)
    }

    /// The child of an inner page's entry.
    #[inline(always)]
    pub(super) fn child(self) -> u32 {
        self.word as u32
    }

    /// Whether this is the entry before every key, which lacks the page's prefix.
    #[inline(always)]
    pub(super) fn is_lowest(self) -> bool {
        self.place() == WHERE_LOWEST
    }
}

impl Form for Wide {
    const SLOT_BYTES: usize = WIDE_SLOT_BYTES;
    const MAX_SLOTS: usize = MAX_WIDE_SLOTS;
    const HEAD_BYTES: usize = WIDE_HEAD_BYTES;

    type Slot = WideSlot;

    #[inline(always)]
    fn slot<P: PageRead + ?Sized>(page: &P, index: usize) -> WideSlot {
        let at = Self::at(index);
        WideSlot { head: page.u64(at), word: page.u64(at + 8) }
    }

    #[inline(always)]
    fn head_at<P: PageRead + ?Sized>(page: &P, index: usize) -> u64 {
        page.u64(Self::at(index))
    }

    #[inline(always)]
    fn head(slot: WideSlot) -> u64 {
        slot.head
    }

    #[inline(always)]
    fn head_of(suffix: &[u8]) -> u64 {
        head_of(suffix)
    }

    #[inline]
    fn rest<P: PageRead + ?Sized>(page: &P, slot: WideSlot) -> Rest {
        let at = slot.place();
        if at <= WHERE_LOWEST {
            let len = if at == WHERE_LOWEST { 0 } else { usize::from(at) };
            return Rest { len, tid: 0, at: 0 };
        }
        body(page, usize::from(at))
    }

    #[inline(always)]
    fn tid<P: PageRead + ?Sized>(page: &P, slot: WideSlot, rest: &Rest) -> u64 {
        if page.u16(FLAGS) & FLAG_LEAF != 0 { slot.row() } else { rest.tid }
    }

    fn body_at(slot: WideSlot) -> Option<usize> {
        (slot.place() > WHERE_LOWEST).then(|| usize::from(slot.place()))
    }

    #[inline(always)]
    fn compare_prefix<P: PageRead + ?Sized>(page: &P, prefix: usize, key: &[u8]) -> Ordering {
        let of_key = &key[..prefix.min(key.len())];
        page.compare(usize::from(page.u16(PREFIX_AT)), prefix, of_key)
    }

    fn body_bytes(item: &Item<'_>, leaf: bool, prefix: usize) -> usize {
        if item.is_lowest(leaf) {
            return 0;
        }
        let rest = item.key.len().saturating_sub(prefix);
        let with_tid = !leaf && item.tid != 0;
        if rest <= WIDE_HEAD_BYTES && !with_tid {
            return 0;
        }
        let tid = if with_tid { TID_BYTES } else { 0 };
        BODY_HEADER_BYTES + tid + rest.saturating_sub(WIDE_HEAD_BYTES)
    }

    fn encode(
        item: &Item<'_>,
        leaf: bool,
        prefix: usize,
        body_at: usize,
        body: &mut Vec<u8>,
    ) -> [u8; MAX_SLOT_BYTES] {
        let (mut head, mut place) = (0, WHERE_LOWEST);
        if !item.is_lowest(leaf) {
            let rest = &item.key[prefix..];
            (head, place) = (head_of(rest), rest.len() as u16);
            if Self::body_bytes(item, leaf, prefix) != 0 {
                let tid = (!leaf && item.tid != 0).then_some(item.tid);
                put_body(body, rest.len(), tid, rest.get(WIDE_HEAD_BYTES..).unwrap_or(&[]));
                place = body_at as u16;
            }
        }
        let value = if leaf {
            (item.tid >> 16 & 0xFFFF_FFFF) | (item.tid & 0xFFFF) << 32
        } else {
            u64::from(item.child)
        };
        let mut bytes = [0; MAX_SLOT_BYTES];
        bytes[..8].copy_from_slice(&head.to_le_bytes());
        bytes[8..].copy_from_slice(&(value | u64::from(place) << 48).to_le_bytes());
        bytes
    }
}
