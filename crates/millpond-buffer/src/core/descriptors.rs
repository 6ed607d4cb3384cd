//! The descriptors of all frames that the pool can have, in one mapped region.
#![allow(unsafe_code)]

use super::frame::Frame;
use crate::arena::ArenaError;
#[cfg(not(any(miri, loom, shuttle)))]
use crate::arena::{map, unmap};
use std::ops::Deref;
#[cfg(not(any(miri, loom, shuttle)))]
use std::ptr::NonNull;

/// The descriptors of all frames that the pool can have.
///
/// A descriptor that was never used is all zeros and takes no memory: see [`Frame::begin_life`].
#[cfg(not(any(miri, loom, shuttle)))]
pub(crate) struct Descriptors {
    base: NonNull<Frame>,
    len: usize,
}

// SAFETY: the region belongs to the table alone, and is accessed only as shared `Frame`s, which are
// `Sync`.
#[cfg(not(any(miri, loom, shuttle)))]
unsafe impl Send for Descriptors {}
// SAFETY: as above.
#[cfg(not(any(miri, loom, shuttle)))]
unsafe impl Sync for Descriptors {}

#[cfg(not(any(miri, loom, shuttle)))]
impl Descriptors {
    /// In huge pages, like the frames: each access to a page of the pool also accesses its
    /// descriptor.
    pub(crate) fn new(len: usize, huge_pages: bool) -> Result<Self, ArenaError> {
        let bytes = len.checked_mul(size_of::<Frame>()).filter(|&bytes| bytes > 0);
        let bytes = bytes.ok_or(ArenaError::Size { what: "the number of frames" })?;
        let base = map(bytes, huge_pages)?;
        Ok(Self { base: base.cast(), len })
    }
}

#[cfg(not(any(miri, loom, shuttle)))]
impl Deref for Descriptors {
    type Target = [Frame];

    #[inline]
    fn deref(&self) -> &[Frame] {
        // SAFETY: the region has `len` descriptors, lives as long as `self`, and is aligned to a
        // page of memory. All zeros is a valid `Frame`, since it consists of atomic integers and
        // pointers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

#[cfg(not(any(miri, loom, shuttle)))]
impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: `base` and the size are those of `map`; references borrow `self`. Frames own
        // nothing.
        unsafe { unmap(self.base.cast(), self.len * size_of::<Frame>()) };
    }
}

/// The descriptors, but not in mapped memory: a model checker's atomics are not all zeros.
#[cfg(any(miri, loom, shuttle))]
pub(crate) struct Descriptors(Box<[Frame]>);

#[cfg(any(miri, loom, shuttle))]
impl Descriptors {
    pub(crate) fn new(len: usize, _huge_pages: bool) -> Result<Self, ArenaError> {
        Ok(Self((0..len).map(|_| Frame::new()).collect()))
    }
}

#[cfg(any(miri, loom, shuttle))]
impl Deref for Descriptors {
    type Target = [Frame];

    fn deref(&self) -> &[Frame] {
        &self.0
    }
}
