//! An allocator with three places for memory, one of which can be made read-only.
//!
//! | place | what is allocated there | freed |
//! |---|---|---|
//! | shared | everything, on all threads, while [`shared`] runs | never |
//! | session-owned | everything while [`session_owned`](super::session_owned) runs | never |
//! | elsewhere | the rest, by the system's allocator | as usual |
//!
//! A program under audit has `#[global_allocator] static A: PlacingAllocator = PlacingAllocator;`.
//! The first two places are regions of address space. The allocator cuts memory from them piece by
//! piece. It never frees a piece, so no memory there is used twice. Memory that a program maps
//! itself joins the shared place by [`mapped`](super::mapped).
//!
//! [`Protected::new`] makes the shared place read-only: from then on a write to it is SIGSEGV.
//!
//! The statics of the program are not covered.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of address space of one place.
const PLACE_BYTES: usize = 1 << 34;

static SHARED: Place = Place::new();
static SESSION: Place = Place::new();
/// Whether [`shared`] runs.
static SHARING: AtomicBool = AtomicBool::new(false);
/// The regions that joined the shared place: starts and lengths.
static MAPPED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
/// The names of what is session-owned.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

thread_local! {
    /// The number of [`SessionOwned`] values that the thread has.
    static OWNED: Cell<u32> = const { Cell::new(0) };
    /// Whether the thread's allocations go to the system's allocator in any case.
    static ELSEWHERE: Cell<bool> = const { Cell::new(false) };
}

/// A region from which memory is cut.
struct Place {
    base: AtomicUsize,
    used: AtomicUsize,
}

impl Place {
    const fn new() -> Self {
        Self { base: AtomicUsize::new(0), used: AtomicUsize::new(0) }
    }

    fn base(&self) -> usize {
        let base = self.base.load(Ordering::Acquire);
        if base != 0 { base } else { self.map() }
    }

    #[cold]
    fn map(&self) -> usize {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous mapping, at an address of the system's choice.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), PLACE_BYTES, protection, flags) };
        let Ok(mapped) = mapped else { return 0 };
        // If another thread was faster, this mapping stays unused.
        let set = self.base.compare_exchange(0, mapped.addr(), Ordering::AcqRel, Ordering::Acquire);
        set.map_or_else(|theirs| theirs, |_| mapped.addr())
    }

    fn cut(&self, layout: Layout) -> *mut u8 {
        let base = self.base();
        if base == 0 {
            return ptr::null_mut();
        }
        let align = layout.align();
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            // The base is aligned to a page of memory, and no layout asks for more.
            let start = used.next_multiple_of(align);
            let Some(end) = start.checked_add(layout.size()).filter(|end| *end <= PLACE_BYTES)
            else {
                return ptr::null_mut();
            };
            let order = (Ordering::Relaxed, Ordering::Relaxed);
            match self.used.compare_exchange_weak(used, end, order.0, order.1) {
                Ok(_) => return ptr::with_exposed_provenance_mut(base + start),
                Err(now) => used = now,
            }
        }
    }

    fn holds(&self, address: usize) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        base != 0 && (base..base + PLACE_BYTES).contains(&address)
    }

    /// The base, and the bytes of all pages in use.
    fn pages(&self) -> (usize, usize) {
        let used = self.used.load(Ordering::Acquire).next_multiple_of(rustix::param::page_size());
        (self.base.load(Ordering::Acquire), used)
    }
}

/// The allocator of a program under audit.
#[derive(Debug)]
pub struct PlacingAllocator;

impl PlacingAllocator {
    fn place() -> Option<&'static Place> {
        if ELSEWHERE.get() {
            None
        } else if OWNED.get() > 0 {
            Some(&SESSION)
        } else {
            SHARING.load(Ordering::Relaxed).then_some(&SHARED)
        }
    }
}

fn is_placed(at: *mut u8) -> bool {
    SHARED.holds(at.addr()) || SESSION.holds(at.addr())
}

// SAFETY: memory comes from the system's allocator and goes back to it, or it comes from a place;
// its address tells which. A place cuts each piece with the layout's size and alignment, and never
// cuts the same bytes again.
unsafe impl GlobalAlloc for PlacingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Self::place() {
            Some(place) => place.cut(layout),
            // SAFETY: the caller's contract is the system allocator's.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Self::place() {
            // The memory was never used before, so it is zero.
            Some(place) => place.cut(layout),
            // SAFETY: as in `alloc`.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if !is_placed(at) {
            // SAFETY: it came from the system's allocator, with that layout.
            unsafe { System.dealloc(at, layout) };
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_placed(at) {
            // SAFETY: it came from the system's allocator, with that layout.
            return unsafe { System.realloc(at, layout, size) };
        }
        // SAFETY: the caller guarantees that the new size is not zero and fits the alignment.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both are as long as the shorter one or longer; a fresh piece overlaps
            // nothing.
            unsafe { ptr::copy_nonoverlapping(at, new, layout.size().min(size)) };
        }
        new
    }
}

/// Runs `make`. All memory allocated meanwhile, on any thread, goes to the shared place.
pub fn shared<R>(make: impl FnOnce() -> R) -> R {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            SHARING.store(false, Ordering::SeqCst);
        }
    }
    SHARING.store(true, Ordering::SeqCst);
    let _ends = Ends;
    make()
}

/// While this value lives, what its thread allocates is session-owned.
#[derive(Debug)]
pub struct SessionOwned(());

impl SessionOwned {
    pub(super) fn begin(name: &'static str) -> Self {
        elsewhere(|| {
            let mut names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if !names.contains(&name) {
                names.push(name);
            }
        });
        OWNED.set(OWNED.get() + 1);
        Self(())
    }
}

impl Drop for SessionOwned {
    fn drop(&mut self) {
        OWNED.set(OWNED.get() - 1);
    }
}

/// Runs `f`; what it allocates goes to the system's allocator.
fn elsewhere<R>(f: impl FnOnce() -> R) -> R {
    let before = ELSEWHERE.replace(true);
    let result = f();
    ELSEWHERE.set(before);
    result
}

/// The names of all session-owned memory made so far.
#[must_use]
pub fn session_owned_names() -> Vec<&'static str> {
    elsewhere(|| NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone())
}

/// Whether an address lies in the session-owned place.
#[must_use]
pub fn is_session_owned(address: usize) -> bool {
    SESSION.holds(address)
}

/// Whether a value lies in the shared place.
#[must_use]
pub fn is_shared<T: ?Sized>(value: &T) -> bool {
    let at = ptr::from_ref(value).addr();
    let joined = elsewhere(|| {
        let mapped = MAPPED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        mapped.iter().any(|(start, bytes)| (*start..start + bytes).contains(&at))
    });
    SHARED.holds(at) || joined
}

pub(super) fn mapped(start: usize, bytes: usize) {
    elsewhere(|| {
        let mut mapped = MAPPED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        mapped.push((start, bytes));
    });
}

pub(super) fn unmapped(start: usize) {
    elsewhere(|| {
        let mut mapped = MAPPED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        mapped.retain(|(known, _)| *known != start);
    });
}

/// A guard: the shared place is read-only while this value lives.
#[derive(Debug)]
pub struct Protected {
    regions: Vec<(usize, usize)>,
}

impl Protected {
    /// Makes the shared place read-only.
    pub fn new() -> std::io::Result<Self> {
        let mut regions = MAPPED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        regions.push(SHARED.pages());
        regions.retain(|(_, bytes)| *bytes > 0);
        let protected = Self { regions };
        protected.allow(MprotectFlags::READ)?;
        Ok(protected)
    }

    /// The number of read-only bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.regions.iter().map(|(_, bytes)| bytes).sum()
    }

    fn allow(&self, flags: MprotectFlags) -> std::io::Result<()> {
        for &(start, bytes) in &self.regions {
            let bytes = bytes.next_multiple_of(rustix::param::page_size());
            // SAFETY: these are whole pages of mappings, which no other code protects or unmaps
            // meanwhile. A write to them while they are read-only ends the program, as intended.
            unsafe { mprotect(ptr::with_exposed_provenance_mut(start), bytes, flags)? };
        }
        Ok(())
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        if let Err(error) = self.allow(MprotectFlags::READ | MprotectFlags::WRITE) {
            // The code that follows would crash without saying why.
            panic!("the shared place could not be made writable again: {error}");
        }
    }
}
