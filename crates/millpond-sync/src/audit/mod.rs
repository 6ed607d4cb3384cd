//! Accounts for writes to memory that sessions share: where it lies, and who writes to it.
//!
//! The promise that hot reads write nothing shared is about memory, so it is proved on memory. Under the
//! feature `audit`
//!
//! - memory has *places*: what a whole engine shares goes to one region, what is shared but belongs to one
//!   session each ([`session_owned`]) to another, everything else where it always goes. A test maps the shared
//!   region read-only and runs sessions (`place`);
//! - the atomics of [`crate::atomic`], and the locks of [`crate::sync`], note each write: which cache line,
//!   and from which line of code (`writes`).
//!
//! Without the feature nothing of this exists but functions that do nothing. Under a model checker neither.

#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub mod atomics;
#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub mod place;
#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub mod writes;

/// Makes memory that is shared, but of which each part is written by one session only: others read it rarely, or
/// write to it only when they mean that session. `name` says what it is.
///
/// What `make` allocates is neither mapped read-only nor counted as shared (rule 9).
#[inline]
pub fn session_owned<R>(name: &'static str, make: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    let _placed = place::SessionOwned::begin(name);
    let _ = name;
    make()
}

/// Says that a part of the address space, mapped by the caller, is shared by all sessions.
#[inline]
pub fn mapped(start: usize, bytes: usize) {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    place::mapped(start, bytes);
    let _ = (start, bytes);
}

/// The reverse of [`mapped`].
#[inline]
pub fn unmapped(start: usize) {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    place::unmapped(start);
    let _ = start;
}

/// Notes that a mutex or a queue at `address` is locked and will be unlocked: two read-modify-writes.
#[inline]
#[track_caller]
pub(crate) fn locked(address: usize) {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    for _ in 0..2 {
        writes::note(address, writes::Kind::Lock);
    }
    let _ = address;
}

/// Notes that the bytes of `memory` have been written, by means that don't note it themselves.
#[inline]
#[track_caller]
pub fn bytes_written<T>(memory: &[T]) {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    writes::note_bytes(memory.as_ptr().addr(), size_of_val(memory));
    let _ = memory;
}

/// Runs `write`, which writes bytes rather than words that mean something to a protocol.
#[inline]
pub fn content<R>(write: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    return writes::content(write);
    #[cfg(not(all(feature = "audit", not(any(loom, shuttle, miri)))))]
    write()
}
