//! What the two forms of slots share. Each is a [`Form`]; searching, reading and building are
//! written once for both.

use super::PageRead;
use super::item::Item;
use super::layout::{BODY_HAS_TID, BODY_HEADER_BYTES, MAX_SLOT_BYTES, SLOTS, TID_BYTES};
use std::cmp::Ordering;

/// How entries lie in their slots.
pub(super) trait Form {
    /// Bytes of a slot.
    const SLOT_BYTES: usize;
    /// A page can't have more slots than this.
    const MAX_SLOTS: usize;
    /// Bytes of the head: the part of the key after the prefix that a slot holds.
    const HEAD_BYTES: usize;

    /// A slot as it is on the page.
    type Slot: Copy;

    /// The slot at an index. Beyond the last one the result is meaningless, but there is no panic.
    fn slot<P: PageRead + ?Sized>(page: &P, index: usize) -> Self::Slot;

    /// The head alone, as a number with the same order as its bytes.
    fn head_at<P: PageRead + ?Sized>(page: &P, index: usize) -> u64;

    /// The slot's head.
    fn head(slot: Self::Slot) -> u64;

    /// The head of a key's part after the prefix.
    fn head_of(suffix: &[u8]) -> u64;

    /// What the slot, or its body, says about the rest of the key.
    fn rest<P: PageRead + ?Sized>(page: &P, slot: Self::Slot) -> Rest;

    /// The tid that orders the entry among equal keys.
    fn tid<P: PageRead + ?Sized>(page: &P, slot: Self::Slot, rest: &Rest) -> u64;

    /// Where the slot's body begins, if it has one.
    fn body_at(slot: Self::Slot) -> Option<usize>;

    /// How the page's prefix (`prefix` bytes) compares with that many bytes of the key. Equal only
    /// if the key has that many.
    fn compare_prefix<P: PageRead + ?Sized>(page: &P, prefix: usize, key: &[u8]) -> Ordering;

    /// Bytes of the body that an entry needs in addition to its slot.
    fn body_bytes(item: &Item<'_>, leaf: bool, prefix: usize) -> usize;

    /// Returns the entry's slot (the first [`Form::SLOT_BYTES`]) and appends its body, which will
    /// be at `body_at`, to `body`. The key has the prefix, except an inner page's lowest entry.
    fn encode(
        item: &Item<'_>,
        leaf: bool,
        prefix: usize,
        body_at: usize,
        body: &mut Vec<u8>,
    ) -> [u8; MAX_SLOT_BYTES];

    /// Where a slot lies.
    #[inline(always)]
    fn at(index: usize) -> usize {
        SLOTS + index * Self::SLOT_BYTES
    }

    /// How an entry's key after its head compares with a target's of the same prefix and head.
    #[inline]
    fn compare_key_rest<P: PageRead + ?Sized>(page: &P, rest: &Rest, suffix: &[u8]) -> Ordering {
        if rest.len > Self::HEAD_BYTES && suffix.len() > Self::HEAD_BYTES {
            page.compare(rest.at, rest.len - Self::HEAD_BYTES, &suffix[Self::HEAD_BYTES..])
        } else {
            // Equal heads, and one key ends in its head: the other continues it, maybe with zeros.
            rest.len.cmp(&suffix.len())
        }
    }
}

/// The part of an entry's key that is not in its slot.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    /// Bytes of the key after the prefix.
    pub(super) len: usize,
    pub(super) tid: u64,
    /// Where the bytes after prefix and head begin.
    pub(super) at: usize,
}

/// Reads the header of a body.
#[inline]
pub(super) fn body<P: PageRead + ?Sized>(page: &P, at: usize) -> Rest {
    let header = page.u16(at);
    let at = at + BODY_HEADER_BYTES;
    let len = usize::from(header & !BODY_HAS_TID);
    if header & BODY_HAS_TID == 0 {
        return Rest { len, tid: 0, at };
    }
    let mut tid = [0; 8];
    page.copy(at, &mut tid[2..]);
    Rest { len, tid: u64::from_be_bytes(tid), at: at + TID_BYTES }
}

/// Appends the body of a key with `len` bytes after the prefix; `bytes` are those after the head.
pub(super) fn put_body(out: &mut Vec<u8>, len: usize, tid: Option<u64>, bytes: &[u8]) {
    let flag = if tid.is_some() { BODY_HAS_TID } else { 0 };
    out.extend_from_slice(&(len as u16 | flag).to_le_bytes());
    if let Some(tid) = tid {
        out.extend_from_slice(&tid.to_be_bytes()[2..]);
    }
    out.extend_from_slice(bytes);
}
