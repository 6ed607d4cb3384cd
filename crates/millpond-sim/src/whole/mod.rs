//! The whole engine on a simulated machine: sessions, DDL, maintenance, faults, crashes.
//!
//! [`run`] turns a seed into a run. A run has a plan, a file system ([`crate::vfs`]), a scheduler
//! ([`millpond_sync::scheduler`]) and several lives of an engine. A crash, a kill or a shutdown
//! ends each life. Clients are busy or slow ([`Clients`]). The same seed and shape of clients give
//! the same calls in the same order, so [`Report::hash`] is the same.
//!
//! The oracles:
//!
//! - [`ledger`] knows what was acknowledged.
//! - Readers compare sums within a snapshot; slow ones read again and again.
//! - [`ticks`], commits that do not wait for the log, have no hole after a crash.
//! - The engine's consistency check finds nothing, before VACUUM and after.
//! - The check of the directory changes no byte of what a crash has left.
//! - After damage to one file ([`damage`]), reads return the whole ledger or an error.
//! - Transactions on [`registers`] form a history that violates no isolation level.

mod client;
mod damage;
mod definitions;
mod ledger;
mod life;
mod plan;
mod registers;
mod tables;
mod ticks;
mod timers;
mod writers;

use millpond_sync::scheduler::{self, Failure, Limits};

pub use plan::{ClientKind, Clients, Plan, SlowSettings, Trouble};
pub use timers::Timers;

use crate::vfs::SimFs;

/// The report of a successful run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A hash of all calls of the file system.
    pub hash: u64,
    /// The number of these calls.
    pub calls: u64,
    /// How many of them the first life made: its sessions and the maintenance meanwhile.
    pub first_life: u64,
    /// A hash of all decisions of the scheduler.
    pub schedule: u64,
    /// The number of acknowledged commits.
    pub commits: u64,
    /// The number of transactions in the checked history.
    pub judged: u64,
    /// The virtual time that passed.
    pub time: std::time::Duration,
    /// How often each timer has fired.
    pub timers: Timers,
}

/// Runs a seed with busy or slow clients. A failure says what went wrong; the message of a panicked
/// thread is on standard error.
pub fn run(seed: u64, shape: ClientKind) -> Result<Report, Failure> {
    run_on(&SimFs::new(seed), seed, shape.plan(seed))
}

/// Runs a seed on a prepared file system, with the caller's plan.
pub fn run_on(fs: &SimFs, seed: u64, plan: Plan) -> Result<Report, Failure> {
    let lives = fs.clone();
    let ended = scheduler::run(seed, Limits::default(), move || life::lives(&lives, &plan, seed))?;
    let life::Ended { commits, judged, first_life, timers } = ended.value;
    Ok(Report {
        hash: fs.hash(),
        calls: fs.calls(),
        first_life,
        schedule: ended.hash,
        commits,
        judged,
        time: ended.time,
        timers,
    })
}
