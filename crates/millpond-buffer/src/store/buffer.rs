//! Memory for pages on their way to or from a store.

use crate::PAGE_SIZE;
use crate::page::{AlignedPage, PageBytes};
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
    /// Memory for that many pages, of zeros. (The pool makes its own; who tests a store needs some, too.)
    #[must_use]
    pub fn new(pages: usize) -> Self {
        Self { pages: (0..pages).map(|_| AlignedPage([0; PAGE_SIZE])).collect(), used: pages }
    }

    /// How many pages it has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.pages.len()
    }

    /// Uses the first `pages` of it.
    pub(crate) fn set_len(&mut self, pages: usize) {
        self.used = pages.min(self.pages.len());
    }

    /// How many pages are to be read or written.
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

    /// Where its memory begins: `len` pages that follow each other.
    #[cfg(any(test, feature = "io-uring"))]
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.pages.as_mut_ptr().cast()
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
