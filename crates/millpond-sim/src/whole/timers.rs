//! How often each timer has fired in a run.

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_engine::Engine;

/// How often each timer has fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    /// Checkpoints that were due by `checkpoint_timeout`.
    pub checkpoints: u64,
    /// Vacuums of tables that autovacuum began after a nap.
    pub autovacuums: u64,
    /// Waits that `lock_timeout` ended.
    pub lock_timeouts: u64,
    /// Deadlocks that a search after `deadlock_timeout` found.
    pub deadlocks: u64,
    /// Statements that `statement_timeout` cancelled.
    pub statement_timeouts: u64,
    /// Sessions that `idle_in_transaction_session_timeout` ended.
    pub idle_in_transaction: u64,
    /// Pages of old statuses that the upkeep wrote to disk.
    pub spilled_pages: u64,
}

impl AddAssign for Timers {
    fn add_assign(&mut self, other: Self) {
        self.checkpoints += other.checkpoints;
        self.autovacuums += other.autovacuums;
        self.lock_timeouts += other.lock_timeouts;
        self.deadlocks += other.deadlocks;
        self.statement_timeouts += other.statement_timeouts;
        self.idle_in_transaction += other.idle_in_transaction;
        self.spilled_pages += other.spilled_pages;
    }
}

/// Counts what the clients of a run notice.
#[derive(Default)]
pub(super) struct Tally {
    lock_timeouts: AtomicU64,
    deadlocks: AtomicU64,
    statement_timeouts: AtomicU64,
    idle_in_transaction: AtomicU64,
}

impl Tally {
    pub fn lock_timeout(&self) {
        self.lock_timeouts.fetch_add(1, Ordering::Relaxed);
    }

    pub fn deadlock(&self) {
        self.deadlocks.fetch_add(1, Ordering::Relaxed);
    }

    pub fn statement_timeout(&self) {
        self.statement_timeouts.fetch_add(1, Ordering::Relaxed);
    }

    pub fn idle_in_transaction(&self) {
        self.idle_in_transaction.fetch_add(1, Ordering::Relaxed);
    }

    /// What the clients have counted so far.
    pub fn timers(&self) -> Timers {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Timers {
            lock_timeouts: load(&self.lock_timeouts),
            deadlocks: load(&self.deadlocks),
            statement_timeouts: load(&self.statement_timeouts),
            idle_in_transaction: load(&self.idle_in_transaction),
            ..Timers::default()
        }
    }
}

/// What an engine has counted since its start. A table that was dropped takes its vacuums with it.
pub(super) fn of_engine(engine: &Arc<Engine>) -> Timers {
    let catalog = engine.catalog();
    Timers {
        checkpoints: engine.checkpoint_stats().scheduled,
        autovacuums: catalog.tables().map(|table| table.stats.vacuums().1).sum(),
        spilled_pages: engine.transactions().spilled_pages(),
        ..Timers::default()
    }
}
