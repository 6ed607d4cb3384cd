//! Crashes and failing I/O, on a disk that loses power, tears and fails on demand: under the log and the checkpointer,
//! under the B+tree, under the heap and its transactions.
//!
//! Each test prints the seed of a failure; `CRASH_SEED=n` repeats one, `CRASH_ROUNDS=n` runs more.

#![allow(clippy::unwrap_used)]

mod btree;
mod heap;
mod log;
mod machine;
