//! Clients that only slow shapes have: one uses up transaction ids in bursts, one holds locks on
//! tables.
//!
//! The ids make the engine retire statuses, and write those to disk that a long-held snapshot still
//! needs. A *tick* is a row with the next number. Its commit does not wait for the log, so a crash
//! may take the last ticks, but leaves no hole.

use millpond_engine::lmgr::LockMode;
use millpond_engine::{EngineResult, Session};
use rand::Rng;
use rand::rngs::StdRng;

use super::client::Client;
use super::ledger::Numbers;
use super::tables::{
    ASYNCHRONOUS, Failed, READ_COMMITTED, accounts, named, row, run, sums, transact,
};

pub(super) const TICKS: &str = "ticks";
/// These clients rest longer than others, which they would block all the time.
const RESTS: u32 = 3;

/// Creates the table.
pub(super) fn create(session: &mut Session) -> EngineResult<()> {
    run(session, |session| session.ddl().create_table(accounts(TICKS, false))).map(drop)
}

/// The number of ticks and the sum of their numbers, if clients are slow.
pub(super) fn ticks(session: &mut Session) -> EngineResult<Option<(u64, i64)>> {
    let Some(table) = named(session, TICKS) else { return Ok(None) };
    run(session, |session| sums(session, &table, 2)).map(Some)
}

/// Runs bursts of short transactions. Most are rolled back.
pub(super) fn tick(
    client: &mut Client,
    rng: &mut StdRng,
    mut numbers: Numbers,
    bursts: u32,
) -> Numbers {
    for _ in 0..bursts {
        for _ in 0..rng.random_range(500..2000) {
            let commits = rng.random_bool(0.2);
            match insert(client, numbers.acknowledged + 1, commits) {
                Ok(true) => numbers.acknowledge_asynchronous(),
                Ok(false) => {}
                Err(Failed::InDoubt) => {
                    numbers.is_in_doubt = true;
                    return numbers;
                }
                Err(Failed::RolledBack) if client.engine().stopped().is_some() => return numbers,
                Err(Failed::RolledBack) => {}
            }
        }
        (0..RESTS).for_each(|_| client.rest());
    }
    numbers
}

/// Inserts a tick. Returns whether it was committed.
fn insert(client: &mut Client, number: i64, commits: bool) -> Result<bool, Failed> {
    let session = client.session()?;
    if commits {
        transact(session, ASYNCHRONOUS, |session| insert_tick(session, number))?;
        return Ok(true);
    }
    session.begin(ASYNCHRONOUS)?;
    let result = session.start_statement().and_then(|()| insert_tick(session, number));
    session.end_statement();
    session.abort();
    result?;
    Ok(false)
}

/// Inserts a tick in the running statement.
pub(super) fn insert_tick(session: &mut Session, number: i64) -> EngineResult<()> {
    let Some(table) = named(session, TICKS) else { panic!("no ticks") };
    session.lock_table(&table, LockMode::RowExclusive)?;
    session.insert(&table, &row(number as i32, "tick", number)).map(drop)
}

/// Runs a client that locks tables, in any order, and thinks while it holds them.
pub(super) fn hold(client: &mut Client, rng: &mut StdRng, steps: u32) {
    const MODES: [LockMode; 5] = [
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];
    for _ in 0..steps {
        if client.engine().stopped().is_some() {
            return;
        }
        let mut names = ["accounts", "history", "registers"];
        let first = rng.random_range(0..names.len());
        names.rotate_left(first);
        let mode = MODES[rng.random_range(0..MODES.len())];
        let count = rng.random_range(1..3);
        // It may fail: nothing depends on it.
        let _ = client.transact(READ_COMMITTED, |client| {
            for name in &names[..count] {
                let session = client.session()?;
                let Some(table) = named(session, name) else { panic!("no {name}") };
                session.lock_table(&table, mode)?;
                client.pause()?;
            }
            Ok(())
        });
        (0..RESTS).for_each(|_| client.rest());
    }
}
