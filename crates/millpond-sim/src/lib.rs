//! Simulated machines: disks that crash, tear and fail on demand, and the whole engine on them.
//!
//! [`vfs`] is a file system at the level of system calls. [`whole`] runs the whole engine on it,
//! and a seed determines the run. [`SimDisk`] is a disk at the level of stores, for separate tests
//! of the log, the heap and the B+tree. It holds the relations' files, the log's segments and the
//! control file of one database in memory. It provides a [`PageStore`](millpond_buffer::PageStore)
//! and a [`LogStore`](millpond_engine::wal::LogStore) over them, counts every call, and can fail
//! any of them.
//!
//! Isolation tests share two further modules. [`schedule`] runs interleavings of sessions written
//! as scripts. [`history`] finds anomalies that isolation levels forbid in a history of
//! transactions.
#![forbid(unsafe_code)]

/// Runs the README's example with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod disk;
mod file;
pub mod history;
mod late;
mod log;
mod pages;
pub mod schedule;
pub mod vfs;
pub mod whole;

pub use disk::{Fault, SimDisk};
pub use log::SimLog;
pub use pages::SimPages;
