//! Crashes and failing I/O, on a disk that loses power, tears and fails on demand. The tests cover
//! the log and checkpointer, the B+tree, and the heap with its transactions.
//!
//! Each test prints the seed of a failure; `CRASH_SEED=n` repeats it, `CRASH_ROUNDS=n` runs more.

#![allow(clippy::unwrap_used)]

mod btree;
mod heap;
mod log;
mod machine;
