//! Autovacuum: vacuum in the background, by PostgreSQL's thresholds.
//!
//! A table is vacuumed when its dead rows exceed a fixed number plus a part of its rows. It is also
//! vacuumed after enough inserts since the last time to make marking its pages all-visible pay. The
//! catalog is vacuumed for its dead rows.
//!
//! Autovacuum never waits in a lock queue: it leaves a locked table for the next round.
//!
//! A session that wants to change the definition of a table under vacuum interrupts the vacuum
//! ([`CurrentVacuum`](crate::maintenance::current_vacuum)), which only loses time. Any other
//! session that waits for one of its locks interrupts it after `deadlock_timeout` (lmgr rule 11).

use std::sync::{Arc, Weak};

use millpond_buffer::AccessStrategy;

use crate::access::heap;
use crate::catalog::{Oid, TableDef};
use crate::config::AutovacuumConfig;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::maintenance::background::Signal;
use crate::proc::{AUTOVACUUM_WORKER, Interrupt};
use crate::session::Session;
use crate::table::TableError;

/// PostgreSQL's `autovacuum_vacuum_insert_threshold` and `..._scale_factor`.
const INSERT_THRESHOLD: f64 = 1000.0;
const INSERT_SCALE_FACTOR: f64 = 0.2;

fn is_due(table: &TableDef, tuning: &AutovacuumConfig) -> bool {
    let rows = table.stats.live_rows() as f64;
    let dead = table.stats.dead_rows() as f64;
    let inserted = table.stats.inserted_since_vacuum() as f64;
    dead > f64::from(tuning.threshold) + tuning.scale_factor * rows
        || inserted > INSERT_THRESHOLD + INSERT_SCALE_FACTOR * rows
}

/// The autovacuum thread: looks for tables to vacuum every `naptime`.
pub(crate) fn run(engine: Weak<Engine>, signal: Arc<Signal>) {
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
            Err(error) => tracing::warn!(%error, "autovacuum could not start a session"),
        }
    }
}

/// Vacuums the catalog. It has no indexes, and nothing else vacuums it.
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
        current.begin(table, session.proc().interrupt_handle());
        let result = session.maintenance().vacuum(table);
        current.end();
        let is_cancelled = session.interrupt() == Some(Interrupt::Cancel);
        // Its locks are released: a late request must not stop the vacuum of the next table.
        session.clear_cancel();
        match result {
            Ok(summary) => tracing::debug!(table, ?summary, "autovacuum"),
            Err(EngineError::Table(TableError::UndefinedRelation(_))) => {}
            Err(EngineError::LockNotAvailable { .. }) => {
                tracing::debug!(table, "autovacuum skips a table that is locked");
            }
            Err(EngineError::Cancelled) if is_cancelled => {
                tracing::info!(table, "canceling autovacuum task");
            }
            Err(EngineError::Cancelled) => return,
            Err(error) => tracing::warn!(table, %error, "autovacuum failed"),
        }
    }
}
