//! Threads that lock and change a few rows. No two of them hold conflicting locks at a time, no
//! change is lost, and no thread waits forever.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::Commit;
use millpond_engine::table::{LockStrength, RowBuf, RowOutcome};
use millpond_engine::types::Datum;
use millpond_engine::{EngineError, EngineResult, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const ROWS: i32 = 3;
const THREADS: usize = 5;
const TRANSACTIONS: usize = 150;

/// Which thread holds which row, as the threads report it: from the time they have a lock until
/// just before their transaction ends.
#[derive(Default)]
struct Held(Mutex<BTreeMap<(i32, usize), LockStrength>>);

impl Held {
    fn add(&self, row: i32, thread: usize, strength: LockStrength) {
        let mut held = self.0.lock().unwrap();
        for (&(_, other), &theirs) in held.range((row, 0)..(row + 1, 0)) {
            assert!(
                other == thread || !strength.conflicts(theirs),
                "row {row}: {thread} has {strength:?}, {other} has {theirs:?}"
            );
        }
        let mine = held.entry((row, thread)).or_insert(strength);
        *mine = strength.max(*mine);
    }

    fn remove(&self, thread: usize) {
        self.0.lock().unwrap().retain(|held, _| held.1 != thread);
    }
}

/// Locks a row. Returns false if that would have to wait.
fn lock(
    session: &Session,
    table: &Arc<TableDef>,
    id: i32,
    strength: LockStrength,
    waits: bool,
) -> EngineResult<bool> {
    session.lock_table(table, LockMode::RowShare)?;
    let mut row = RowBuf::new();
    assert!(session.lookup(table, table.primary_key().unwrap(), &[Datum::Int4(id)], &mut row)?);
    loop {
        let outcome = match waits {
            true => Some(session.lock_row(table, &mut row, strength)?),
            false => session.try_lock_row(table, &mut row, strength)?,
        };
        match outcome {
            None => return Ok(false),
            Some(RowOutcome::Done(_)) => return Ok(true),
            Some(RowOutcome::Changed) => {}
            Some(RowOutcome::Gone) => panic!("no session deletes rows"),
        }
    }
}

/// Runs a few locks and changes. Returns what was added.
fn statements(
    session: &mut Session,
    table: &Arc<TableDef>,
    (thread, held): (usize, &Held),
    rng: &mut StdRng,
) -> EngineResult<i64> {
    let mut added = 0;
    for _ in 0..rng.random_range(1..4) {
        let (id, strength) =
            (rng.random_range(1..=ROWS), LockStrength::ALL[rng.random_range(0..4)]);
        session.start_statement()?;
        let result = if rng.random_bool(0.3) {
            add(session, table, id, 1).map(|_| added += 1).map(|()| Some(LockStrength::NoKeyUpdate))
        } else {
            let locked = lock(session, table, id, strength, rng.random_bool(0.7));
            locked.map(|locked| locked.then_some(strength))
        };
        session.end_statement();
        if let Some(strength) = result? {
            held.add(id, thread, strength);
        }
    }
    Ok(added)
}

fn work(mut session: Session, table: &Arc<TableDef>, who: (usize, &Held), seed: u64) -> i64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut sum = 0;
    for _ in 0..TRANSACTIONS {
        session.begin(RC).unwrap();
        let result = statements(&mut session, table, who, &mut rng);
        who.1.remove(who.0);
        match result {
            Ok(added) if rng.random_bool(0.8) => {
                assert_eq!(session.commit().unwrap(), Commit::Done);
                sum += added;
            }
            Ok(_) | Err(EngineError::Deadlock { .. }) => session.abort(),
            Err(error) => panic!("{error}"),
        }
    }
    sum
}

#[test]
fn no_two_threads_hold_conflicting_row_locks() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.locks().set_deadlock_timeout(Duration::from_millis(2));
    let mut first = engine.session().unwrap();
    let table = create(&mut first, accounts());
    fill(&mut first, &table, ROWS);
    let held = Held::default();
    let added: i64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (session, table, held) = (engine.session().unwrap(), &table, &held);
                let seed = seed.wrapping_add(thread as u64);
                scope.spawn(move || work(session, table, (thread, held), seed))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let (rows, sum) = run(&mut first, |s| total(s, &table)).unwrap();
    assert_eq!((rows, sum), (ROWS as u64, i64::from(ROWS) * 100 + added));
    assert!(engine.locks().list().is_empty());
}
