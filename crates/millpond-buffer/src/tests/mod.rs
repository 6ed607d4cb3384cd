//! Tests of the pool as a whole.
#![allow(clippy::unwrap_used)]

mod async_write;
mod basics;
mod counterpart;
mod failures;
mod known;
mod misuse;
#[cfg(all(feature = "file-store", not(miri)))]
mod placed;
// It protects entries by the page of memory, and relies on pages of 4 KiB.
mod random;
#[cfg(not(any(miri, all(target_vendor = "apple", target_arch = "aarch64"))))]
mod read_only;
mod replacement;
mod resize;
mod rings;
#[cfg(all(feature = "audit", not(miri)))]
mod shared_writes;
mod steps;
mod streams;
pub(crate) mod support;
mod turns;
mod undone;
mod waits;
