//! The page table: from block to frame, by a tree of atomic entries per fork, one entry per block.
//!
//! ```text
//! entry   63                       3   2          1        0
//!        +--------------------------+----------+--------+---------+
//!        |          frame           | RESIDENT | WAITED | LOADING |
//!        +--------------------------+----------+--------+---------+
//! ```
//!
//! - No flag: the page is absent. The frame's bits are 0, or the time since when it is absent, plus
//!   one. Any session may change the entry, to LOADING.
//! - LOADING: one session is reading the page. Only the loader may change the entry, but any
//!   session may add WAITED.
//! - LOADING and WAITED: other sessions are parked on the entry.
//! - RESIDENT and a frame: the page is in that frame. The session that takes the frame from the
//!   page may change the entry, to absent.
//!
//! The tree has a directory of tables of doubling size. So a small fork costs little, and every
//! block's entry is three dependent loads away. Tables and chunks are made on first use. They are
//! freed with the fork's last handle and no earlier. So a reference to an entry stays valid as long
//! as a handle exists, or the entry's page is in a frame (rule 4).
#![allow(unsafe_code)]

use crate::ids::BlockNumber;
use millpond_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use millpond_sync::ordering;
use std::ptr;

pub(crate) const ABSENT: u64 = 0;
pub(crate) const LOADING: u64 = 1;
pub(crate) const WAITED: u64 = 2;
const RESIDENT: u64 = 4;
const FRAME_SHIFT: u32 = 3;

/// Whether the page is neither in memory nor being loaded.
#[inline]
pub(crate) fn is_absent(entry: u64) -> bool {
    entry & (LOADING | WAITED | RESIDENT) == 0
}

/// The entry of a page that has left memory.
#[inline]
pub(crate) fn absent_since(now: u64) -> u64 {
    now.wrapping_add(1) << FRAME_SHIFT
}

/// When an absent page left memory, if it was ever there.
pub(crate) fn left_at(absent: u64) -> Option<u64> {
    (absent >> FRAME_SHIFT).checked_sub(1)
}

/// The entry of a page that is in `frame`.
#[inline]
pub(crate) fn resident_in(frame: u32) -> u64 {
    u64::from(frame) << FRAME_SHIFT | RESIDENT
}

/// The frame that the page is in.
#[inline]
pub(crate) fn frame_of(entry: u64) -> Option<u32> {
    (entry & RESIDENT != 0).then_some((entry >> FRAME_SHIFT) as u32)
}

/// The frame that a page seems to be in. The caller finds this page there, or a later one. Along
/// with the entry, it has seen all that was done to the frame before its page was published.
#[inline]
pub(crate) fn frame_in(entry: &AtomicU64) -> Option<u32> {
    frame_of(entry.load(ordering!("pool-entry-read-relaxed", Acquire)))
}

/// The number of entries in a chunk.
const CHUNK: usize = if cfg!(any(miri, loom, shuttle)) { 4 } else { 512 };
/// The number of chunks in the first table. Each further table is twice as large.
const FIRST_TABLE: usize = 8;
/// The number of tables: enough for 2^32 blocks.
const TABLES: usize = locate(u32::MAX as usize / CHUNK).0 + 1;

/// A chunk fills one page of memory.
#[repr(C, align(4096))]
struct Chunk([AtomicU64; CHUNK]);
type Table = Box<[AtomicPtr<Chunk>]>;

/// The entries of one fork.
pub(crate) struct PageTable {
    /// Each points to the first pointer of a table of [`table_len`] pointers, or is null.
    tables: [AtomicPtr<AtomicPtr<Chunk>>; TABLES],
}

fn table_len(table: usize) -> usize {
    FIRST_TABLE << table
}

/// The table that has a chunk, and the index in it. The tables before number `table` have
/// `table_len(table) - FIRST_TABLE` chunks together.
#[inline]
const fn locate(chunk: usize) -> (usize, usize) {
    let table = ((chunk + FIRST_TABLE) / FIRST_TABLE).ilog2() as usize;
    (table, chunk + FIRST_TABLE - (FIRST_TABLE << table))
}

impl PageTable {
    pub(crate) fn new() -> Self {
        Self { tables: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())) }
    }

    /// The entry of a block, if it was ever needed.
    #[inline]
    pub(crate) fn get(&self, block: BlockNumber) -> Option<&AtomicU64> {
        let block = block.0 as usize;
        let chunk = self.chunk(block / CHUNK)?;
        Some(&chunk.0[block % CHUNK])
    }

    /// A chunk, if it was ever needed. Its entries are seen as they were made, or later.
    #[inline]
    fn chunk(&self, number: usize) -> Option<&Chunk> {
        let (table, at) = locate(number);
        let first = self.tables[table].load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: a table that is not null has `table_len(table)` pointers, `at` is less than that
        // by `locate`, and tables live as long as `self`.
        let slot = unsafe { &*first.add(at) };
        let chunk = slot.load(Ordering::Acquire);
        // SAFETY: a chunk pointer is null or points to a chunk that lives as long as `self`.
        unsafe { chunk.as_ref() }
    }

    /// The entry of a block.
    pub(crate) fn entry(&self, block: BlockNumber) -> &AtomicU64 {
        let (number, at) = (block.0 as usize / CHUNK, block.0 as usize % CHUNK);
        if let Some(chunk) = self.chunk(number) {
            return &chunk.0[at];
        }
        let slot = self.slot(number);
        let made = Box::into_raw(Box::new(Chunk(std::array::from_fn(|_| AtomicU64::new(ABSENT)))));
        let (order, failed) = (Ordering::Release, Ordering::Acquire);
        let installed = slot.compare_exchange(ptr::null_mut(), made, order, failed);
        let chunk = match installed {
            Ok(_) => made,
            Err(theirs) => {
                // SAFETY: `made` came from `Box::into_raw` and was not installed.
                drop(unsafe { Box::from_raw(made) });
                theirs
            }
        };
        // SAFETY: installed by us or another, so it lives as long as `self`.
        unsafe { &(*chunk).0[at] }
    }

    /// The pointer to a chunk.
    fn slot(&self, number: usize) -> &AtomicPtr<Chunk> {
        let (table, at) = locate(number);
        let len = table_len(table);
        let mut first = self.tables[table].load(Ordering::Acquire);
        if first.is_null() {
            let made: Table = (0..len).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
            let made = Box::into_raw(made).cast::<AtomicPtr<Chunk>>();
            let (order, failed) = (Ordering::Release, Ordering::Acquire);
            let installed =
                self.tables[table].compare_exchange(ptr::null_mut(), made, order, failed);
            first = match installed {
                Ok(_) => made,
                Err(theirs) => {
                    // SAFETY: `made` came from a boxed slice of `len` and was not installed.
                    drop(unsafe { Table::from_raw(ptr::slice_from_raw_parts_mut(made, len)) });
                    theirs
                }
            };
        }
        // SAFETY: as in `chunk`.
        unsafe { &*first.add(at) }
    }

    /// All entries that were ever needed, in order, from a block on.
    pub(crate) fn from(
        &self,
        first: BlockNumber,
    ) -> impl Iterator<Item = (BlockNumber, &AtomicU64)> {
        let first = first.0 as usize;
        let chunks = (0..TABLES).flat_map(move |table| {
            let len = table_len(table);
            let start = len - FIRST_TABLE;
            let some = !self.tables[table].load(Ordering::Acquire).is_null();
            let range = if some { start..start + len } else { 0..0 };
            range.filter(move |number| (number + 1) * CHUNK > first)
        });
        let chunks = chunks.filter_map(|number| Some((number, self.chunk(number)?)));
        chunks.flat_map(move |(number, chunk)| {
            let blocks = (0..CHUNK).map(move |at| (number * CHUNK + at, &chunk.0[at]));
            blocks
                .filter(move |(block, _)| *block >= first)
                .map(|(block, entry)| (BlockNumber(block as u32), entry))
        })
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        for (table, first) in self.tables.iter().enumerate() {
            let first = first.load(Ordering::Acquire);
            if first.is_null() {
                continue;
            }
            let slots = ptr::slice_from_raw_parts_mut(first, table_len(table));
            // SAFETY: installed by `slot` from a boxed slice of that length. No reference exists
            // any more: references borrow `self`, and frames' references are gone by rule 4.
            let slots = unsafe { Table::from_raw(slots) };
            for chunk in &slots {
                let chunk = chunk.load(Ordering::Acquire);
                if !chunk.is_null() {
                    // SAFETY: installed by `entry` from a box, as above.
                    drop(unsafe { Box::from_raw(chunk) });
                }
            }
        }
    }
}

/// A frame's reference to the entry of the page that it holds.
pub(crate) struct EntryRef {
    entry: AtomicPtr<AtomicU64>,
    /// The entry's value while the page was absent.
    before: AtomicU64,
}

impl EntryRef {
    #[cfg(any(test, miri, loom, shuttle))]
    pub(crate) fn none() -> Self {
        Self { entry: AtomicPtr::new(ptr::null_mut()), before: AtomicU64::new(ABSENT) }
    }

    pub(crate) fn set(&self, entry: &AtomicU64, before: u64) {
        self.entry.store(ptr::from_ref(entry).cast_mut(), Ordering::Relaxed);
        self.before.store(before, Ordering::Relaxed);
    }

    /// The entry's value while the page was absent.
    pub(crate) fn before(&self) -> u64 {
        self.before.load(Ordering::Relaxed)
    }

    /// Makes the entry `absent`. Only the thread that has just taken the frame from its page calls
    /// this, once. What remains here after that means nothing.
    pub(crate) fn make_absent(&self, absent: u64) {
        let entry = self.entry.load(Ordering::Relaxed);
        // SAFETY: The entry is that of the page that was resident in the frame until the caller
        // took it. A fork is forgotten only after all of its entries have been seen absent (rule
        // 4). This store is the first to make this entry absent, so the fork is not forgotten yet.
        // The store is the last access.
        if let Some(entry) = unsafe { entry.as_ref() } {
            // Release is needed here. Making the version odd comes with a release fence, but the
            // version of a damaged page was odd already.
            entry.store(absent, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_each_other() {
        let mut expected = 0;
        for table in 0..6 {
            for at in 0..table_len(table) {
                assert_eq!(locate(expected), (table, at));
                expected += 1;
            }
        }
        let (table, at) = locate(u32::MAX as usize / CHUNK);
        assert!(table < TABLES && at < table_len(table));
    }

    #[test]
    fn entries_are_found_again() {
        let tree = PageTable::new();
        assert!(tree.get(BlockNumber(0)).is_none());
        let far = if cfg!(miri) { [600, 601] } else { [70_000, u32::MAX] };
        let blocks = [0, 1, 511, 512, 515, far[0], far[1]];
        for block in blocks {
            tree.entry(BlockNumber(block)).store(resident_in(block), Ordering::Relaxed);
        }
        for block in blocks {
            let entry = tree.get(BlockNumber(block)).unwrap().load(Ordering::Relaxed);
            assert_eq!(frame_of(entry), Some(block));
        }
        let seen: Vec<u32> = tree
            .from(BlockNumber(511))
            .filter(|(_, entry)| entry.load(Ordering::Relaxed) != ABSENT)
            .map(|(block, _)| block.0)
            .collect();
        assert_eq!(seen, blocks[2..]);
    }
}
