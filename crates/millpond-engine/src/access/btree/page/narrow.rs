//! The narrow form of slots: 8 bytes for key and row. Two of them are the key's bytes after the
//! page's prefix, six are the row. It is for leaves whose keys differ only in their last two bytes.
//!
//! An entry is *exceptional* if its key does not have exactly two bytes after the prefix. Such an
//! entry has a body, with its row and the rest of its key. So a narrow leaf takes any key with its
//! prefix.

use std::cmp::Ordering;

use super::PageRead;
use super::form::{Form, Rest, body, put_body};
use super::item::Item;
use super::layout::{
    BODY_HEADER_BYTES, MAX_NARROW_SLOTS, MAX_SLOT_BYTES, NARROW_EXCEPTIONAL, NARROW_HEAD_BYTES,
    NARROW_SLOT_BYTES, PREFIX_AT, PREFIX_HEAD, TID_BYTES, head_of, prefix_mask,
};

/// The form.
pub(super) enum Narrow {}

/// The bits of a slot that are the row.
const ROW: u64 = (1 << 48) - 1;

/// Whether an entry has a body. `rest` is the length of its key after the prefix.
#[inline]
fn is_exceptional(rest: usize, tid: u64) -> bool {
    // No row has that line pointer, but a damaged record may.
    rest != NARROW_HEAD_BYTES || tid & 0xFFFF == NARROW_EXCEPTIONAL
}

/// Bytes of the body of an entry whose key has `len` bytes.
#[inline]
fn body_bytes(len: usize, tid: u64, prefix: usize) -> usize {
    let rest = len.saturating_sub(prefix);
    if is_exceptional(rest, tid) {
        BODY_HEADER_BYTES + TID_BYTES + rest.saturating_sub(NARROW_HEAD_BYTES)
    } else {
        0
    }
}

/// What entries take in this form, for each prefix that may be the best one. That is as long as the
/// keys' common prefix, or one or two bytes shorter.
///
/// With a still shorter prefix all keys have more than two bytes after it. Then each further byte
/// of prefix saves a byte in every key. So for two or more entries no shorter prefix is better.
#[derive(Clone, Copy, Default)]
pub(crate) struct NarrowCost {
    common: usize,
    bytes: [usize; 3],
}

impl NarrowCost {
    /// The cost of no entries.
    pub(crate) fn new(common: usize) -> Self {
        Self { common, bytes: [0; 3] }
    }

    /// The length of the keys' common prefix.
    pub(crate) fn common(&self) -> usize {
        self.common
    }

    /// Counts an entry, whose key has the common prefix.
    #[inline]
    pub(crate) fn add(&mut self, item: &Item<'_>) {
        for (shorter, bytes) in self.bytes.iter_mut().enumerate() {
            let prefix = self.common.saturating_sub(shorter);
            *bytes += NARROW_SLOT_BYTES + body_bytes(item.key.len(), item.tid, prefix);
        }
    }

    /// The best prefix length, and the bytes that the entries and `extra(prefix)` then take.
    pub(crate) fn best(&self, extra: impl Fn(usize) -> usize) -> (usize, usize) {
        let mut best = (self.common, usize::MAX);
        for (shorter, bytes) in self.bytes.iter().enumerate() {
            let prefix = self.common.saturating_sub(shorter);
            let bytes = bytes + extra(prefix);
            if bytes < best.1 {
                best = (prefix, bytes);
            }
        }
        best
    }
}

impl Form for Narrow {
    const SLOT_BYTES: usize = NARROW_SLOT_BYTES;
    const MAX_SLOTS: usize = MAX_NARROW_SLOTS;
    const HEAD_BYTES: usize = NARROW_HEAD_BYTES;

    type Slot = u64;

    #[inline(always)]
    fn slot<P: PageRead + ?Sized>(page: &P, index: usize) -> u64 {
        page.u64(Self::at(index))
    }

    #[inline(always)]
    fn head_at<P: PageRead + ?Sized>(page: &P, index: usize) -> u64 {
        Self::head(Self::slot(page, index))
    }

    #[inline(always)]
    fn head(slot: u64) -> u64 {
        slot >> 48
    }

    #[inline(always)]
    fn head_of(suffix: &[u8]) -> u64 {
        match suffix {
            [first, second, ..] => u64::from(*first) << 8 | u64::from(*second),
            [first] => u64::from(*first) << 8,
            [] => 0,
        }
    }

    #[inline]
    fn rest<P: PageRead + ?Sized>(page: &P, slot: u64) -> Rest {
        match Self::body_at(slot) {
            None => Rest { len: NARROW_HEAD_BYTES, tid: slot & ROW, at: 0 },
            Some(at) => body(page, at),
        }
    }

    #[inline(always)]
    fn tid<P: PageRead + ?Sized>(_: &P, _: u64, rest: &Rest) -> u64 {
        rest.tid
    }

    #[inline(always)]
    fn body_at(slot: u64) -> Option<usize> {
        (slot & 0xFFFF == NARROW_EXCEPTIONAL).then_some((slot >> 16 & 0xFFFF_FFFF) as usize)
    }

    #[inline(always)]
    fn compare_prefix<P: PageRead + ?Sized>(page: &P, prefix: usize, key: &[u8]) -> Ordering {
        // The prefix's first bytes are in the header, so mostly no second place is read.
        let first = head_of(key) & prefix_mask(prefix);
        let order = page.u64(PREFIX_HEAD).cmp(&first);
        if order != Ordering::Equal || (prefix <= 8 && key.len() >= prefix) {
            return order;
        }
        match key.get(8..) {
            Some(more) if prefix > 8 => {
                let more = &more[..more.len().min(prefix - 8)];
                page.compare(usize::from(page.u16(PREFIX_AT)) + 8, prefix - 8, more)
            }
            // The key ends before the prefix does.
            _ => Ordering::Greater,
        }
    }

    fn body_bytes(item: &Item<'_>, _leaf: bool, prefix: usize) -> usize {
        body_bytes(item.key.len(), item.tid, prefix)
    }

    fn encode(
        item: &Item<'_>,
        _leaf: bool,
        prefix: usize,
        body_at: usize,
        body: &mut Vec<u8>,
    ) -> [u8; MAX_SLOT_BYTES] {
        let rest = &item.key[prefix..];
        let mut row = item.tid & ROW;
        if is_exceptional(rest.len(), item.tid) {
            put_body(
                body,
                rest.len(),
                Some(item.tid),
                rest.get(NARROW_HEAD_BYTES..).unwrap_or(&[]),
            );
            row = (body_at as u64) << 16 | NARROW_EXCEPTIONAL;
        }
        let mut bytes = [0; MAX_SLOT_BYTES];
        bytes[..8].copy_from_slice(&(Self::head_of(rest) << 48 | row).to_le_bytes());
        bytes
    }
}
