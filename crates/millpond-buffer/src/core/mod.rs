//! The core of the pool: frames, pins, page tables and what else all operations share.
//!
//! It knows the store and the log as traits. It knows no guard, and nothing of how pages are
//! loaded, replaced or written. [`pool::PoolCore`] holds it together; [`session::SessionCore`] is
//! one thread's part.

pub(crate) mod descriptors;
pub(crate) mod frame;
pub(crate) mod free_frames;
pub(crate) mod loading;
pub(crate) mod page_table;
pub(crate) mod pins;
pub(crate) mod pool;
pub(crate) mod relation;
pub(crate) mod session;
