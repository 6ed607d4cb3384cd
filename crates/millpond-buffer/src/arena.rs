//! The memory of the frames: one region, mapped when the pool is made and unmapped when the last of its
//! sessions, and the last read that it has been lent to, is gone (rule 2). It has room for as many frames as the pool can ever have; what is not used
//! takes addresses but no memory. The same goes for the descriptors.
//!
//! The bytes of a frame are only ever accessed as relaxed atomic words, or, while a latch keeps writers
//! away, or its owner checks it, through a shared reference to bytes (rule 5). No `&mut` to them is ever formed: the kernel
//! fills them as atomic words.
//!
//! Page words are the standard library's atomics even under a model checker: the checker explores the
//! protocol around them, not each of 1,024 words.
#![allow(unsafe_code)]

use crate::PAGE_SIZE;
use crate::error::BufferError;
use crate::frame::{Frame, fence_before_filling};
use crate::page::PageBytes;
#[cfg(not(any(miri, shuttle)))]
use millpond_sync::audit;
use millpond_sync::mutant;
use smallvec::SmallVec;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Words in a page.
pub const PAGE_WORDS: usize = PAGE_SIZE / 8;

/// The bytes of a frame, as optimistic readers see them, in memory order. Who may load them may do so at any time, as
/// [`std::sync::atomic::AtomicU64`] allows.
pub type PageWords = [AtomicU64; PAGE_WORDS];

/// One region of memory for all frames.
pub(crate) struct Arena {
    place: Place,
    region: Arc<Region>,
}

/// Where a region is.
#[derive(Clone, Copy)]
struct Place {
    base: NonNull<u8>,
    frames: usize,
}

// SAFETY: the region belongs to the arena and what has been lent of it alone, and is accessed only through `words` (atomics) and
// `bytes` (whose callers keep writers away).
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    #[inline]
    fn address(&self, frame: u32) -> *const u8 {
        let frame = frame as usize;
        assert!(frame < self.frames, "frame {frame} of {}", self.frames);
        // SAFETY: the offset is inside the region, by the assertion.
        unsafe { self.base.as_ptr().add(frame * PAGE_SIZE) }
    }
}

/// What keeps a region mapped.
struct Region(Place);

impl Region {
    fn words(&self, frame: u32) -> &PageWords {
        // SAFETY: as in `Arena::words`; the region lives as long as `self`.
        unsafe { &*self.0.address(frame).cast::<PageWords>() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `base` and the size are those of `map`, and no reference into the region is left,
        // since references borrow the arena, or what has been lent, which own this.
        unsafe { unmap(self.0.base, self.0.frames * PAGE_SIZE) };
    }
}

/// The memory of frames, lent to a read that fills them and may outlast whoever has begun it. It stays mapped, and the frames
/// are nobody's, until this has been given back: also if it never is, because a device may still write.
pub(crate) struct Lent {
    region: Arc<Region>,
    frames: SmallVec<[u32; 4]>,
}

impl Lent {
    /// How many frames.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Their memory, to be filled by whoever calls this: what he knows is seen by late readers who see what he, or a kernel that he calls, then stores.
    pub(crate) fn words(&self) -> impl Iterator<Item = &PageWords> {
        if !mutant!("pool-lend-without-fence") {
            fence_before_filling();
        }
        self.frames.iter().map(|&frame| self.region.words(frame))
    }
}

impl Arena {
    /// Memory for that many frames, all zero.
    pub(crate) fn new(frames: usize, huge_pages: bool) -> Result<Self, BufferError> {
        let bytes = frames.checked_mul(PAGE_SIZE).filter(|&bytes| bytes > 0);
        let bytes = bytes.ok_or(BufferError::Config { what: "the pool's size in bytes" })?;
        let base = map(bytes, huge_pages)
            .map_err(|why| BufferError::OutOfMemory { bytes, why: why.into() })?;
        let place = Place { base, frames };
        Ok(Self { place, region: Arc::new(Region(place)) })
    }

    /// A frame's words.
    #[inline]
    pub(crate) fn words(&self, frame: u32) -> &PageWords {
        // SAFETY: `address` is inside the region, which lives as long as `self`, is zero-initialised
        // and aligned to a page; and all concurrent accesses to it are atomic or, through `bytes`,
        // reads while nobody writes.
        unsafe { &*self.place.address(frame).cast::<PageWords>() }
    }

    /// Lends the memory of frames that the caller owns.
    pub(crate) fn lend(&self, frames: impl Iterator<Item = u32>) -> Lent {
        Lent { region: Arc::clone(&self.region), frames: frames.collect() }
    }

    /// A frame's bytes.
    ///
    /// # Safety
    ///
    /// While the reference lives nobody may store to the frame's words: for as long the caller holds the frame's
    /// latch, shared or exclusive, or owns the frame, has not lent its memory, and lets nobody store.
    #[inline]
    pub(crate) unsafe fn bytes(&self, frame: u32) -> &PageBytes {
        // SAFETY: inside the region as for `words`; nobody writes, by this function's contract.
        unsafe { &*self.place.address(frame).cast::<PageBytes>() }
    }

    /// Gives the memory of frames back to the system, as far as that takes memory from no other
    /// frame. They stay mapped. The caller owns them, and nobody refers to their bytes.
    pub(crate) fn release(&self, frames: Range<usize>) {
        if frames.is_empty() {
            return;
        }
        #[cfg(not(any(miri, shuttle)))]
        {
            use rustix::mm::{Advice, madvise};
            let bytes = whole_pages(frames, rustix::param::page_size());
            if bytes.is_empty() {
                return;
            }
            let start = self.place.base.as_ptr().wrapping_add(bytes.start);
            // SAFETY: within whole frames inside the region. A reader that still looks at them does so by
            // relaxed atomic loads, for which this is another's store of zeros.
            let released = unsafe { madvise(start.cast(), bytes.len(), Advice::LinuxDontNeed) };
            if let Err(error) = released {
                tracing::warn!(%error, "the memory of frames could not be given back");
            }
        }
    }
}

/// The bytes of frames, without what they share with others of a page of the system's. Such a page
/// may be larger than a frame.
#[cfg(not(any(miri, shuttle)))]
fn whole_pages(frames: Range<usize>, system_page: usize) -> Range<usize> {
    let start = (frames.start * PAGE_SIZE).next_multiple_of(system_page);
    let end = frames.end * PAGE_SIZE / system_page * system_page;
    start..end.max(start)
}

/// The descriptors of all frames that the pool can have.
///
/// Descriptors of frames that were never used are zero, and take no memory: see [`Frame::begin_life`].
#[cfg(not(any(miri, loom, shuttle)))]
pub(crate) struct Descriptors {
    base: NonNull<Frame>,
    len: usize,
}

// SAFETY: the region belongs to the table alone, and is accessed only as shared `Frame`s, which are `Sync`.
#[cfg(not(any(miri, loom, shuttle)))]
unsafe impl Send for Descriptors {}
// SAFETY: as above.
#[cfg(not(any(miri, loom, shuttle)))]
unsafe impl Sync for Descriptors {}

#[cfg(not(any(miri, loom, shuttle)))]
impl Descriptors {
    /// In huge pages like the frames: each access to a page of the pool comes with one to its descriptor.
    pub(crate) fn new(len: usize, huge_pages: bool) -> Result<Self, BufferError> {
        let bytes = len.checked_mul(size_of::<Frame>()).filter(|&bytes| bytes > 0);
        let bytes = bytes.ok_or(BufferError::Config { what: "the number of frames" })?;
        let base = map(bytes, huge_pages)
            .map_err(|why| BufferError::OutOfMemory { bytes, why: why.into() })?;
        Ok(Self { base: base.cast(), len })
    }
}

#[cfg(not(any(miri, loom, shuttle)))]
impl Deref for Descriptors {
    type Target = [Frame];

    #[inline]
    fn deref(&self) -> &[Frame] {
        // SAFETY: the region has `len` descriptors, lives as long as `self`, is aligned to a page of
        // memory, and all zeros is a `Frame`: it consists of atomic integers and pointers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

#[cfg(not(any(miri, loom, shuttle)))]
impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: `base` and the size are those of `map`; references borrow `self`. Frames own nothing.
        unsafe { unmap(self.base.cast(), self.len * size_of::<Frame>()) };
    }
}

/// The descriptors of all frames that the pool can have. (A model checker's atomics are not zeros.)
#[cfg(any(miri, loom, shuttle))]
pub(crate) struct Descriptors(Box<[Frame]>);

#[cfg(any(miri, loom, shuttle))]
impl Descriptors {
    pub(crate) fn new(len: usize, _huge_pages: bool) -> Result<Self, BufferError> {
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

#[cfg(not(any(miri, shuttle)))]
fn map(bytes: usize, huge_pages: bool) -> Result<NonNull<u8>, String> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh anonymous mapping, at an address of the system's choice.
    let base = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            bytes,
            protection,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
        .map_err(|error| error.to_string())?
    };
    if huge_pages {
        // SAFETY: advice on our own fresh mapping changes none of its contents. That it may be refused
        // is fine: it is only about speed.
        let advised = unsafe { madvise(base, bytes, Advice::LinuxHugepage) };
        if let Err(error) = advised {
            tracing::debug!(%error, "no huge pages for the pool");
        }
    }
    audit::mapped(base.addr(), bytes);
    NonNull::new(base.cast()).ok_or_else(|| "mapped at address zero".to_owned())
}

#[cfg(not(any(miri, shuttle)))]
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    audit::unmapped(base.as_ptr().addr());
    // SAFETY: by this function's only caller, the mapping is ours and unused.
    let unmapped = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
    if let Err(error) = unmapped {
        tracing::error!(%error, "could not unmap the pool");
    }
}

#[cfg(any(miri, shuttle))]
fn layout(bytes: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(bytes, 4096).expect("a small pool")
}

#[cfg(any(miri, shuttle))]
fn map(bytes: usize, _huge_pages: bool) -> Result<NonNull<u8>, String> {
    // SAFETY: the size is not zero.
    let base = unsafe { std::alloc::alloc_zeroed(layout(bytes)) };
    NonNull::new(base).ok_or_else(|| "out of memory".to_owned())
}

#[cfg(any(miri, shuttle))]
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: allocated by `map` with the same layout.
    unsafe { std::alloc::dealloc(base.as_ptr(), layout(bytes)) };
}

#[cfg(all(test, not(any(miri, loom, shuttle))))]
mod tests {
    use super::*;

    /// With pages of 64 KiB the system takes memory back by eight frames: those at the ends stay.
    #[test]
    fn memory_goes_back_by_pages_of_the_system() {
        const SYSTEM_PAGE: usize = 64 << 10;
        let frames = |range: Range<usize>| range.start * PAGE_SIZE..range.end * PAGE_SIZE;
        assert_eq!(whole_pages(3..50, 4096), frames(3..50));
        assert_eq!(whole_pages(3..50, SYSTEM_PAGE), frames(8..48));
        assert_eq!(whole_pages(8..16, SYSTEM_PAGE), frames(8..16));
        for few in [3..8, 3..15, 9..16, 3..3] {
            assert!(whole_pages(few.clone(), SYSTEM_PAGE).is_empty(), "{few:?}");
        }
    }
}
