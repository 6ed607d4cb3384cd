//! Changes of a page, and how the numbers in a latched page are read.

use super::{ExclusivePage, SharedPage};
use crate::core::frame::{Change, Readers};
use crate::ids::{Lsn, PageId};
use crate::page::words::{self, PageWords};
use crate::page::{PageBytes, PageRead};
use std::cmp::Ordering;
use std::{fmt, mem};

/// A change of a page. Optimistic readers are kept out from the first write to the end.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// let mut page = session.pin(&rel, BlockNumber(0), Wait::Allowed)?.into_exclusive()?;
/// let mut change = page.change();        // The page is dirty from now on.
/// let end = Lsn(200);                    // Append the record to the log here.
/// change.write(16, &7u32.to_le_bytes()); // Readers are kept out from here
/// change.publish(end);                   // to here.
/// # Ok::<(), BufferError>(())
/// ```
pub struct PageChange<'p> {
    /// Borrowed from a `&mut`, so no other code looks at the page through it meanwhile.
    latched: &'p ExclusivePage<'p>,
    change: Change<'p>,
}

impl<'p> PageChange<'p> {
    #[inline]
    pub(super) fn begin(latched: &'p mut ExclusivePage<'_>) -> Self {
        Self { change: Change::begin(latched.pin.descriptor()), latched }
    }
}

impl PageChange<'_> {
    /// The page's bytes, with what has been written so far.
    // Only while `self` is borrowed: the next write may change them.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &PageBytes {
        self.latched.bytes()
    }

    /// Which page it is.
    #[inline]
    #[must_use]
    pub fn page_id(&self) -> PageId {
        self.latched.page_id()
    }

    /// The page's words, for stores. Optimistic readers are kept out from now on.
    #[inline]
    fn words(&mut self) -> &PageWords {
        let pin = &self.latched.pin;
        // An earlier change under this latch was forgotten, which counts as interrupted.
        if self.change.writes() == Readers::KeptOutByAnother && !pin.is_damaged() {
            pin.damage();
        }
        pin.session.pool.words(pin.frame)
    }

    /// Writes bytes at an offset. Bytes beyond the end of the page are left out; in debug builds
    /// that panics, and the page is damaged. Bytes 0 to 11 are the pool's: the LSN that
    /// [`PageChange::publish`] sets, and the checksum of the page in the store.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        words::store(self.words(), offset, bytes);
    }

    /// Writes the whole page.
    pub fn write_page(&mut self, bytes: &PageBytes) {
        words::copy_in(self.words(), bytes);
    }

    /// Ends the change and sets the page's LSN: the end of its log record. The pool flushes the log
    /// that far before it writes the page to the store
    /// ([`LogFlush::flush_to`](crate::LogFlush::flush_to)).
    #[inline]
    pub fn publish(mut self, lsn: Lsn) {
        self.write(0, &lsn.0.to_le_bytes());
        self.publish_unlogged();
    }

    /// Ends a change that no log record describes, such as a hint. The LSN stays, and a crash may
    /// lose the change.
    #[inline]
    pub fn publish_unlogged(self) {
        // If this guard has damaged the page, it stays damaged.
        if self.change.has_written() && !self.latched.pin.is_damaged() {
            self.change.end();
        }
        // Skip `drop`, which undoes a change that was not published. The guard owns nothing else.
        mem::forget(self);
    }

    /// Ends a change that has written nothing: a page that was clean is clean again. (If it has
    /// written something, the page is damaged, as when the change is dropped.)
    #[inline]
    pub fn cancel(self) {}
}

impl Drop for PageChange<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.change.has_written() {
            self.latched.pin.damage();
        } else if self.change.leaves_it_clean() {
            self.latched.pin.descriptor().unmark_dirty();
        }
    }
}

impl fmt::Debug for PageChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageChange({})", self.page_id())
    }
}

macro_rules! read_through_bytes {
    ($($guard:ident),*) => {$(
        impl PageRead for $guard<'_> {
            #[inline]
            fn u8(&self, offset: usize) -> u8 {
                PageRead::u8(self.bytes(), offset)
            }

            #[inline]
            fn u16(&self, offset: usize) -> u16 {
                PageRead::u16(self.bytes(), offset)
            }

            #[inline]
            fn u32(&self, offset: usize) -> u32 {
                PageRead::u32(self.bytes(), offset)
            }

            #[inline]
            fn u64(&self, offset: usize) -> u64 {
                PageRead::u64(self.bytes(), offset)
            }

            #[inline]
            fn copy(&self, offset: usize, to: &mut [u8]) {
                self.bytes().copy(offset, to);
            }

            #[inline]
            fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Ordering {
                self.bytes().compare(offset, len, other)
            }
        }
    )*};
}

read_through_bytes!(SharedPage, ExclusivePage, PageChange);
