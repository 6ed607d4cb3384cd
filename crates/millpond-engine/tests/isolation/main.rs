//! What transactions see of each other. Concurrent transfers keep the sum of balances.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod indexes;
mod key_share;
mod queues;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use common::*;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::TransactionOptions;
use millpond_engine::table::{Direction, TableError};
use millpond_engine::{Engine, EngineError, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// An engine with one table of accounts.
struct Bank {
    accounts: Arc<TableDef>,
    engine: Arc<Engine>,
    /// Deleted after the engine is dropped.
    _dir: tempfile::TempDir,
}

impl Bank {
    /// A bank with accounts 1 to `count`, with a balance of 100 each.
    fn new(count: i32) -> Self {
        Self::with_buffers(count, 512)
    }

    /// The same in a pool of that number of pages.
    fn with_buffers(count: i32, buffers: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.buffers = buffers;
        let engine = Engine::open(config).unwrap();
        let mut session = engine.session().unwrap();
        let accounts = create(&mut session, accounts());
        fill(&mut session, &accounts, count);
        Self { accounts, engine, _dir: dir }
    }

    fn session(&self) -> Session {
        self.engine.session().unwrap()
    }

    /// Runs a statement of a new session in its own thread; `run` ends the transaction.
    fn in_thread<R: Send + 'static>(
        &self,
        options: TransactionOptions,
        run: impl FnOnce(&mut Session, &Arc<TableDef>) -> R + Send + 'static,
    ) -> JoinHandle<R> {
        let (mut session, accounts) = (self.session(), self.accounts.clone());
        std::thread::spawn(move || {
            start(&mut session, options);
            run(&mut session, &accounts)
        })
    }
}

/// Starts the next statement of a running transaction.
fn next(session: &mut Session) {
    session.end_statement();
    session.start_statement().unwrap();
}

/// Begins a transaction and its first statement.
fn start(session: &mut Session, options: TransactionOptions) {
    session.begin(options).unwrap();
    session.start_statement().unwrap();
}

#[test]
fn read_committed_sees_commits_between_statements_and_repeatable_read_does_not() {
    let bank = Bank::new(2);
    let accounts = &bank.accounts;
    let [mut writer, mut rc, mut rr] = [(); 3].map(|()| bank.session());
    start(&mut rc, RC);
    start(&mut rr, RR);
    for reader in [&rc, &rr] {
        assert_eq!(balance(reader, accounts, 1).unwrap(), Some(100));
    }
    start(&mut writer, RC);
    add(&writer, accounts, 1, 50).unwrap();
    writer.insert(accounts, &row(3, "new", 1)).unwrap();
    // Uncommitted: no other session sees it, but later statements of its own transaction do.
    next(&mut rc);
    assert_eq!(balance(&rc, accounts, 1).unwrap(), Some(100));
    assert_eq!(balance(&writer, accounts, 1).unwrap(), Some(100));
    next(&mut writer);
    assert_eq!(balance(&writer, accounts, 1).unwrap(), Some(150));
    writer.commit().unwrap();
    // The running statement keeps its snapshot.
    assert_eq!(balance(&rc, accounts, 1).unwrap(), Some(100));
    next(&mut rc);
    assert_eq!(total(&rc, accounts).unwrap(), (3, 251));
    next(&mut rr);
    assert_eq!(total(&rr, accounts).unwrap(), (2, 200));
    // Changing a row that has changed since the snapshot is refused.
    let error = add(&rr, accounts, 1, 1).unwrap_err();
    assert!(is_serialization_failure(&error), "{error}");
    rr.abort();
    rc.commit().unwrap();
}

const ACCOUNTS: i32 = 40;

/// One of the threads that move money, with half of its transactions in each isolation level.
fn transfer_at_random(bank: &Bank, seed: u64, thread: u64) {
    const TRANSFERS: usize = 250;
    let accounts = &bank.accounts;
    let mut random = StdRng::seed_from_u64(seed + thread);
    let mut session = bank.session();
    let level = if thread.is_multiple_of(2) { RC } else { RR };
    for i in 0..TRANSFERS {
        let (from, to) = (random.random_range(1..=ACCOUNTS), random.random_range(1..=ACCOUNTS));
        let amount = random.random_range(1..50);
        session.begin(TransactionOptions { asynchronous: true, ..level }).unwrap();
        let result = session.start_statement().and_then(|()| {
            assert!(add(&session, accounts, from, -amount)?);
            next(&mut session);
            assert!(add(&session, accounts, to, amount)?);
            Ok(())
        });
        match result {
            Ok(()) if i % 7 != 0 => {
                session.commit().unwrap();
            }
            Ok(())
            | Err(EngineError::Deadlock { .. } | EngineError::SerializationFailure { .. }) => {
                session.abort()
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The sum is always the same, through the table and through the index.
fn check_sum(session: &mut Session, accounts: &Arc<TableDef>) {
    run(session, |s| {
        assert_eq!(total(s, accounts)?, (ACCOUNTS as u64, 100 * i64::from(ACCOUNTS)));
        let ids = ids(s, accounts, Direction::Forward)?;
        assert_eq!(ids, Vec::from_iter(1..=i64::from(ACCOUNTS)));
        Ok(())
    })
    .unwrap();
}

#[test]
fn transfers_keep_the_sum() {
    // So few frames that pages come and go all the time.
    let bank = &Bank::with_buffers(ACCOUNTS, 24);
    let (engine, accounts) = (&bank.engine, &bank.accounts);
    engine.locks().set_deadlock_timeout(Duration::from_millis(20));
    let done = AtomicBool::new(false);
    let seed: u64 = rand::random();
    println!("seed {seed}");
    std::thread::scope(|scope| {
        let transfers = |thread| scope.spawn(move || transfer_at_random(bank, seed, thread));
        let transfers = Vec::from_iter((0..4).map(transfers));
        let reader = scope.spawn(|| {
            let mut session = bank.session();
            let mut sums = 0;
            while !done.load(Ordering::Relaxed) {
                check_sum(&mut session, accounts);
                sums += 1;
            }
            sums
        });
        let vacuum = scope.spawn(|| {
            let mut session = bank.session();
            while !done.load(Ordering::Relaxed) {
                session.maintenance().vacuum(accounts.oid).unwrap();
                std::thread::yield_now();
            }
        });
        for thread in transfers {
            thread.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
        vacuum.join().unwrap();
    });
    check_sum(&mut bank.session(), accounts);
    assert_whole(engine);
}

#[test]
fn definitions_change_under_running_sessions() {
    let bank = Bank::new(0);
    let engine = &bank.engine;
    let mut session = bank.session();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let done = &done;
            scope.spawn(move || {
                let mut session = engine.session().unwrap();
                let mut id = thread;
                while !done.load(Ordering::Relaxed) {
                    let accounts = table(&session, "accounts");
                    let result = run(&mut session, |s| {
                        s.lock_table(&accounts, LockMode::RowExclusive)?;
                        s.insert(&accounts, &row(id, "x", 100))
                    });
                    match result {
                        Ok(_) => id += 2,
                        // The session needs a new plan.
                        Err(EngineError::Table(TableError::StaleDefinition(_))) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for round in 0..12 {
            let accounts = table(&session, "accounts");
            if round % 3 == 2 {
                run(&mut session, |s| s.ddl().truncate(&[accounts.oid])).unwrap();
            } else {
                run(&mut session, |s| s.ddl().create_index(index(accounts.oid, &[1]))).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(table(&session, "accounts").indexes.len(), 9);
    assert_whole(engine);
}
