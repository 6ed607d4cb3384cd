//! The heap: rows under multi-version concurrency control, on slotted pages.

pub mod header;

pub use header::{TUPLE_HEADER_LEN, TupleFlags, TupleHeader};
