//! Where memory lies: an allocator with three places, of which one can be made read-only.
//!
//! | place | what is allocated there | given back |
//! |---|---|---|
//! | shared | everything, on all threads, while [`shared`] runs | never |
//! | session-owned | everything while [`session_owned`](super::session_owned) runs | never |
//! | elsewhere | the rest: by the system's allocator | as ever |
//!
//! A program under audit says `#[global_allocator] static A: PlacingAllocator = PlacingAllocator;`. The first
//! two places are regions of address space from which memory is cut piece by piece; giving back does nothing, so
//! that memory there is never used twice. What a program maps itself joins the shared place by
//! [`mapped`](super::mapped).
//!
//! [`Protected::new`] makes the shared place read-only: from then on a write to it is SIGSEGV.
//!
//! Not covered: the statics of the program.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of address space of a place.
const PLACE_BYTES: usize = 1 << 34;
const MEMORY_PAGE: usize = 4096;

static SHARED: Place = Place::new();
static SESSION: Place = Place::new();
/// Whether [`shared`] runs.
static SHARING: AtomicBool = AtomicBool::new(false);
/// Regions that joined the shared place: starts and lengths.
static MAPPED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
/// The names of what is session-owned.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

thread_local! {
    /// How many [`SessionOwned`] the thread has.
    static OWNED: Cell<u32> = const { Cell::new(0) };
    /// The thread's allocations go where they always go, whatever else is said.
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
        // If another thread was faster, ours is address space that nobody will use.
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
            // The base is aligned to a page of memory, and nothing asks for more.
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

    /// The pages that are in use.
    fn pages(&self) -> (usize, usize) {
        let used = self.used.load(Ordering::Acquire).next_multiple_of(MEMORY_PAGE);
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

// SAFETY: memory comes either from the system's allocator, and goes back to it, which the address tells; or from
// a place, as a piece of the layout's size and alignment that is cut once and never again.
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
            // Never used before, so zero.
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
            // SAFETY: both are at least as long as the shorter of them, and nothing overlaps a fresh piece.
            unsafe { ptr::copy_nonoverlapping(at, new, layout.size().min(size)) };
        }
        new
    }
}

/// Runs `make`; all that is allocated meanwhile, on any thread, goes to the shared place.
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

/// As long as it lives, what its thread allocates is session-owned.
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

/// Runs `f` without placing what it allocates.
fn elsewhere<R>(f: impl FnOnce() -> R) -> R {
    let before = ELSEWHERE.replace(true);
    let result = f();
    ELSEWHERE.set(before);
    result
}

/// What is session-owned, by name: what has been made so far.
#[must_use]
pub fn session_owned_names() -> Vec<&'static str> {
    elsewhere(|| NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone())
}

/// Whether a value lies in the session-owned place.
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

/// The shared place, mapped read-only as long as this lives.
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

    /// How many bytes are read-only.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.regions.iter().map(|(_, bytes)| bytes).sum()
    }

    fn allow(&self, flags: MprotectFlags) -> std::io::Result<()> {
        for &(start, bytes) in &self.regions {
            let bytes = bytes.next_multiple_of(MEMORY_PAGE);
            // SAFETY: whole pages of mappings that nobody else protects or unmaps meanwhile. Whoever writes to them
            // while they are read-only ends the program, which is what this is for.
            unsafe { mprotect(ptr::with_exposed_provenance_mut(start), bytes, flags)? };
        }
        Ok(())
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        if let Err(error) = self.allow(MprotectFlags::READ | MprotectFlags::WRITE) {
            // What follows would crash without saying why.
            panic!("the shared place could not be made writable again: {error}");
        }
    }
}
