//! Replacement: frames are taken from their pages, for other pages or for good.

mod backoff;
pub(crate) mod discard;
pub(crate) mod evict;
pub(crate) mod owned;
pub(crate) mod refill;
pub(crate) mod reuse;
pub(crate) mod ring;
pub(crate) mod shrink;
pub(crate) mod victim_batch;
