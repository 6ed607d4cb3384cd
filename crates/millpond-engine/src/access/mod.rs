//! Access methods: how rows and index entries lie on pages, and the operations on them.
//!
//! [`heap`] keeps rows under multi-version concurrency control. The B+tree keeps ordered keys that
//! point at heap rows by [`Tid`]. Both reach pages only through the buffer pool's guards and
//! optimistic reads, and change them only through logged records ("do is redo").

pub mod btree;
pub mod heap;
mod tid;

pub use tid::Tid;
