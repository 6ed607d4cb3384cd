//! The whole engine in a simulated machine: sessions, definitions, maintenance, trouble, crashes.
//!
//! [`run`] turns a seed into a run: a plan, a file system ([`crate::vfs`]), a scheduler
//! ([`millpond_sync::scheduler`]) and several lives of an engine, each ended by a crash, a kill or a
//! shutdown. The same seed gives the same calls in the same order, so [`Report::hash`] is the same.
//!
//! The oracles: [`ledger`] knows what was acknowledged, readers compare sums inside of a snapshot,
//! and the engine's own check finds nothing, before VACUUM and after. The check of the directory
//! changes no byte of what a crash has left. Damage to one file ([`damage`]) ends in the whole
//! ledger or in an error. Transactions on [`registers`] are a history, in which no isolation level
//! is broken.

mod damage;
mod definitions;
mod ledger;
mod life;
mod plan;
mod registers;
mod tables;
mod writers;

use millpond_sync::scheduler::{self, Failure, Limits};

pub use plan::{Plan, Trouble};

use crate::vfs::SimFs;

/// A run that ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A hash of all calls of the file system.
    pub hash: u64,
    /// How many there were.
    pub calls: u64,
    /// How many of them the sessions of the first life made, and the maintenance beside them.
    pub first_life: u64,
    /// A hash of all choices of the scheduler.
    pub schedule: u64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Transactions whose history was judged.
    pub judged: u64,
    /// Virtual time that passed.
    pub time: std::time::Duration,
}

/// Runs a seed. A failure says what went wrong; what a thread's panic said is on standard error.
pub fn run(seed: u64) -> Result<Report, Failure> {
    run_on(&SimFs::new(seed), seed, Plan::of(seed))
}

/// Runs a seed on a file system that the caller has prepared, with a plan of the caller's.
pub fn run_on(fs: &SimFs, seed: u64, plan: Plan) -> Result<Report, Failure> {
    let lives = fs.clone();
    let ended = scheduler::run(seed, Limits::default(), move || life::lives(&lives, &plan, seed))?;
    let life::Ended { commits, judged, first_life } = ended.value;
    Ok(Report {
        hash: fs.hash(),
        calls: fs.calls(),
        first_life,
        schedule: ended.hash,
        commits,
        judged,
        time: ended.time,
    })
}
