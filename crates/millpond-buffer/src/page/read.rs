//! Reading numbers and bytes of a page, however the caller holds the page.
//!
//! Access methods write their search code once, over [`PageRead`]. It runs on latched pages, on
//! private copies and on optimistic views whose bytes may be torn. So no method panics: bytes
//! beyond the page's end read as zero.

use std::cmp::Ordering;

use crate::PAGE_SIZE;

/// A page whose bytes can be read. Numbers are little-endian; bytes beyond the end read as zero.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # pool.create(rel)?;
/// # let rel = pool.relation(rel)?;
/// # let session = pool.session()?;
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
