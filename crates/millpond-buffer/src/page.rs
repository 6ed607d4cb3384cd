//! What the pool knows of a page's contents: the LSN and the checksum at its beginning.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0..8 | LSN, little-endian |
//! | 8..12 | CRC-32C, little-endian: over the page's identity as 8 little-endian bytes, then the page with this field as zero |
//! | 12.. | the access method's |
//!
//! A page of zeros is valid and means "new". The checksum is set in the copy that is written and checked
//! where the page was read to; after that, in memory, the field means nothing.

use crate::PAGE_SIZE;
use crate::error::BufferError;
use crate::ids::{Lsn, PageId};
use crate::page_read::PageRead;

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

/// The LSN in a page.
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

/// The checksum that a page should carry: of some of its bytes only, since Miri takes seconds for all, and every miss
/// needs one.
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

/// Checks a page that was read. A page of zeros passes.
pub fn verify_checksum(id: PageId, page: &PageBytes) -> Result<(), BufferError> {
    let stored = PageRead::u32(page, CHECKSUM.start);
    let computed = compute_checksum(id, page);
    if stored == computed || (stored == 0 && is_new(page)) {
        return Ok(());
    }
    Err(BufferError::Checksum { page: id, stored, computed })
}

/// Whether the page has no checksum, as a page of zeros has none.
pub(crate) fn has_no_checksum(page: &PageBytes) -> bool {
    PageRead::u32(page, CHECKSUM.start) == 0
}

/// Whether the page is all zeros.
#[must_use]
pub fn is_new(page: &PageBytes) -> bool {
    let (words, _) = page.as_chunks::<8>();
    words.iter().all(|word| u64::from_ne_bytes(*word) == 0)
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
}
