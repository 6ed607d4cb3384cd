//! What the pool knows of a page's contents: the LSN and the checksum at its beginning. Also a
//! thread's scratch pages.
//!
//! - Bytes 0..8: the LSN, little-endian.
//! - Bytes 8..12: a CRC-32C, little-endian. It covers the page's identity as 8 little-endian bytes,
//!   then the page with this field as zero.
//! - Bytes 12..: the access method's.
//!
//! A page of zeros is valid and means "new". The pool sets the checksum in the copy that it writes,
//! and checks it in the memory that it reads to. After that, in memory, the field means nothing.
//!
//! [`PageRead`] reads numbers and bytes of a page, however the caller holds the page. Access
//! methods write their search code once, over [`PageRead`]. It runs on latched pages, on private
//! copies and on optimistic views whose bytes may be torn. So no method panics: bytes beyond the
//! page's end read as zero.

use crate::PAGE_SIZE;
use crate::ids::{Lsn, PageId};
use std::cell::Cell;
use std::cmp::Ordering;

pub(crate) mod words;

const CHECKSUM: std::ops::Range<usize> = 8..12;

/// The bytes of a page.
pub type PageBytes = [u8; PAGE_SIZE];

/// A page's bytes, aligned for direct I/O.
#[cfg_attr(not(miri), repr(C, align(4096)))]
#[cfg_attr(miri, repr(C, align(512)))]
pub(crate) struct AlignedPage(pub(crate) PageBytes);

impl AlignedPage {
    pub(crate) fn boxed() -> Box<Self> {
        Box::new(Self([0; PAGE_SIZE]))
    }
}

thread_local! {
    /// Scratch pages (bounce buffers). Sessions write through them, and read through them where a
    /// store can't fill frames. They belong to the thread. Hundreds of sessions with pages of their
    /// own, used in turn, would find those out of the processor's cache.
    static SCRATCH: Cell<Vec<Box<AlignedPage>>> = const { Cell::new(Vec::new()) };
}

/// Runs `f` with `pages` scratch pages of this thread.
pub(crate) fn with_scratch<R>(pages: usize, f: impl FnOnce(&mut [Box<AlignedPage>]) -> R) -> R {
    // Taken out meanwhile: a store or log that calls a session again finds none and gets new pages.
    // So does a thread that is ending.
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    while scratch.len() < pages {
        scratch.push(AlignedPage::boxed());
    }
    let result = f(&mut scratch[..pages]);
    let _ = SCRATCH.try_with(|kept| kept.set(scratch));
    result
}

/// A page does not have the checksum that it should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("checksum of {page} does not match: stored {stored:08x}, computed {computed:08x}")]
pub struct ChecksumMismatch {
    /// The page.
    pub page: PageId,
    /// The checksum in the page.
    pub stored: u32,
    /// The checksum of what was read.
    pub computed: u32,
}

/// The LSN of a page.
#[must_use]
pub fn page_lsn(page: &PageBytes) -> Lsn {
    Lsn(PageRead::u64(page, 0))
}

/// The checksum that a page should carry: CRC-32C of its identity and contents.
#[cfg(not(miri))]
#[must_use]
pub fn compute_checksum(id: PageId, page: &PageBytes) -> u32 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    let mut head = [0; 8 + CHECKSUM.end];
    head[..8].copy_from_slice(&id.raw().to_le_bytes());
    head[8..16].copy_from_slice(&page[..CHECKSUM.start]);
    digest.update(&head);
    digest.update(&page[CHECKSUM.end..]);
    digest.finalize() as u32
}

/// The checksum that a page should carry. It covers only some of the bytes here: Miri takes seconds
/// for all of them, and every miss computes one.
#[cfg(miri)]
#[must_use]
pub fn compute_checksum(id: PageId, page: &PageBytes) -> u32 {
    let head = (0..CHECKSUM.start).chain(CHECKSUM.end..32);
    let places = head.chain((100..PAGE_SIZE).step_by(100)).chain([PAGE_SIZE - 1]);
    let add = |sum: u64, at: usize| (sum ^ u64::from(page[at])).wrapping_mul(0x100_0000_01B3);
    let sum = places.fold(id.raw().wrapping_mul(0x9E37_79B9_7F4A_7C15), add);
    (sum ^ sum >> 32) as u32
}

/// Sets the checksum of a page that is about to be written.
pub fn set_checksum(id: PageId, page: &mut PageBytes) {
    let checksum = compute_checksum(id, page);
    page[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
}

/// Checks the checksum of a page that was read. A page of zeros passes.
pub fn verify_checksum(id: PageId, page: &PageBytes) -> Result<(), ChecksumMismatch> {
    let stored = PageRead::u32(page, CHECKSUM.start);
    let computed = compute_checksum(id, page);
    if stored == computed || (stored == 0 && is_new(page)) {
        return Ok(());
    }
    Err(ChecksumMismatch { page: id, stored, computed })
}

/// Whether the checksum field is zero, as in a page of zeros.
pub(crate) fn has_no_checksum(page: &PageBytes) -> bool {
    PageRead::u32(page, CHECKSUM.start) == 0
}

/// Whether the page is all zeros.
#[must_use]
pub fn is_new(page: &PageBytes) -> bool {
    let (words, _) = page.as_chunks::<8>();
    words.iter().all(|word| u64::from_ne_bytes(*word) == 0)
}

/// A page whose bytes can be read. Numbers are little-endian; bytes beyond the end read as zero.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// /// Looks for a key among numbers from byte 16. The count may be torn, so it has a bound.
/// fn find(page: &impl PageRead, key: u64) -> Option<usize> {
///     let count = usize::from(page.u16(12)).min((PAGE_SIZE - 16) / 8);
///     (0..count).find(|nth| page.u64(16 + nth * 8) == key)
/// }
/// let optimistic = session.read(&rel, BlockNumber(0), Wait::Allowed, |page| find(page, 42))?;
/// let latched = find(&session.pin_shared(&rel, BlockNumber(0), Wait::Allowed)?, 42);
/// assert_eq!(optimistic, latched);
/// # Ok::<(), BufferError>(())
/// ```
pub trait PageRead {
    /// The byte at `offset`.
    fn u8(&self, offset: usize) -> u8;
    /// The two bytes at `offset` as a number.
    fn u16(&self, offset: usize) -> u16;
    /// The four bytes at `offset` as a number.
    fn u32(&self, offset: usize) -> u32;
    /// The eight bytes at `offset` as a number.
    fn u64(&self, offset: usize) -> u64;
    /// Fills `to` with the bytes from `offset`.
    fn copy(&self, offset: usize, to: &mut [u8]);
    /// Compares the `len` bytes from `offset` with `other`, as slices compare.
    fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Ordering;
}

/// `N` bytes from `offset`.
#[inline]
fn array<const N: usize>(page: &[u8; PAGE_SIZE], offset: usize) -> [u8; N] {
    if let Some(bytes) = offset.checked_add(N).and_then(|end| page.get(offset..end)) {
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        array
    } else {
        let mut array = [0; N];
        page.copy(offset, &mut array);
        array
    }
}

impl PageRead for [u8; PAGE_SIZE] {
    #[inline]
    fn u8(&self, offset: usize) -> u8 {
        self.get(offset).copied().unwrap_or(0)
    }

    #[inline]
    fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(array(self, offset))
    }

    #[inline]
    fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(array(self, offset))
    }

    #[inline]
    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(array(self, offset))
    }

    #[inline]
    fn copy(&self, offset: usize, to: &mut [u8]) {
        let from = self.get(offset..).unwrap_or_default();
        let len = from.len().min(to.len());
        to[..len].copy_from_slice(&from[..len]);
        to[len..].fill(0);
    }

    fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Ordering {
        let from = self.get(offset..).unwrap_or_default();
        let (inside, beyond) = (len.min(from.len()), len.saturating_sub(from.len()));
        from[..inside]
            .iter()
            .copied()
            .chain(std::iter::repeat_n(0, beyond))
            .cmp(other.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{BlockNumber, RelationId};

    #[test]
    fn a_checksum_covers_contents_and_identity() {
        let id = RelationId::constant(5).main().page(BlockNumber(3));
        let other = RelationId::constant(5).main().page(BlockNumber(4));
        let mut page = [0; PAGE_SIZE];
        verify_checksum(id, &page).unwrap();
        page[100] = 7;
        assert!(verify_checksum(id, &page).is_err());
        set_checksum(id, &mut page);
        verify_checksum(id, &page).unwrap();
        assert!(verify_checksum(other, &page).is_err());
        for at in [0, 12, 400, PAGE_SIZE - 1] {
            page[at] ^= 1;
            assert!(verify_checksum(id, &page).is_err());
            page[at] ^= 1;
        }
    }

    #[test]
    fn bytes_behind_the_end_are_zero() {
        let mut page = [0; PAGE_SIZE];
        page[PAGE_SIZE - 3..].copy_from_slice(&[1, 2, 3]);
        assert_eq!(page.u32(PAGE_SIZE - 3), 0x0003_0201);
        assert_eq!((page.u64(usize::MAX), page.u16(PAGE_SIZE), page.u8(PAGE_SIZE)), (0, 0, 0));
        let mut to = [9; 4];
        page.copy(PAGE_SIZE - 2, &mut to);
        assert_eq!(to, [2, 3, 0, 0]);
        assert_eq!(page.compare(PAGE_SIZE - 2, 3, &[2, 3, 0]), Ordering::Equal);
        assert_eq!(page.compare(PAGE_SIZE - 2, 2, &[2, 3, 0]), Ordering::Less);
        assert_eq!(page.compare(usize::MAX, 1, &[]), Ordering::Greater);
    }
}
