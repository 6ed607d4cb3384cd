#![doc = include_str!("../README.md")]
//!
//! Everything that has a memory ordering is written against [`atomic`], [`thread`], [`hint`] and
//! [`sync`], which are the standard library's by default, loom's under `--cfg loom` and shuttle's
//! under `--cfg shuttle`. So the code that runs is the code that is checked.
#![deny(unsafe_code)]

pub mod asymmetric;
pub mod atomic;
pub mod audit;
pub mod clock;
pub mod counters;
#[cfg(target_os = "linux")]
pub mod fill;
pub mod hint;
pub mod latch;
pub mod mutant;
pub mod parking;
pub mod prefetch;
#[cfg_attr(any(loom, shuttle), path = "scheduler/absent.rs")]
pub mod scheduler;
#[cfg(all(feature = "send-batch", target_os = "linux", not(any(loom, shuttle))))]
pub mod send_batch;
pub mod sync;
pub mod thread;
mod version;

pub use crossbeam_utils::CachePadded;

#[cfg(all(test, any(loom, shuttle)))]
mod models;
