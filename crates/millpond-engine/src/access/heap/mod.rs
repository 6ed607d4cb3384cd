//! The heap: rows under multi-version concurrency control, on slotted pages.
//!
//! See README.md beside this file for the rules, cited as `(heap rule N)`.

pub mod check;
pub mod header;
pub mod judge;
pub mod page;
pub mod prune;
pub mod record;
pub mod redo;

#[cfg(test)]
mod page_tests;

pub use header::{TUPLE_HEADER_LEN, TupleFlags, TupleHeader};
