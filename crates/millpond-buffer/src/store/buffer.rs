//! Memory for pages on their way to or from a store, and a cache of it for background writes.

use crate::PAGE_SIZE;
use crate::page::{AlignedPage, PageBytes};
use millpond_sync::sync::Mutex;
use std::fmt;

/// Memory for pages that are read or written together: one piece, aligned for direct I/O.
pub struct PageBuffer {
    pages: Box<[AlignedPage]>,
    used: usize,
}

impl fmt::Debug for PageBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageBuffer({} pages)", self.used)
    }
}

impl PageBuffer {
    /// Memory for `pages` pages, zeroed. (The pool makes its own; a test of a store needs some,
    /// too.)
    #[must_use]
    pub fn new(pages: usize) -> Self {
        Self { pages: (0..pages).map(|_| AlignedPage([0; PAGE_SIZE])).collect(), used: pages }
    }

    /// The number of pages that it has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.pages.len()
    }

    /// Uses the first `pages` of it.
    pub(crate) fn set_len(&mut self, pages: usize) {
        self.used = pages.min(self.pages.len());
    }

    /// The number of pages to be read or written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The pages.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = &PageBytes> {
        self.pages[..self.used].iter().map(|page| &page.0)
    }

    /// The pages, to be filled.
    pub fn pages_mut(&mut self) -> Vec<&mut PageBytes> {
        self.pages[..self.used].iter_mut().map(|page| &mut page.0).collect()
    }

    /// Where its memory begins: `len` contiguous pages.
    #[cfg(any(test, all(feature = "io-uring", target_os = "linux", not(millpond_portable))))]
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.pages.as_mut_ptr().cast()
    }
}

/// Buffer sizes that are cached: 1, 2, 4 .. 128 pages.
const SIZES: usize = 8;
/// The most pages cached per size: 4 MiB.
const KEPT_PAGES: usize = 512;
/// The most buffers cached per size.
const KEPT_BUFFERS: usize = 64;

/// A cache of buffers, one list for each power of two.
#[derive(Default)]
pub(crate) struct Buffers {
    kept: [Mutex<Vec<PageBuffer>>; SIZES],
}

impl Buffers {
    pub(crate) fn take(&self, pages: usize) -> PageBuffer {
        let capacity = pages.next_power_of_two();
        let kept = self.kept.get(capacity.ilog2() as usize).and_then(|kept| kept.lock().pop());
        let mut buffer = kept.unwrap_or_else(|| PageBuffer::new(capacity));
        buffer.set_len(pages);
        buffer
    }

    pub(crate) fn keep(&self, buffer: PageBuffer) {
        let capacity = buffer.capacity();
        let Some(kept) = self.kept.get(capacity.max(1).ilog2() as usize) else { return };
        let mut kept = kept.lock();
        if capacity.is_power_of_two() && kept.len() < (KEPT_PAGES / capacity).min(KEPT_BUFFERS) {
            kept.push(buffer);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_are_aligned() {
        let mut buffer = PageBuffer::new(3);
        let start = buffer.start() as usize;
        assert_eq!(start % PAGE_SIZE.min(4096), 0);
        for (at, page) in buffer.pages().enumerate() {
            assert_eq!(page.as_ptr() as usize, start + at * PAGE_SIZE);
        }
        buffer.set_len(1);
        assert_eq!((buffer.len(), buffer.capacity(), buffer.pages_mut().len()), (1, 3, 1));
    }
}
