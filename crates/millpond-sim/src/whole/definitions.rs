//! One session that makes, fills, empties, indexes, vacuums and drops tables of its own.

use std::sync::Arc;

use millpond_engine::lmgr::LockMode;
use millpond_engine::table::RowBatch;
use millpond_engine::{Engine, EngineResult, Session};
use rand::Rng;
use rand::rngs::StdRng;

use super::ledger::{Ledger, Presence, Shape};
use super::tables::{Failed, accounts, index, named, row, run, sums};

/// Tables of the session.
pub(super) const TABLES: usize = 3;

pub(super) fn name_of(table: usize) -> String {
    format!("made{table}")
}

/// The session's life. Returns the ledger with what was acknowledged.
pub(super) fn define(
    engine: &Arc<Engine>,
    rng: &mut StdRng,
    mut ledger: Ledger,
    steps: u32,
) -> Ledger {
    let Ok(mut session) = engine.session() else { return ledger };
    for _ in 0..steps {
        let name = name_of(rng.random_range(0..TABLES));
        let before = ledger.shape(&name);
        let (after, result) = change(&mut session, rng, &name, before);
        match result {
            Ok(()) => ledger.acknowledge(&name, after),
            Err(Failed::InDoubt) => {
                ledger.doubt(&name, after);
                return ledger;
            }
            Err(Failed::RolledBack) if engine.stopped().is_some() => return ledger,
            Err(Failed::RolledBack) => {}
        }
        if rng.random_bool(0.2) {
            let vacuumed = ["accounts", "history", &name][rng.random_range(0..3)];
            if let Some(table) = named(&session, vacuumed) {
                let _ = session.vacuum(table.oid);
            }
        }
        if rng.random_bool(0.1) {
            let _ = engine.checkpoint();
        }
    }
    ledger
}

/// Does something to a table; also what it is then.
fn change(
    session: &mut Session,
    rng: &mut StdRng,
    name: &str,
    before: Presence,
) -> (Presence, Result<(), Failed>) {
    let Some(shape) = before else {
        let has_key = rng.random();
        let after = Shape { rows: 0, sum: 0, indexes: usize::from(has_key) };
        let made = run(session, |session| session.create_table(accounts(name, has_key)));
        return (Some(after), made.map(drop).map_err(Failed::from));
    };
    let Some(table) = named(session, name) else { panic!("table {name} is lost") };
    match rng.random_range(0..10) {
        0 => {
            let result = run(session, |session| session.drop_table(table.oid));
            (None, result.map_err(Failed::from))
        }
        1 => {
            let result = run(session, |session| session.truncate(&[table.oid]));
            (Some(Shape { rows: 0, sum: 0, ..shape }), result.map_err(Failed::from))
        }
        2 if shape.indexes < 4 => {
            let new = index(table.oid, &[rng.random_range(1..3)]);
            let result = run(session, |session| session.create_index(new));
            let after = Shape { indexes: shape.indexes + 1, ..shape };
            (Some(after), result.map(drop).map_err(Failed::from))
        }
        _ => load(session, rng, name, shape),
    }
}

/// Loads rows as COPY does; sometimes into a table that the same transaction has emptied.
fn load(
    session: &mut Session,
    rng: &mut StdRng,
    name: &str,
    shape: Shape,
) -> (Presence, Result<(), Failed>) {
    let empties = rng.random_bool(0.2);
    let before = if empties { Shape { rows: 0, sum: 0, ..shape } } else { shape };
    let count = rng.random_range(1..60);
    let owner = "o".repeat(rng.random_range(0..400));
    let fill = |session: &mut Session| -> EngineResult<()> {
        let oid = named(session, name).map(|table| table.oid);
        if empties {
            session.truncate(oid.as_slice())?;
        }
        let Some(table) = named(session, name) else { panic!("table {name} is lost") };
        session.lock_table(&table, LockMode::RowExclusive)?;
        let mut batch = RowBatch::default();
        for number in 0..count {
            let id = before.rows as i32 + number;
            session.add_to_batch(&table, &row(id, &owner, i64::from(id)), &mut batch)?;
        }
        session.insert_batch(&table, &mut batch).map(drop)
    };
    let result = run(session, fill);
    let first = before.rows as i64;
    let added: i64 = (first..first + i64::from(count)).sum();
    let after = Shape { rows: before.rows + count as u64, sum: before.sum + added, ..before };
    (Some(after), result.map_err(Failed::from))
}

/// What there is of a table.
pub(super) fn found(session: &mut Session, name: &str) -> EngineResult<Presence> {
    let Some(table) = named(session, name) else { return Ok(None) };
    let (rows, sum) = run(session, |session| sums(session, &table, 2))?;
    Ok(Some(Shape { rows, sum, indexes: table.indexes.len() }))
}
