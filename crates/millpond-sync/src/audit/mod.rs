//! Two means by which tests prove that hot reads write to no memory that sessions share.
//!
//! Under the feature `audit`:
//!
//! - **Places** (`place`): an allocator puts what a whole engine shares in one region. What is
//!   shared but written by one session ([`session_owned`]) goes to another region. A test maps the
//!   first region read-only and then runs sessions, so a write to it ends the process.
//! - **Counts** (`writes`): the atomics of [`crate::atomic`] and the locks of [`crate::sync`]
//!   record each write with its cache line and its line of code.
//!
//! Without the feature, and under a model checker, the functions here place and record nothing.

#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub mod atomics;
#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub mod place;
#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub mod writes;

/// Makes memory that is shared, but each part of which is written by one session. Other sessions
/// read a part rarely, and write to it only when they mean that session. `name` describes it.
///
/// What `make` allocates is neither mapped read-only nor counted as shared (rule 9).
#[inline]
pub fn session_owned<R>(name: &'static str, make: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    let _placed = place::SessionOwned::begin(name);
    let _ = name;
    make()
}

/// Declares that all sessions share a part of the address space that the caller has mapped.
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

/// Records two read-modify-writes: a mutex or a queue at `address` is locked, and will be unlocked.
#[inline]
#[track_caller]
pub(crate) fn locked(address: usize) {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    for _ in 0..2 {
        writes::note(address, writes::Kind::Lock);
    }
    let _ = address;
}

/// Records that the bytes of `memory` have been written, by means that don't record it themselves.
#[inline]
#[track_caller]
pub fn bytes_written<T>(memory: &[T]) {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    writes::note_bytes(memory.as_ptr().addr(), size_of_val(memory));
    let _ = memory;
}

/// Runs `write`, which writes plain bytes instead of words of a protocol.
#[inline]
pub fn content<R>(write: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
    return writes::content(write);
    #[cfg(not(all(feature = "audit", not(any(loom, shuttle, miri)))))]
    write()
}
