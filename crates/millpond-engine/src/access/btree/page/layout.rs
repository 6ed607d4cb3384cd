//! The byte layout of a B+tree page.
//!
//! docs/file-format.md ("Nodes") describes it: the header, slots of the two forms, bodies, and what
//! a deleted page has in place of slots. The constants below are that page in code.

use millpond_buffer::PAGE_SIZE;

/// The page kind of B+tree pages.
pub(crate) const PAGE_KIND: u16 = 2;

pub(crate) const KIND: usize = 12;
pub(crate) const FLAGS: usize = 14;
pub(crate) const RIGHT: usize = 16;
pub(crate) const LEVEL: usize = 20;
pub(crate) const COUNT: usize = 22;
pub(crate) const BODY_START: usize = 24;
pub(crate) const PREFIX_LEN: usize = 26;
pub(crate) const PREFIX_AT: usize = 28;
pub(crate) const HIGH_AT: usize = 30;
pub(crate) const CYCLE: usize = 32;
/// In a narrow leaf.
pub(crate) const PREFIX_HEAD: usize = 40;
pub(crate) const SLOTS: usize = 48;

/// In a deleted page: the moment it left the tree (two numbers), and the next free page.
pub(crate) const DELETED_CSN: usize = 48;
pub(crate) const DELETED_XID: usize = 56;
pub(crate) const NEXT_FREE: usize = 64;

pub(crate) const WIDE_SLOT_BYTES: usize = 16;
pub(crate) const NARROW_SLOT_BYTES: usize = 8;
/// The larger of the two.
pub(crate) const MAX_SLOT_BYTES: usize = WIDE_SLOT_BYTES;
/// A page can't have more slots than this.
pub(crate) const MAX_WIDE_SLOTS: usize = (PAGE_SIZE - SLOTS) / WIDE_SLOT_BYTES;
pub(crate) const MAX_NARROW_SLOTS: usize = (PAGE_SIZE - SLOTS) / NARROW_SLOT_BYTES;
/// Bytes of a key that its slot holds.
pub(crate) const WIDE_HEAD_BYTES: usize = 8;
pub(crate) const NARROW_HEAD_BYTES: usize = 2;
/// A narrow slot's line pointer if the entry has a body.
pub(crate) const NARROW_EXCEPTIONAL: u64 = 0xFFFF;
/// `where` of the entry before every key.
pub(crate) const WHERE_LOWEST: u16 = 9;

pub(crate) const BODY_HAS_TID: u16 = 1 << 15;
pub(crate) const BODY_HEADER_BYTES: usize = 2;
pub(crate) const TID_BYTES: usize = 6;

/// The page holds entries that point at rows.
pub(crate) const FLAG_LEAF: u16 = 1;
/// The page was split and its right half has no downlink yet.
pub(crate) const FLAG_INCOMPLETE_SPLIT: u16 = 2;
/// Block 0, the meta page.
pub(crate) const FLAG_META: u16 = 4;
/// The page left the tree and waits for reuse. Its right link still leads to where its keys went.
pub(crate) const FLAG_DELETED: u16 = 8;
/// A leaf whose slots are of the narrow form.
pub(crate) const FLAG_NARROW: u16 = 16;

/// The longest key. Two entries and a high key of this length fit one page, whatever their prefix.
/// So a split of a leaf always finds a place to cut (btree rule 12). An inner page may have to make
/// room first (btree rule 16).
pub(crate) const MAX_KEY_BYTES: usize = 2660;

/// A key's head: its first 8 bytes as a number, with zeros for missing ones.
#[inline(always)]
pub(crate) fn head_of(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    // For 4 to 7 bytes: the first four and the last four, which overlap.
    if let (Some(first), Some(last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let last = u64::from(u32::from_be_bytes(*last));
        return u64::from(u32::from_be_bytes(*first)) << 32 | last << (64 - 8 * key.len());
    }
    key.iter().rev().fold(0, |head, byte| head >> 8 | u64::from(*byte) << 56)
}

/// The bits of a head that a prefix of this length covers.
#[inline(always)]
pub(crate) fn prefix_mask(prefix: usize) -> u64 {
    if prefix >= 8 { u64::MAX } else { !(u64::MAX >> (8 * prefix)) }
}
