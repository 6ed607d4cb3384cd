//! Sessions that move money and record it, and sessions that read both.

use std::sync::Arc;

use millpond_engine::lmgr::LockMode;
use millpond_engine::types::Datum;
use millpond_engine::{Engine, EngineResult, Session};
use rand::Rng;
use rand::rngs::StdRng;

use super::ledger::Numbers;
use super::tables::{ACCOUNTS, BALANCE, Failed, REPEATABLE_READ, add, named, run, sums, transact};

/// A writer's life. Returns what was acknowledged.
pub(super) fn write(
    engine: &Arc<Engine>,
    rng: &mut StdRng,
    (writer, mut numbers): (usize, Numbers),
    steps: u32,
) -> Numbers {
    let Ok(mut session) = engine.session() else { return numbers };
    for _ in 0..steps {
        match move_money(&mut session, rng, writer as i32, numbers.acknowledged + 1) {
            Ok(()) => numbers.acknowledged += 1,
            Err(Failed::InDoubt) => {
                numbers.is_in_doubt = true;
                return numbers;
            }
            Err(Failed::RolledBack) if engine.stopped().is_some() => return numbers,
            Err(Failed::RolledBack) => {}
        }
        if rng.random_bool(0.05) {
            millpond_sync::thread::sleep(std::time::Duration::from_millis(rng.random_range(1..50)));
        }
    }
    numbers
}

fn move_money(
    session: &mut Session,
    rng: &mut StdRng,
    writer: i32,
    number: i64,
) -> Result<(), Failed> {
    let Some(accounts) = named(session, "accounts") else { panic!("no accounts") };
    let Some(history) = named(session, "history") else { panic!("no history") };
    if rng.random_bool(0.1) {
        let account = rng.random_range(1..=ACCOUNTS);
        session.begin(REPEATABLE_READ)?;
        let result =
            session.start_statement().and_then(|()| add(session, &accounts, account, 1_000_000));
        session.end_statement();
        session.abort();
        result?;
    }
    // One statement changes a row once. Two rows in any order: deadlocks happen.
    let first = rng.random_range(1..=ACCOUNTS);
    let second = (first + rng.random_range(1..ACCOUNTS) - 1) % ACCOUNTS + 1;
    let moves = [first, second].map(|account| (account, rng.random_range(-100..100)));
    let moves: Vec<(i32, i64)> = moves.into_iter().take(rng.random_range(1..3)).collect();
    let record = |session: &mut Session| {
        for (account, delta) in &moves {
            add(session, &accounts, *account, *delta)?;
        }
        session.lock_table(&history, LockMode::RowExclusive)?;
        let sum: i64 = moves.iter().map(|(_, delta)| delta).sum();
        let values =
            [Datum::Int4(writer), Datum::Int8(number), Datum::Int4(moves[0].0), Datum::Int8(sum)];
        session.insert(&history, &values).map(|_| ())
    };
    Ok(run(session, record)?)
}

/// A reader's life: in one snapshot the balances are what the records say.
pub(super) fn read(engine: &Arc<Engine>, rng: &mut StdRng, steps: u32) {
    let Ok(mut session) = engine.session() else { return };
    for _ in 0..steps {
        // Reads may fail: then there is no answer, and so no wrong one.
        let _ = compare(&mut session);
        millpond_sync::thread::sleep(std::time::Duration::from_millis(rng.random_range(1..20)));
    }
}

/// Fails, or finds the balances right.
pub(super) fn compare(session: &mut Session) -> EngineResult<()> {
    let Some(accounts) = named(session, "accounts") else { panic!("no accounts") };
    let Some(history) = named(session, "history") else { panic!("no history") };
    let read =
        |session: &mut Session| Ok((sums(session, &accounts, 2)?, sums(session, &history, 3)?.1));
    let (balances, deltas) = transact(session, REPEATABLE_READ, read)?;
    let expected = (ACCOUNTS as u64, i64::from(ACCOUNTS) * BALANCE + deltas);
    assert_eq!(balances, expected, "rows and sum of the balances");
    Ok(())
}
