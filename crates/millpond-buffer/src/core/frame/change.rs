//! A change of a page: what it does to the state word and the version of the page's frame.
//!
//! The caller holds the frame's exclusive latch, and does the following ([`super`] has the state):
//!
//! 1. [`Change::begin`] sets DIRTY. The log record does not exist yet, so a checkpoint that starts
//!    after the record finds the page dirty.
//! 2. [`Change::writes`], before the first store to the page, makes the version odd. That keeps
//!    optimistic readers out.
//! 3. [`Change::end`] makes the version even. The page is whole.
//!
//! A change that has stored nothing leaves the version as it is. Its caller may clear DIRTY again
//! ([`Change::leaves_it_clean`]). A change that has stored something and does not end leaves the
//! version odd. By that, the holder of the latch notices it, and marks the page as damaged
//! (`guard.rs`, `guard/change.rs`).

use super::Frame;

/// A change of the page in a frame, under the frame's exclusive latch. A change that does not end
/// leaves the version odd.
pub(crate) struct Change<'f> {
    frame: &'f Frame,
    was_clean: bool,
    has_written: bool,
}

/// What the first store of a change found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Optimistic readers are kept out from now on, or since an earlier store of this change.
    KeptOut,
    /// An earlier change under this latch keeps them out, and has not ended.
    KeptOutByAnother,
}

impl<'f> Change<'f> {
    /// Marks the page dirty.
    #[inline]
    pub(crate) fn begin(frame: &'f Frame) -> Self {
        Self { frame, was_clean: frame.mark_dirty(), has_written: false }
    }

    /// Whether the page was clean before, and nothing has been stored since.
    #[inline]
    pub(crate) fn leaves_it_clean(&self) -> bool {
        self.was_clean && !self.has_written
    }

    /// Whether the change may have stored anything.
    #[inline]
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Call this before a store to the page.
    #[inline]
    pub(crate) fn writes(&mut self) -> Readers {
        if self.has_written {
            return Readers::KeptOut;
        }
        self.has_written = true;
        let version = &self.frame.read.version;
        if version.is_changing() {
            return Readers::KeptOutByAnother;
        }
        version.write_begin();
        Readers::KeptOut
    }

    /// Ends a change that has stored something: the page is whole, and optimistic readers may read
    /// it.
    #[inline]
    pub(crate) fn end(&self) {
        self.frame.read.version.write_end();
    }
}
