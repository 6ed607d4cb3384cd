//! Tests of the pool as a whole.
#![allow(clippy::unwrap_used)]

mod basics;
mod behind;
mod counterpart;
mod damage;
mod failures;
mod known;
mod misuse;
mod model;
mod patience;
#[cfg(all(feature = "file-store", not(miri)))]
mod placed;
#[cfg(not(miri))]
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
