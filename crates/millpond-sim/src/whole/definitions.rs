//! A session that creates, fills, truncates, indexes, reindexes, vacuums and drops its own tables.

use millpond_engine::lmgr::LockMode;
use millpond_engine::table::RowBatch;
use millpond_engine::{EngineResult, Session};
use rand::Rng;
use rand::rngs::StdRng;

use super::client::Client;
use super::ledger::{Ledger, Presence, Shape};
use super::tables::{Failed, READ_COMMITTED, accounts, index, named, row, run, sums};

pub(super) const TABLES: usize = 3;

pub(super) fn name_of(table: usize) -> String {
    format!("made{table}")
}

/// Runs the session. Returns the ledger with what was acknowledged.
pub(super) fn define(
    client: &mut Client,
    rng: &mut StdRng,
    mut ledger: Ledger,
    steps: u32,
) -> Ledger {
    for _ in 0..steps {
        let name = name_of(rng.random_range(0..TABLES));
        let before = ledger.shape(&name);
        let (after, result) = change(client, rng, &name, before);
        match result {
            Ok(()) => ledger.acknowledge(&name, after),
            Err(Failed::InDoubt) => {
                ledger.doubt(&name, after);
                return ledger;
            }
            Err(Failed::RolledBack) if client.engine().stopped().is_some() => return ledger,
            Err(Failed::RolledBack) => {}
        }
        if rng.random_bool(0.2) {
            let vacuumed = ["accounts", "history", &name][rng.random_range(0..3)];
            client.alone(|session| match named(session, vacuumed) {
                Some(table) => session.maintenance().vacuum(table.oid).map(drop),
                None => Ok(()),
            });
        }
        if rng.random_bool(0.1) {
            let _ = client.engine().checkpoint();
        }
        client.rest();
    }
    ledger
}

/// One change in a transaction, which a slow client does not commit at once.
fn run_slowly<R>(
    client: &mut Client,
    work: impl FnOnce(&mut Session) -> EngineResult<R>,
) -> Result<(), Failed> {
    let work = |client: &mut Client| {
        work(client.session()?)?;
        client.pause()
    };
    Ok(client.transact(READ_COMMITTED, work)?)
}

/// Changes a table. Also returns the table's shape after the change.
fn change(
    client: &mut Client,
    rng: &mut StdRng,
    name: &str,
    before: Presence,
) -> (Presence, Result<(), Failed>) {
    let Some(shape) = before else {
        let has_key = rng.random();
        let after = Shape { rows: 0, sum: 0, indexes: usize::from(has_key) };
        let new = accounts(name, has_key);
        return (Some(after), run_slowly(client, |session| session.ddl().create_table(new)));
    };
    let oid = |session: &Session| match named(session, name) {
        Some(table) => table.oid,
        None => panic!("table {name} is lost"),
    };
    match rng.random_range(0..10) {
        0 => {
            let drop = |session: &mut Session| {
                let oid = oid(session);
                session.ddl().drop_table(oid)
            };
            (None, run_slowly(client, drop))
        }
        1 => {
            let truncate = |session: &mut Session| {
                let oid = oid(session);
                session.ddl().truncate(&[oid])
            };
            (Some(Shape { rows: 0, sum: 0, ..shape }), run_slowly(client, truncate))
        }
        2 if shape.indexes < 4 => {
            let column = rng.random_range(1..3);
            let build = |session: &mut Session| {
                let index = index(oid(session), &[column]);
                session.ddl().create_index(index)
            };
            (Some(Shape { indexes: shape.indexes + 1, ..shape }), run_slowly(client, build))
        }
        3 if shape.indexes > 0 => {
            let build_again = |session: &mut Session| {
                let oid = oid(session);
                session.ddl().reindex(oid, None)
            };
            (Some(shape), run_slowly(client, build_again))
        }
        _ => load(client, rng, name, shape),
    }
}

/// Loads rows as COPY does; sometimes into a table that the same transaction truncates.
fn load(
    client: &mut Client,
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
            session.ddl().truncate(oid.as_slice())?;
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
    let result = run_slowly(client, fill);
    let first = before.rows as i64;
    let added: i64 = (first..first + i64::from(count)).sum();
    let after = Shape { rows: before.rows + count as u64, sum: before.sum + added, ..before };
    (Some(after), result)
}

/// The current shape of a table.
pub(super) fn found(session: &mut Session, name: &str) -> EngineResult<Presence> {
    let Some(table) = named(session, name) else { return Ok(None) };
    let (rows, sum) = run(session, |session| sums(session, &table, 2))?;
    Ok(Some(Shape { rows, sum, indexes: table.indexes.len() }))
}
