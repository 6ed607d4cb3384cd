//! A change of a page: it keeps optimistic readers out from its first write to its end.

use super::ExclusivePage;
use crate::frame::{Change, Readers};
use crate::ids::{Lsn, PageId};
use crate::page::PageBytes;
use crate::words;
use std::fmt;
use std::mem;

/// A change of a page. Optimistic readers are kept out from the first write to the end.
pub struct PageChange<'p> {
    /// Borrowed from a `&mut`: nobody else looks at the page through it meanwhile.
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
    // Not for longer than `self` is borrowed: the next write may change them.
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

    /// The page's words, to be stored to: from now on optimistic readers are kept out.
    #[inline]
    fn words(&mut self) -> &crate::PageWords {
        let pin = &self.latched.pin;
        // An earlier change under this latch was forgotten, which comes to the same as being
        // interrupted.
        if self.change.writes() == Readers::KeptOutByAnother && !pin.is_damaged() {
            pin.damage();
        }
        pin.session.pool.words(pin.frame)
    }

    /// Writes bytes at an offset. Whatever would lie beyond the end of the page is left out; in debug builds that is a panic, and
    /// the page damaged. Bytes 0 to 11 are the pool's: the LSN that [`PageChange::publish`] sets, and the checksum of what is
    /// written to the store.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        words::store(self.words(), offset, bytes);
    }

    /// Writes the whole page.
    pub fn write_page(&mut self, bytes: &PageBytes) {
        words::copy_in(self.words(), bytes);
    }

    /// Ends the change and sets the page's LSN: the end of its log record. Before the page is written to the store the log is
    /// flushed that far ([`LogFlush::flush_to`](crate::LogFlush::flush_to)).
    #[inline]
    pub fn publish(mut self, lsn: Lsn) {
        self.write(0, &lsn.0.to_le_bytes());
        self.publish_unlogged();
    }

    /// Ends a change that no log record describes, such as a hint. The LSN stays, and a crash may lose the change.
    #[inline]
    pub fn publish_unlogged(self) {
        // A page that this guard has damaged before stays so.
        if self.change.has_written() && !self.latched.pin.is_damaged() {
            self.change.end();
        }
        // It owns nothing; only a change that isn't published has something to undo.
        mem::forget(self);
    }

    /// Ends a change that has written nothing: a page that was clean is clean again. (If something
    /// was written, the page is damaged, as when the change is dropped.)
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
