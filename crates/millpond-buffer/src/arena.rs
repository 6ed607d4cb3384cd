//! The memory of the frames: one region, mapped when the pool is made. It is unmapped when the
//! pool's last session and the last read that borrowed it are gone (rule 2). It has room for as
//! many frames as the pool can ever have. Unused frames take addresses but no memory, and so do
//! their descriptors.
//!
//! All accesses to the bytes of a frame are relaxed atomic, with one exception (rule 5). They may
//! be read through a shared reference to bytes while a latch keeps writers away, or while the
//! frame's owner checks them. No code forms a `&mut` to them: the kernel fills them as atomic
//! words.
#![allow(unsafe_code)]

use crate::PAGE_SIZE;
use crate::page::PageBytes;
use crate::page::words::PageWords;
use millpond_sync::atomic::{Ordering, fence};
#[cfg(not(any(miri, shuttle)))]
use millpond_sync::audit;
use millpond_sync::mutant;
use smallvec::SmallVec;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

#[cfg(all(test, not(any(loom, shuttle))))]
thread_local! {
    /// How often this thread has made the fence before filling.
    pub(crate) static FENCED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Why there is no memory for frames.
#[derive(Debug, Clone)]
pub(crate) enum ArenaError {
    /// The size is zero or too large.
    Size { what: &'static str },
    /// The system has none.
    OutOfMemory { bytes: usize, why: Arc<str> },
}

/// The release fence before this thread, or a kernel that it calls, stores to the bytes of an owned
/// frame. Another thread may have made the version odd. The frame may have come through a freelist,
/// a load that was handed over, or a queue of reads. That thread's release fence does not cover
/// this thread's stores. This fence does: it pairs with the acquire fence of `Version::validate`. A
/// reader that has seen any of the new bytes sees what this thread knows, and so sees the odd
/// version.
#[inline]
pub(crate) fn fence_before_filling() {
    #[cfg(all(test, not(any(loom, shuttle))))]
    FENCED.with(|fenced| fenced.set(fenced.get() + 1));
    if !mutant!("pool-filling-without-fence") {
        fence(Ordering::Release);
    }
}

/// One region of memory for all frames.
pub(crate) struct Arena {
    place: Place,
    region: Arc<Region>,
}

#[derive(Clone, Copy)]
struct Place {
    base: NonNull<u8>,
    frames: usize,
}

// SAFETY: the region belongs only to the arena and to the memory lent from it. It is accessed only
// through `words` (atomics) and `bytes` (whose callers keep writers away).
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

/// Keeps a region mapped.
struct Region(Place);

impl Region {
    fn words(&self, frame: u32) -> &PageWords {
        // SAFETY: as in `Arena::words`; the region lives as long as `self`.
        unsafe { &*self.0.address(frame).cast::<PageWords>() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `base` and the size are those of `map`. No reference into the region is left: a
        // reference borrows the arena or a `IoFrames`, and both own this `Region`.
        unsafe { unmap(self.0.base, self.0.frames * PAGE_SIZE) };
    }
}

/// The memory of frames, lent to a read that fills them. The read may outlast the session that
/// began it. Until this is given back, the region stays mapped and the frames hold no page. That
/// also holds if this is never given back, because a device may still write.
pub(crate) struct IoFrames {
    region: Arc<Region>,
    frames: SmallVec<[u32; 4]>,
}

impl IoFrames {
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Their memory, which the calling thread is about to fill, itself or through the kernel. A
    /// late reader that sees any new byte also sees what this thread knows (the odd versions).
    pub(crate) fn words(&self) -> impl Iterator<Item = &PageWords> {
        if !mutant!("pool-lend-without-fence") {
            fence_before_filling();
        }
        self.frames.iter().map(|&frame| self.region.words(frame))
    }
}

impl Arena {
    /// Memory for `frames` frames, all zeros.
    pub(crate) fn new(frames: usize, huge_pages: bool) -> Result<Self, ArenaError> {
        let bytes = frames.checked_mul(PAGE_SIZE).filter(|&bytes| bytes > 0);
        let bytes = bytes.ok_or(ArenaError::Size { what: "the pool's size in bytes" })?;
        let base = map(bytes, huge_pages)?;
        let place = Place { base, frames };
        Ok(Self { place, region: Arc::new(Region(place)) })
    }

    #[inline]
    pub(crate) fn words(&self, frame: u32) -> &PageWords {
        // SAFETY: `address` is inside the region, which lives as long as `self`, is
        // zero-initialised and aligned to a page. All concurrent accesses to it are atomic, or are
        // reads through `bytes` while no thread writes.
        unsafe { &*self.place.address(frame).cast::<PageWords>() }
    }

    /// Lends the memory of frames that the caller owns.
    pub(crate) fn lend(&self, frames: impl Iterator<Item = u32>) -> IoFrames {
        IoFrames { region: Arc::clone(&self.region), frames: frames.collect() }
    }

    /// A frame's bytes.
    ///
    /// # Safety
    ///
    /// While the reference lives, no thread may store to the frame's words. So for that time the
    /// caller must hold the frame's latch, shared or exclusive. Or it must own the frame, must not
    /// have lent its memory, and must let no thread store.
    #[inline]
    pub(crate) unsafe fn bytes(&self, frame: u32) -> &PageBytes {
        // SAFETY: inside the region as for `words`; no thread writes, by this function's contract.
        unsafe { &*self.place.address(frame).cast::<PageBytes>() }
    }

    /// Gives the memory of frames back to the system, except for system pages that other frames
    /// share. The frames stay mapped. The caller owns them, and nothing refers to their bytes.
    pub(crate) fn release(&self, frames: Range<usize>) {
        if frames.is_empty() {
            return;
        }
        #[cfg(not(any(miri, shuttle)))]
        {
            let bytes = whole_pages(frames, rustix::param::page_size());
            if bytes.is_empty() {
                return;
            }
            let start = self.place.base.as_ptr().wrapping_add(bytes.start);
            // SAFETY: within whole frames inside the region. A late reader looks at them only by
            // relaxed atomic loads; to it this is a store of zeros by another thread, now or later.
            let released = unsafe { system::release(start.cast(), bytes.len()) };
            if let Err(error) = released {
                tracing::warn!(%error, "could not return unused frame memory to the system");
            }
        }
    }
}

/// What Linux has for large mappings.
#[cfg(all(target_os = "linux", not(any(millpond_portable, miri, shuttle))))]
mod system {
    use rustix::io::Result;
    use rustix::mm::{Advice, MapFlags, madvise};
    use std::ffi::c_void;

    /// The pool's memory counts when it is used, not when it is mapped.
    pub(super) const MAP: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);

    /// Gives pages back at once. Their next use finds zeros.
    ///
    /// # Safety
    ///
    /// The caller owns these whole pages, and needs nothing that is in them.
    pub(super) unsafe fn release(start: *mut c_void, bytes: usize) -> Result<()> {
        // SAFETY: by this function's contract.
        unsafe { madvise(start, bytes, Advice::LinuxDontNeed) }
    }

    /// Asks for huge pages.
    ///
    /// # Safety
    ///
    /// The pages are mapped and the caller's own.
    pub(super) unsafe fn advise_huge(start: *mut c_void, bytes: usize) -> Result<()> {
        // SAFETY: by this function's contract. The advice changes no contents.
        unsafe { madvise(start, bytes, Advice::LinuxHugepage) }
    }
}

/// What every system has: memory that it takes back when it needs it, and no choice of page size.
#[cfg(all(not(all(target_os = "linux", not(millpond_portable))), not(any(miri, shuttle))))]
mod system {
    use rustix::io::{Errno, Result};
    use rustix::mm::MapFlags;
    use std::ffi::c_void;

    pub(super) const MAP: MapFlags = MapFlags::PRIVATE;

    /// Gives pages back when the system is short of memory. Until then they keep their contents;
    /// afterwards their next use finds zeros.
    ///
    /// # Safety
    ///
    /// The caller owns these whole pages, and needs nothing that is in them.
    pub(super) unsafe fn release(start: *mut c_void, bytes: usize) -> Result<()> {
        // SAFETY: by this function's contract. rustix knows this advice on Linux alone.
        let failed = unsafe { libc::madvise(start, bytes, libc::MADV_FREE) } != 0;
        if failed {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
        }
        Ok(())
    }

    /// Huge pages are not for a program to ask for.
    ///
    /// # Safety
    ///
    /// None is needed: it does nothing.
    pub(super) unsafe fn advise_huge(_start: *mut c_void, _bytes: usize) -> Result<()> {
        Ok(())
    }
}

/// The bytes of frames, without the system pages that they share with other frames. A system page
/// may be larger than a frame.
#[cfg(not(any(miri, shuttle)))]
fn whole_pages(frames: Range<usize>, system_page: usize) -> Range<usize> {
    let start = (frames.start * PAGE_SIZE).next_multiple_of(system_page);
    let end = frames.end * PAGE_SIZE / system_page * system_page;
    start..end.max(start)
}

#[cfg(not(any(miri, shuttle)))]
pub(crate) fn map(bytes: usize, huge_pages: bool) -> Result<NonNull<u8>, ArenaError> {
    use rustix::mm::{ProtFlags, mmap_anonymous};
    let failed = |why: String| ArenaError::OutOfMemory { bytes, why: why.into() };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh anonymous mapping, at an address of the system's choice.
    let base = unsafe {
        mmap_anonymous(std::ptr::null_mut(), bytes, protection, system::MAP)
            .map_err(|error| failed(error.to_string()))?
    };
    if huge_pages {
        // SAFETY: the advice is for a fresh mapping of this function's own, and changes none of its
        // contents. The system may refuse it, which affects only speed.
        let advised = unsafe { system::advise_huge(base, bytes) };
        if let Err(error) = advised {
            tracing::debug!(%error, "no huge pages for the pool");
        }
    }
    audit::mapped(base.addr(), bytes);
    NonNull::new(base.cast()).ok_or_else(|| failed("mapped at address zero".to_owned()))
}

#[cfg(not(any(miri, shuttle)))]
pub(crate) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    audit::unmapped(base.as_ptr().addr());
    // SAFETY: both callers pass a mapping that `map` made for them and that nothing uses any more.
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
pub(crate) fn map(bytes: usize, _huge_pages: bool) -> Result<NonNull<u8>, ArenaError> {
    // SAFETY: the size is not zero.
    let base = unsafe { std::alloc::alloc_zeroed(layout(bytes)) };
    NonNull::new(base).ok_or_else(|| ArenaError::OutOfMemory { bytes, why: "no memory".into() })
}

#[cfg(any(miri, shuttle))]
pub(crate) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: allocated by `map` with the same layout.
    unsafe { std::alloc::dealloc(base.as_ptr(), layout(bytes)) };
}

#[cfg(all(test, not(any(miri, loom, shuttle))))]
mod tests {
    use super::*;

    /// With system pages of eight frames (64 KiB), memory goes back in groups of eight frames.
    #[test]
    fn memory_is_released_in_whole_system_pages() {
        const SYSTEM_PAGE: usize = 8 * PAGE_SIZE;
        let frames = |range: Range<usize>| range.start * PAGE_SIZE..range.end * PAGE_SIZE;
        assert_eq!(whole_pages(3..50, 4096), frames(3..50));
        assert_eq!(whole_pages(3..50, SYSTEM_PAGE), frames(8..48));
        assert_eq!(whole_pages(8..16, SYSTEM_PAGE), frames(8..16));
        for few in [3..8, 3..15, 9..16, 3..3] {
            assert!(whole_pages(few.clone(), SYSTEM_PAGE).is_empty(), "{few:?}");
        }
    }
}
