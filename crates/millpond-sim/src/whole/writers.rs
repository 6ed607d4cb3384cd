//! Sessions that move money and record it, and sessions that compare both.

use millpond_engine::lmgr::LockMode;
use millpond_engine::types::Datum;
use millpond_engine::{EngineResult, Session};
use rand::Rng;
use rand::rngs::StdRng;

use super::client::Client;
use super::ledger::Numbers;
use super::tables::{
    ACCOUNTS, BALANCE, Failed, READ_COMMITTED, REPEATABLE_READ, add, named, sums, transact,
};
use super::ticks::TICKS;

/// Slow clients use few accounts, because they make few transactions: some must meet.
const SLOW_ACCOUNTS: i32 = 2;
/// How often a slow reader reads again under one snapshot.
const REREADS: u32 = 16;

/// Runs a writer. Returns what was acknowledged.
pub(super) fn write(
    client: &mut Client,
    rng: &mut StdRng,
    (writer, mut numbers): (usize, Numbers),
    steps: u32,
) -> Numbers {
    for _ in 0..steps {
        match move_money(client, rng, writer as i32, numbers.acknowledged + 1) {
            Ok(()) => numbers.acknowledge(),
            Err(Failed::InDoubt) => {
                numbers.is_in_doubt = true;
                return numbers;
            }
            Err(Failed::RolledBack) if client.engine().stopped().is_some() => return numbers,
            Err(Failed::RolledBack) => {}
        }
        client.rest();
        if rng.random_bool(0.05) {
            millpond_sync::thread::sleep(std::time::Duration::from_millis(rng.random_range(1..50)));
        }
    }
    numbers
}

fn move_money(
    client: &mut Client,
    rng: &mut StdRng,
    writer: i32,
    number: i64,
) -> Result<(), Failed> {
    let range = if client.is_slow() { SLOW_ACCOUNTS } else { ACCOUNTS };
    if rng.random_bool(0.1) {
        let account = rng.random_range(1..=range);
        client.begin(REPEATABLE_READ)?;
        let result = client.statement(|client| credit(client, account, 1_000_000));
        client.abort();
        result?;
    }
    // One statement changes a row at most once. The two rows come in any order, so deadlocks
    // happen.
    let first = rng.random_range(1..=range);
    let second = (first + rng.random_range(1..range) - 1) % range + 1;
    let moves = [first, second].map(|account| (account, rng.random_range(-100..100)));
    let count = if client.is_slow() { 2 } else { rng.random_range(1..3) };
    let moves: Vec<(i32, i64)> = moves.into_iter().take(count).collect();
    let record = |client: &mut Client| {
        for (account, delta) in &moves {
            credit(client, *account, *delta)?;
            client.pause()?;
        }
        let session = client.session()?;
        let Some(history) = named(session, "history") else { panic!("no history") };
        session.lock_table(&history, LockMode::RowExclusive)?;
        let sum: i64 = moves.iter().map(|(_, delta)| delta).sum();
        let values =
            [Datum::Int4(writer), Datum::Int8(number), Datum::Int4(moves[0].0), Datum::Int8(sum)];
        session.insert(&history, &values).map(|_| ())
    };
    Ok(client.transact(READ_COMMITTED, record)?)
}

fn credit(client: &mut Client, account: i32, delta: i64) -> EngineResult<()> {
    let session = client.session()?;
    let Some(accounts) = named(session, "accounts") else { panic!("no accounts") };
    add(session, &accounts, account, delta)
}

/// Runs a reader: within one snapshot the balances must match the records.
pub(super) fn read(client: &mut Client, rng: &mut StdRng, steps: u32) {
    for _ in 0..steps {
        // A read may fail: then there is no answer that could be wrong.
        let _ = client.transact(REPEATABLE_READ, reread);
        client.rest();
        millpond_sync::thread::sleep(std::time::Duration::from_millis(rng.random_range(1..20)));
    }
}

/// Reads the balances in one transaction; a slow client holds its snapshot and reads again and
/// again.
fn reread(client: &mut Client) -> EngineResult<()> {
    let first = balances(client.session()?)?;
    if client.is_slow() {
        for _ in 0..REREADS {
            client.pause()?;
            assert_eq!(balances(client.session()?)?, first, "a snapshot has changed");
        }
    }
    Ok(())
}

/// Checks the balances. An error means that they could not be read.
pub(super) fn compare(session: &mut Session) -> EngineResult<()> {
    transact(session, REPEATABLE_READ, |session| balances(session).map(drop))
}

/// The sum of all changes, and what the ticks are. The sum of the balances must match.
fn balances(session: &mut Session) -> EngineResult<(i64, Option<(u64, i64)>)> {
    let Some(accounts) = named(session, "accounts") else { panic!("no accounts") };
    let Some(history) = named(session, "history") else { panic!("no history") };
    let (balances, deltas) = (sums(session, &accounts, 2)?, sums(session, &history, 3)?.1);
    let expected = (ACCOUNTS as u64, i64::from(ACCOUNTS) * BALANCE + deltas);
    assert_eq!(balances, expected, "rows and sum of the balances");
    let ticks = named(session, TICKS).map(|ticks| sums(session, &ticks, 2)).transpose()?;
    Ok((deltas, ticks))
}
