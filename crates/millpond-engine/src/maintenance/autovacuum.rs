//! Vacuum in the background, by PostgreSQL's thresholds.
//!
//! A table is vacuumed when its dead rows exceed a fixed number plus a part of its rows, or when so many rows
//! were inserted since the last time that marking its pages all-visible pays. So is the catalog.
//!
//! A table that somebody has locked against it is left for the next round: it never stands in a queue.
//!
//! Who wants to change the definition of a table that is being vacuumed does not wait for it: he interrupts
//! the vacuum ([`Current::give_way`]), which loses nothing but time. So does, after `deadlock_timeout`, whoever else waits for
//! a lock that it holds (lmgr rule 11).

use std::sync::{Arc, Weak};

use millpond_buffer::AccessStrategy;
use millpond_sync::sync::Mutex;

use super::background::Signal;
use crate::access::heap;
use crate::catalog::{Oid, TableDef};
use crate::engine::{AutovacuumTuning, Engine};
use crate::error::EngineError;
use crate::proc::{AUTOVACUUM_WORKER, Interrupt, InterruptHandle};
use crate::session::Session;
use crate::table::TableError;

/// PostgreSQL's `autovacuum_vacuum_insert_threshold` and `..._scale_factor`.
const INSERT_THRESHOLD: f64 = 1000.0;
const INSERT_SCALE_FACTOR: f64 = 0.2;

/// The table that is being vacuumed in the background, and how to stop that.
#[derive(Default)]
pub(crate) struct Current(Mutex<Option<(Oid, InterruptHandle)>>);

impl Current {
    /// Interrupts the vacuum of this table, if one is running.
    pub(crate) fn give_way(&self, table: Oid) {
        if let Some((current, interrupts)) = &*self.0.lock()
            && *current == table
        {
            interrupts.interrupt(Interrupt::Cancel);
        }
    }
}

fn is_due(table: &TableDef, tuning: &AutovacuumTuning) -> bool {
    let rows = table.stats.live_rows() as f64;
    let dead = table.stats.dead_rows() as f64;
    let inserted = table.stats.inserted_since_vacuum() as f64;
    dead > f64::from(tuning.threshold) + tuning.scale_factor * rows
        || inserted > INSERT_THRESHOLD + INSERT_SCALE_FACTOR * rows
}

/// Looks for tables to vacuum, again and again.
pub(super) fn run(engine: Weak<Engine>, signal: Arc<Signal>) {
    let naptime = || engine.upgrade().map(|engine| engine.autovacuum_tuning().naptime);
    while let Some(naptime) = naptime()
        && signal.sleep(naptime)
    {
        let Some(engine) = engine.upgrade() else { return };
        if engine.stopped().is_some() || engine.is_closing() {
            return;
        }
        let tuning = engine.autovacuum_tuning();
        if !tuning.enabled {
            continue;
        }
        let due = engine.catalog();
        let due = due.tables().filter(|table| is_due(table, &tuning));
        let due: Vec<Oid> = due.map(|table| table.oid).collect();
        let dead = engine.catalog_heap().counters().dead_estimate();
        let catalog_due = dead > u64::from(tuning.threshold);
        if due.is_empty() && !catalog_due {
            continue;
        }
        match engine.internal_session(AUTOVACUUM_WORKER) {
            Ok(mut session) => {
                if catalog_due {
                    vacuum_catalog(&session);
                }
                vacuum_all(&mut session, &due, &signal);
            }
            Err(error) => tracing::warn!(%error, "autovacuum has no session"),
        }
    }
}

/// The catalog has no indexes, and nobody else vacuums it.
fn vacuum_catalog(session: &Session) {
    let ring = session.ctx().ring(AccessStrategy::Vacuum);
    let catalog = session.engine().catalog_heap();
    if let Err(error) = heap::vacuum(session.ctx(), catalog, ring.as_ref(), None) {
        tracing::warn!(%error, "vacuum of the catalog failed");
    }
}

fn vacuum_all(session: &mut Session, due: &[Oid], signal: &Signal) {
    session.set_automatic();
    for &table in due {
        if !signal.sleep(std::time::Duration::ZERO) {
            return;
        }
        let engine = Arc::clone(session.engine());
        let current = engine.autovacuum();
        *current.0.lock() = Some((table, session.proc().interrupt_handle()));
        let result = session.vacuum(table);
        *current.0.lock() = None;
        let is_to_give_way = session.interrupt() == Some(Interrupt::Cancel);
        // Its locks are gone: a request that came too late must not stop the vacuum of the next table.
        session.clear_cancel();
        match result {
            Ok(summary) => tracing::debug!(table, ?summary, "autovacuum"),
            Err(EngineError::Table(TableError::UndefinedRelation(_))) => {}
            Err(EngineError::LockNotAvailable { .. }) => {
                tracing::debug!(table, "autovacuum skips a table that is locked");
            }
            Err(EngineError::Cancelled) if is_to_give_way => {
                tracing::info!(table, "canceling autovacuum task");
            }
            Err(EngineError::Cancelled) => return,
            Err(error) => tracing::warn!(table, %error, "autovacuum failed"),
        }
    }
}
