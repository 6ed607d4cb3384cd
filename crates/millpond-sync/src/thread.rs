//! Threads: the standard library's, or a model checker's.

#[cfg(loom)]
pub use loom::thread::{JoinHandle, spawn, yield_now};
#[cfg(all(shuttle, not(loom)))]
pub use shuttle::thread::{JoinHandle, spawn, yield_now};
#[cfg(not(any(loom, shuttle)))]
pub use std::thread::{JoinHandle, spawn, yield_now};
