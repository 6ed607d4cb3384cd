//! Simulated machines: disks that crash, tear and fail on demand, and the whole engine on them.
//!
//! [`vfs`] is a file system at the level of system calls. [`whole`] runs the whole engine on it, and
//! a seed is a run. [`SimDisk`] is an older disk at the level of stores, for tests of the log, the
//! heap and the tree by themselves: it holds the relations' files, the log's segments and the control file of one database in
//! memory. It gives out a [`PageStore`](millpond_buffer::PageStore) and a
//! [`LogStore`](millpond_engine::wal::LogStore) over them, counts every call, and can fail any of them.
//!
//! Besides, what tests of isolation share: [`schedule`] runs interleavings of sessions written as scripts, [`history`] finds what
//! isolation levels forbid in a history of transactions.
#![forbid(unsafe_code)]

/// The README's example, to be run with the tests.
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
