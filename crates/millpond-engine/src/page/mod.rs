//! What every page of the engine has in common, and the layout of pages that hold items.
//!
//! Bytes 0..12 of a page belong to the buffer pool (LSN, checksum). Bytes 12..14 are the
//! [`PageKind`], bytes 14..16 flags whose meaning depends on the kind. [`item`] lays out pages of
//! variable-length items behind line pointers.
//!
//! Everything here is a function of bytes. It runs on latched frames, on optimistic views whose
//! bytes may be torn, on private copies, in recovery and in `check`. So no bytes make it panic, and
//! it checks what a page says before using it.

pub mod item;

use millpond_buffer::{PAGE_SIZE, PageRead};

/// Offset of the page kind.
pub const KIND: usize = 12;
/// Offset of the page flags.
pub const FLAGS: usize = 14;

/// What a page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum PageKind {
    /// Never written: all bytes are zero.
    New = 0,
    /// Heap rows.
    Heap = 1,
    /// A node of a B+tree.
    BTree = 2,
    /// Free space map.
    Fsm = 3,
    /// Commit status of transactions.
    Clog = 4,
    /// Commit numbers of transactions, for old snapshots; valid for one run of the engine only.
    CommitNumbers = 5,
}

/// The page's kind field; [`PageKind`] names the values.
#[inline]
pub fn kind<P: PageRead + ?Sized>(page: &P) -> u16 {
    page.u16(KIND)
}

/// The page's flags field.
#[inline]
pub fn flags<P: PageRead + ?Sized>(page: &P) -> u16 {
    page.u16(FLAGS)
}

/// A page whose bytes can be changed: a plain array, or a latched frame while it is being changed.
pub trait PageMut: PageRead {
    /// Stores `bytes` at `offset`. Bytes that would lie beyond the page's end are not stored.
    fn write(&mut self, offset: usize, bytes: &[u8]);

    /// Stores a little-endian `u16`.
    #[inline]
    fn put_u16(&mut self, offset: usize, value: u16) {
        self.write(offset, &value.to_le_bytes());
    }

    /// Stores a little-endian `u32`.
    #[inline]
    fn put_u32(&mut self, offset: usize, value: u32) {
        self.write(offset, &value.to_le_bytes());
    }

    /// Stores a little-endian `u64`.
    #[inline]
    fn put_u64(&mut self, offset: usize, value: u64) {
        self.write(offset, &value.to_le_bytes());
    }
}

impl PageMut for [u8; PAGE_SIZE] {
    #[inline]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        if let Some(target) = self.get_mut(offset..).and_then(|rest| rest.get_mut(..bytes.len())) {
            target.copy_from_slice(bytes);
        }
    }
}

/// What is wrong with a page, or with a change that does not fit the page it is applied to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The page is of another kind.
    #[error("page kind is {found}, expected {expected:?}")]
    Kind {
        /// The kind field.
        found: u16,
        /// What was expected.
        expected: PageKind,
    },
    /// The bounds of the line pointer array or of the item space are impossible.
    #[error("page bounds lower {lower}, upper {upper} are impossible")]
    Bounds {
        /// End of the line pointers.
        lower: u16,
        /// Start of the items.
        upper: u16,
    },
    /// A line pointer is not what the operation needs.
    #[error("line pointer {offset}: {what}")]
    Line {
        /// Which, from one.
        offset: u16,
        /// What is wrong.
        what: &'static str,
    },
    /// There is no room for an item.
    #[error("no room for {bytes} bytes: {free} are free")]
    Full {
        /// Bytes needed.
        bytes: usize,
        /// Bytes free.
        free: usize,
    },
    /// The bytes that describe a change make no sense.
    #[error("malformed change: {0}")]
    Malformed(&'static str),
}
