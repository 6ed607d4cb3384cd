//! Accounts for writes to memory that sessions share: where it lies, and who writes to it.
//!
//! The promise that hot reads write nothing shared is about memory, so it is proved on memory. Under the
//! feature `audit`
//!
//! - memory has *places*: what a whole engine shares goes to one region, what is shared but belongs to one
//!   session each ([`session_owned`]) to another, everything else where it always goes. A test maps the shared
//!   region read-only and runs sessions ([`place`]);
//! - the atomics of [`crate::atomic`], and the locks of [`crate::sync`], note each write: which cache line,
//!   and from which line of code ([`writes`]).
//!
//! Without the feature nothing of this exists but functions that do nothing. Under a model checker neither.

#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub mod place;

/// Makes memory that is shared, but of which each part is written by one session only: others read it rarely, or
/// write to it only when they mean that session. `name` says what it is.
///
/// What `make` allocates is neither mapped read-only nor counted as shared.
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
