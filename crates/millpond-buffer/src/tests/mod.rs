//! Tests of the pool as a whole.
#![allow(clippy::unwrap_used)]

mod async_write;
mod backoff;
mod basics;
mod counterpart;
mod damage;
mod failures;
mod known;
mod misuse;
mod model;
#[cfg(all(feature = "file-store", not(miri)))]
mod placed;
// It protects entries by the page of memory, and relies on pages of 4 KiB.
#[cfg(not(any(miri, all(target_vendor = "apple", target_arch = "aarch64"))))]
mod read_only;
mod replacement;
mod resize;
mod rings;
#[cfg(all(feature = "audit", not(miri)))]
mod shared_writes;
mod steps;
mod streams;
mod stress;
pub(crate) mod support;
mod turns;
mod undone;
mod waits;
