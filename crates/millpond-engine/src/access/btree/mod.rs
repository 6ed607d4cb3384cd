//! The B+tree: ordered keys that point at rows, after Lehman and Yao.
//!
//! Keys are byte strings in `memcmp` order. Entries are ordered by (key, tid), so no two are equal.
//! Every page but the last of its level has a high key and a link to its right sibling. A search
//! whose key is not below the high key moves right. So a split latches only the pages that it
//! changes. A descent takes no latch at all: it reads page after page optimistically. README.md in
//! this directory has the rules.
//!
//! # Layout of the file
//! Block 0 is the meta page (magic, version, vacuum numbers; no reader needs it). Block 1 is the
//! root, for ever. All other blocks are pages of the tree, new pages (all zero: a split reserved
//! them and never used them) or deleted ones.
//!
//! # Failure
//! Stored bytes that make no sense give [`EngineError::Corruption`](crate::EngineError::Corruption)
//! with the block. They never cause a panic, nor a wrong answer that a checksum or [`check()`]
//! would not notice. An operation that must not wait answers `WouldBlock` before its first change.

pub(crate) mod page;

mod build;
pub(crate) mod check;
mod cursor;
mod descend;
mod env;
mod fullness;
mod groups;
mod grow;
mod insert;
mod lookup;
mod lookup_many;
mod order;
pub mod record;
mod share;
mod unlink;
mod vacuum;

#[cfg(test)]
mod tests;

pub use build::{Builder, DEFAULT_FILLFACTOR, bulk_build, create};
pub use check::{CheckReport, Visitor, check, check_for};
pub use cursor::{Cursor, Direction};
pub use env::{Env, Stamp};
pub use groups::rows_of_groups;
pub use insert::{
    InsertOutcome, PreparedInsert, UniqueCheck, UniqueVerdict, check_key, insert, prepare_insert,
};
pub use lookup::{Tids, contains, lookup};
pub use lookup_many::{ManyLookups, SortedKeys};
pub use share::{rows_between, share_between};
pub use vacuum::{VacuumStats, vacuum};

/// The longest key that an index takes.
pub const MAX_KEY_BYTES: usize = page::layout::MAX_KEY_BYTES;

/// The block of the meta page.
pub(crate) const META: u32 = 0;
/// The block of the root.
pub(crate) const ROOT: u32 = 1;

pub(crate) const META_MAGIC_AT: usize = 48;
pub(crate) const META_VERSION_AT: usize = 52;
/// `MPBT`, little-endian.
pub(crate) const META_MAGIC: u32 = u32::from_le_bytes(*b"MPBT");
pub(crate) const META_VERSION: u32 = 2;
