#![doc = include_str!("../README.md")]
//!
//! All code that depends on a memory ordering uses [`atomic`], [`thread`], [`hint`] and [`sync`].
//! These are the standard library's by default, loom's under `--cfg loom` and shuttle's under
//! `--cfg shuttle`. So the code that runs is the code that is checked.
//!
//! # Systems
//!
//! Linux and macOS. A build for another system than Linux, or with `--cfg millpond_portable`, does
//! without what only Linux has. Tests run both ways on Linux.
#![deny(unsafe_code)]

#[cfg(not(unix))]
compile_error!(
    "Millpond runs on Linux and macOS, and not on this system. On Windows, build and run it in \
     WSL 2 or in a Linux container."
);

pub mod asymmetric;
pub mod atomic;
pub mod audit;
pub mod clock;
pub mod counters;
#[cfg(unix)]
pub mod fill;
pub mod heap;
pub mod hint;
pub mod latch;
pub mod mutant;
mod park_outcome;
pub mod parking;
pub mod prefetch;
#[cfg_attr(any(loom, shuttle), path = "scheduler/absent.rs")]
pub mod scheduler;
#[cfg(all(
    feature = "send-batch",
    target_os = "linux",
    not(any(millpond_portable, loom, shuttle))
))]
pub mod send_batch;
pub mod sync;
pub mod thread;
mod version;

pub use crossbeam_utils::CachePadded;

#[cfg(all(test, any(loom, shuttle)))]
mod models;
