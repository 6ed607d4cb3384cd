//! What is known about a table's contents: estimates for planning, counts for autovacuum.
//!
//! Counts are kept per table and raised once per transaction or statement, not per row. They are not
//! logged: a restart begins with what the last VACUUM or ANALYZE left in the catalog (nothing yet).

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Counters of a table. All relaxed: they are estimates.
#[derive(Debug, Default)]
pub struct TableStats {
    /// Rows that are alive, as far as known.
    live_rows: AtomicI64,
    /// Row versions that VACUUM could take away.
    dead_rows: AtomicI64,
    /// Rows inserted since the last VACUUM.
    inserted_since_vacuum: AtomicI64,
    /// Rows changed since the last ANALYZE.
    changed_since_analyze: AtomicI64,
    /// VACUUM runs.
    vacuums: AtomicU64,
    /// Of those, started in the background.
    autovacuums: AtomicU64,
}

/// Changes of one transaction, added up before they are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows inserted.
    pub inserted: i64,
    /// Rows updated.
    pub updated: i64,
    /// Rows deleted.
    pub deleted: i64,
}

impl TableStats {
    /// Adds what a transaction did. Rolled back inserts are dead rows.
    pub fn add(&self, counts: RowCounts, committed: bool) {
        let RowCounts { inserted, updated, deleted } = counts;
        let (live, dead) = if committed {
            (inserted - deleted, updated + deleted)
        } else {
            (0, inserted + updated)
        };
        self.live_rows.fetch_add(live, Ordering::Relaxed);
        self.dead_rows.fetch_add(dead, Ordering::Relaxed);
        self.inserted_since_vacuum.fetch_add(inserted, Ordering::Relaxed);
        self.changed_since_analyze.fetch_add(inserted + updated + deleted, Ordering::Relaxed);
    }

    /// After VACUUM or ANALYZE counted the rows.
    pub fn counted(&self, live: i64, dead: i64, vacuumed: bool, automatic: bool) {
        self.live_rows.store(live, Ordering::Relaxed);
        self.dead_rows.store(dead, Ordering::Relaxed);
        self.changed_since_analyze.store(0, Ordering::Relaxed);
        if vacuumed {
            self.inserted_since_vacuum.store(0, Ordering::Relaxed);
            self.vacuums.fetch_add(1, Ordering::Relaxed);
            self.autovacuums.fetch_add(u64::from(automatic), Ordering::Relaxed);
        }
    }

    /// Rows, as far as known.
    pub fn live_rows(&self) -> i64 {
        self.live_rows.load(Ordering::Relaxed).max(0)
    }

    /// Row versions to be vacuumed, as far as known.
    pub fn dead_rows(&self) -> i64 {
        self.dead_rows.load(Ordering::Relaxed).max(0)
    }

    /// Rows inserted since the last VACUUM.
    pub fn inserted_since_vacuum(&self) -> i64 {
        self.inserted_since_vacuum.load(Ordering::Relaxed).max(0)
    }

    /// VACUUM runs, and how many of them in the background.
    pub fn vacuums(&self) -> (u64, u64) {
        (self.vacuums.load(Ordering::Relaxed), self.autovacuums.load(Ordering::Relaxed))
    }
}
