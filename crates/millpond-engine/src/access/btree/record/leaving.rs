//! Records for pages that leave the tree, and for the list of free pages: `SET_META`, `UNLINK`,
//! `FREE`.

use millpond_buffer::PAGE_SIZE;

use super::{replace, unfit};
use crate::access::btree::env::Stamp;
use crate::access::btree::page::PageRead;
use crate::access::btree::page::items::{Frame, Items};
use crate::access::btree::page::layout::{
    DELETED_CSN, DELETED_XID, FLAG_DELETED, FLAGS, KIND, NEXT_FREE, PAGE_KIND, RIGHT,
};
use crate::wal::record::Reader;
use crate::wal::{PageEdit, RedoError};

/// Offsets in the meta page: the number of the last vacuum, that of the running vacuum (or zero),
/// and the first free page (or zero).
const META_CYCLE: usize = 32;
const META_ACTIVE_CYCLE: usize = 36;
const META_FREE: usize = 40;

/// Data of `SET_META`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The number of the last vacuum.
    pub(crate) last: u32,
    /// The number of the running vacuum, or zero.
    pub(crate) active: u32,
    /// The first free page, or zero.
    pub(crate) free: u32,
}

impl Meta {
    pub(crate) fn of<P: PageRead + ?Sized>(page: &P) -> Self {
        Self {
            last: page.u32(META_CYCLE),
            active: page.u32(META_ACTIVE_CYCLE),
            free: page.u32(META_FREE),
        }
    }

    pub(crate) fn encode(self) -> [u8; 12] {
        let mut data = [0; 12];
        data[..4].copy_from_slice(&self.last.to_le_bytes());
        data[4..8].copy_from_slice(&self.active.to_le_bytes());
        data[8..].copy_from_slice(&self.free.to_le_bytes());
        data
    }
}

pub(super) fn set_meta(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    if data.len() != 12 {
        return Err(unfit(page, "meta record has the wrong length"));
    }
    page.write(META_CYCLE, data)
}

/// Data of `UNLINK`, block 0: what the left sibling takes over from the page.
pub(crate) fn absorb_data(out: &mut Vec<u8>, right: u32, high: (&[u8], u64)) {
    out.clear();
    out.extend_from_slice(&right.to_le_bytes());
    out.extend_from_slice(&high.1.to_le_bytes());
    out.extend_from_slice(high.0);
}

/// The left sibling of a page that leaves the tree, with that page's high key and right link.
pub(crate) fn absorbed(
    page: &[u8; PAGE_SIZE],
    right: u32,
    high: (&[u8], u64),
) -> Option<Box<[u8; PAGE_SIZE]>> {
    let items = Items::of(page);
    let frame = Frame { right, high: Some((high.0.to_vec(), high.1)), ..Frame::of(page) };
    items.build(&frame, 0..items.len())
}

pub(super) fn absorb(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    let mut reader = Reader(data);
    let (Some(right), Some(tid)) = (reader.u32(), reader.u64()) else {
        return Err(unfit(page, "unlink record is too short"));
    };
    let Some(new) = absorbed(page.bytes(), right, (reader.0, tid)) else {
        return Err(unfit(page, "no room for the high key of the page that leaves"));
    };
    replace(page, &new);
    Ok(())
}

/// Data of `UNLINK`, block 2: the moment when the page left.
pub(crate) fn delete_data(stamp: Stamp) -> [u8; 16] {
    let mut data = [0; 16];
    data[..8].copy_from_slice(&stamp.csn.to_le_bytes());
    data[8..].copy_from_slice(&stamp.xid.to_le_bytes());
    data
}

pub(super) fn delete(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    if data.len() != 16 {
        return Err(unfit(page, "unlink record has the wrong length"));
    }
    let mut new = deleted();
    new[RIGHT..RIGHT + 4].copy_from_slice(&page.bytes()[RIGHT..RIGHT + 4]);
    new[DELETED_CSN..DELETED_XID + 8].copy_from_slice(data);
    replace(page, &new);
    Ok(())
}

pub(crate) fn deleted() -> [u8; PAGE_SIZE] {
    let mut page = [0; PAGE_SIZE];
    page[KIND..KIND + 2].copy_from_slice(&PAGE_KIND.to_le_bytes());
    page[FLAGS..FLAGS + 2].copy_from_slice(&FLAG_DELETED.to_le_bytes());
    page
}

/// The moment when a deleted page left the tree.
pub(crate) fn deleted_at<P: PageRead + ?Sized>(page: &P) -> Stamp {
    Stamp { csn: page.u64(DELETED_CSN), xid: page.u64(DELETED_XID) }
}

/// Data of `FREE`, block 0: the free page after this one. No session can reach the page any more,
/// so no other content is kept.
pub(super) fn free(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    if data.len() != 4 {
        return Err(unfit(page, "free record has the wrong length"));
    }
    let mut new = deleted();
    new[NEXT_FREE..NEXT_FREE + 4].copy_from_slice(data);
    replace(page, &new);
    Ok(())
}

/// Data of `FREE`, block 1: the new first page of the list.
pub(super) fn set_free(data: &[u8], page: &mut PageEdit<'_>) -> Result<(), RedoError> {
    if data.len() != 4 {
        return Err(unfit(page, "free record has the wrong length"));
    }
    page.write(META_FREE, data)
}
