//! A change of a page, as far as the frame's state and version are concerned.

use super::Frame;

/// A change of the page that a frame holds, under the frame's exclusive latch. A change that does
/// not end leaves the version odd.
pub(crate) struct Change<'f> {
    frame: &'f Frame,
    was_clean: bool,
    has_written: bool,
}

/// What the first store of a change has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Optimistic readers are kept out from now on, or have been since an earlier store of this
    /// change.
    KeptOut,
    /// An earlier change under this latch has kept them out, and has not ended.
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

    /// Whether anything may have been stored.
    #[inline]
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// The page is about to be stored to.
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

    /// The page is whole again: optimistic readers may come. Something has been stored.
    #[inline]
    pub(crate) fn end(&self) {
        self.frame.read.version.write_end();
    }
}
