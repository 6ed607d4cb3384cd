//! Vacuum in the background, by PostgreSQL's thresholds.
//!
//! A table is vacuumed when its dead rows exceed a fixed number plus a part of its rows, or when so many rows
//! were inserted since the last time that marking its pages all-visible pays.

use std::sync::{Arc, Weak};

use super::background::Signal;
use crate::catalog::{Oid, TableDef};
use crate::engine::{Engine, EngineConfig};
use crate::error::EngineError;
use crate::session::Session;
use crate::table::TableError;

/// PostgreSQL's `autovacuum_vacuum_insert_threshold` and `..._scale_factor`.
const INSERT_THRESHOLD: f64 = 1000.0;
const INSERT_SCALE_FACTOR: f64 = 0.2;

fn is_due(table: &TableDef, config: &EngineConfig) -> bool {
    let rows = table.stats.live_rows() as f64;
    let dead = table.stats.dead_rows() as f64;
    let inserted = table.stats.inserted_since_vacuum() as f64;
    dead > f64::from(config.autovacuum_threshold) + config.autovacuum_scale_factor * rows
        || inserted > INSERT_THRESHOLD + INSERT_SCALE_FACTOR * rows
}

/// Looks for tables to vacuum, again and again.
pub(super) fn run(engine: Weak<Engine>, signal: Arc<Signal>) {
    let Some(naptime) = engine.upgrade().map(|engine| engine.config().autovacuum_naptime) else {
        return;
    };
    while signal.sleep(naptime) {
        let Some(engine) = engine.upgrade() else { return };
        if engine.stopped().is_some() || engine.is_closing() {
            return;
        }
        let due = engine.catalog();
        let due = due.tables().filter(|table| is_due(table, engine.config()));
        let due: Vec<Oid> = due.map(|table| table.oid).collect();
        if due.is_empty() {
            continue;
        }
        match engine.internal_session("autovacuum worker") {
            Ok(mut session) => vacuum_all(&mut session, &due, &signal),
            Err(error) => tracing::warn!(%error, "autovacuum has no session"),
        }
    }
}

fn vacuum_all(session: &mut Session, due: &[Oid], signal: &Signal) {
    session.set_automatic();
    for &table in due {
        if !signal.sleep(std::time::Duration::ZERO) {
            return;
        }
        match session.vacuum(table) {
            Ok(summary) => tracing::debug!(table, ?summary, "autovacuum"),
            Err(EngineError::Table(TableError::UndefinedRelation(_))) => {}
            Err(EngineError::Cancelled) => return,
            Err(error) => tracing::warn!(table, %error, "autovacuum failed"),
        }
    }
}
