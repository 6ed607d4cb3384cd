//! Simulated machines: disks that crash, tear and fail on demand, and the whole engine on them.
//!
//! [`vfs`] is a file system at the level of system calls. [`whole`] runs the whole engine on it,
//! and a seed determines the run.
//!
//! Isolation tests share two further modules. [`schedule`] runs interleavings of sessions written
//! as scripts. [`history`] finds anomalies that isolation levels forbid in a history of
//! transactions.
#![forbid(unsafe_code)]

/// Runs the README's example with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod history;
pub mod schedule;
pub mod vfs;
pub mod whole;
