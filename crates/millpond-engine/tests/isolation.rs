//! What transactions see of each other, and that their sums hold.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::*;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::{LockMode, LockTag};
use millpond_engine::table::{Direction, IndexScan, KeyRange, LockStrength, RowBuf, RowOutcome};
use millpond_engine::transam::SessionNo;
use millpond_engine::types::Datum;
use millpond_engine::{EngineError, EngineResult, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Starts the next statement of a running transaction.
fn next(session: &mut Session) {
    session.end_statement();
    session.start_statement().unwrap();
}

fn start(session: &mut Session, options: millpond_engine::session::TransactionOptions) {
    session.begin(options).unwrap();
    session.start_statement().unwrap();
}

#[test]
fn read_committed_sees_commits_between_statements_and_repeatable_read_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let [mut writer, mut rc, mut rr] = [(); 3].map(|()| engine.session().unwrap());
    let accounts = create(&mut writer, accounts());
    fill(&mut writer, &accounts, 2);
    start(&mut rc, RC);
    start(&mut rr, RR);
    for reader in [&rc, &rr] {
        assert_eq!(balance(reader, &accounts, 1).unwrap(), Some(100));
    }
    start(&mut writer, RC);
    add(&writer, &accounts, 1, 50).unwrap();
    writer.insert(&accounts, &row(3, "new", 1)).unwrap();
    // Not committed: nobody else sees it, and its own later statements do.
    next(&mut rc);
    assert_eq!(balance(&rc, &accounts, 1).unwrap(), Some(100));
    assert_eq!(balance(&writer, &accounts, 1).unwrap(), Some(100));
    next(&mut writer);
    assert_eq!(balance(&writer, &accounts, 1).unwrap(), Some(150));
    writer.commit().unwrap();
    // The statement that runs keeps its snapshot.
    assert_eq!(balance(&rc, &accounts, 1).unwrap(), Some(100));
    next(&mut rc);
    assert_eq!(total(&rc, &accounts).unwrap(), (3, 251));
    next(&mut rr);
    assert_eq!(total(&rr, &accounts).unwrap(), (2, 200));
    // And a change of what has changed since is refused.
    let error = add(&rr, &accounts, 1, 1).unwrap_err();
    assert!(is_serialization_failure(&error), "{error}");
    rr.abort();
    rc.commit().unwrap();
}

#[test]
fn an_update_waits_and_goes_on_with_the_newest_version() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut first = engine.session().unwrap();
    let accounts = create(&mut first, accounts());
    fill(&mut first, &accounts, 2);
    start(&mut first, RC);
    add(&first, &accounts, 1, 10).unwrap();
    let waiter = std::thread::spawn({
        let (engine, accounts) = (engine.clone(), accounts.clone());
        move || {
            let mut second = engine.session().unwrap();
            start(&mut second, RC);
            // Sees 100, waits, and adds to 110.
            assert!(add(&second, &accounts, 1, 1).unwrap());
            second.commit().unwrap();
        }
    });
    wait_for_waiter(&engine);
    first.commit().unwrap();
    waiter.join().unwrap();
    run(&mut first, |s| {
        assert_eq!(balance(s, &accounts, 1)?, Some(111));
        Ok(())
    })
    .unwrap();

    // If the other rolls back, the old version is the newest.
    start(&mut first, RC);
    add(&first, &accounts, 1, 1000).unwrap();
    let waiter = std::thread::spawn({
        let (engine, accounts) = (engine.clone(), accounts.clone());
        move || {
            let mut second = engine.session().unwrap();
            start(&mut second, RR);
            assert!(add(&second, &accounts, 1, 1).unwrap());
            second.commit().unwrap();
        }
    });
    wait_for_waiter(&engine);
    first.abort();
    waiter.join().unwrap();
    run(&mut first, |s| {
        assert_eq!(balance(s, &accounts, 1)?, Some(112));
        Ok(())
    })
    .unwrap();
}

/// Until some session waits for a lock.
fn wait_for_waiter(engine: &millpond_engine::Engine) {
    while !engine.locks().list().iter().any(|lock| !lock.granted) {
        std::thread::yield_now();
    }
}

/// Who waits longest for their turn at a row, and since when.
fn queue(engine: &millpond_engine::Engine) -> Vec<(LockTag, SessionNo, Instant)> {
    let waits = engine.locks().list().into_iter().filter_map(|lock| {
        let since = lock.waiting_since?;
        matches!(lock.tag, LockTag::Tuple { .. }).then_some((lock.tag, lock.session, since))
    });
    waits.collect()
}

#[test]
fn a_change_of_a_row_wakes_one_of_those_who_wait_for_it() {
    const WAITERS: usize = 4;
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut first = engine.session().unwrap();
    let accounts = create(&mut first, accounts());
    fill(&mut first, &accounts, 2);
    start(&mut first, RC);
    add(&first, &accounts, 1, 1).unwrap();
    let (changed, changes) = mpsc::channel();
    let waiters: Vec<_> = (0..WAITERS)
        .map(|number| {
            let (engine, accounts, changed) = (engine.clone(), accounts.clone(), changed.clone());
            let (go_on, may_commit) = mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                let mut session = engine.session().unwrap();
                start(&mut session, RC);
                assert!(add(&session, &accounts, 1, 1).unwrap());
                changed.send(number).unwrap();
                may_commit.recv().unwrap();
                session.commit().unwrap();
            });
            (go_on, thread)
        })
        .collect();
    // One has the turn and waits for the transaction, the others for the turn.
    let mut waiting = queue(&engine);
    while waiting.len() < WAITERS - 1 {
        std::thread::yield_now();
        waiting = queue(&engine);
    }
    first.commit().unwrap();
    for left in (0..WAITERS).rev() {
        let number = changes.recv().unwrap();
        // One of those who waited for their turn has it; nobody else has stirred.
        let mut still = queue(&engine);
        while still.len() > left.saturating_sub(1) {
            std::thread::yield_now();
            still = queue(&engine);
        }
        assert!(still.iter().all(|one| waiting.contains(one)), "{still:?} of {waiting:?}");
        assert_eq!(still.len(), left.saturating_sub(1));
        waiting = still;
        waiters[number].0.send(()).unwrap();
    }
    for (_, thread) in waiters {
        thread.join().unwrap();
    }
    run(&mut first, |s| {
        assert_eq!(balance(s, &accounts, 1)?, Some(100 + 1 + WAITERS as i64));
        Ok(())
    })
    .unwrap();
}

/// A statement that finds a row changed and leaves it alone keeps nobody waiting for the rest of its time.
#[test]
fn who_leaves_a_row_alone_gives_up_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut first = engine.session().unwrap();
    let accounts = create(&mut first, accounts());
    fill(&mut first, &accounts, 2);
    start(&mut first, RC);
    add(&first, &accounts, 1, 1).unwrap();
    let (looked, has_looked) = mpsc::channel::<()>();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let second = std::thread::spawn({
        let (engine, accounts) = (engine.clone(), accounts.clone());
        move || {
            let mut session = engine.session().unwrap();
            start(&mut session, RC);
            session.lock_table(&accounts, LockMode::RowExclusive).unwrap();
            let (mut found, key) = (RowBuf::new(), accounts.primary_key().unwrap());
            assert!(session.lookup(&accounts, key, &[Datum::Int4(1)], &mut found).unwrap());
            let outcome = session.delete(&accounts, &mut found).unwrap();
            assert!(matches!(outcome, RowOutcome::Changed), "{outcome:?}");
            session.end_turn();
            looked.send(()).unwrap();
            may_go_on.recv().unwrap();
            session.commit().unwrap();
        }
    });
    // The second has the turn and waits for the transaction, the third for the turn.
    wait_for_waiter(&engine);
    let (changed, has_changed) = mpsc::channel::<()>();
    let third = std::thread::spawn({
        let (engine, accounts) = (engine.clone(), accounts.clone());
        move || {
            let mut session = engine.session().unwrap();
            start(&mut session, RC);
            assert!(add(&session, &accounts, 1, 1).unwrap());
            session.commit().unwrap();
            changed.send(()).unwrap();
        }
    });
    while queue(&engine).is_empty() {
        std::thread::yield_now();
    }
    first.commit().unwrap();
    has_looked.recv().unwrap();
    // While the second's statement still runs.
    has_changed.recv_timeout(Duration::from_secs(60)).expect("the third has had its turn");
    go_on.send(()).unwrap();
    second.join().unwrap();
    third.join().unwrap();
}

#[test]
fn a_deleted_row_is_left_out_and_a_locked_one_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut first = engine.session().unwrap();
    let accounts = create(&mut first, accounts());
    fill(&mut first, &accounts, 3);
    start(&mut first, RC);
    let mut found = RowBuf::new();
    let key = accounts.primary_key().unwrap();
    assert!(first.lookup(&accounts, key, &[Datum::Int4(1)], &mut found).unwrap());
    assert!(matches!(first.delete(&accounts, &mut found).unwrap(), RowOutcome::Done(_)));
    assert!(first.lookup(&accounts, key, &[Datum::Int4(2)], &mut found).unwrap());
    let locked = first.lock_row(&accounts, &mut found, LockStrength::Update).unwrap();
    assert!(matches!(locked, RowOutcome::Done(_)));
    let waiters = [(1, RC), (2, RC), (1, RR)].map(|(id, options)| {
        let (engine, accounts) = (engine.clone(), accounts.clone());
        std::thread::spawn(move || {
            let mut session = engine.session().unwrap();
            start(&mut session, options);
            let result = add(&session, &accounts, id, 1);
            session.end_statement();
            if result.is_ok() {
                session.commit().unwrap();
            } else {
                session.abort();
            }
            result
        })
    });
    while engine.locks().list().iter().filter(|lock| !lock.granted).count() < 3 {
        std::thread::yield_now();
    }
    first.commit().unwrap();
    let [deleted, locked, strict] = waiters.map(|waiter| waiter.join().unwrap());
    assert!(!deleted.unwrap());
    assert!(locked.unwrap());
    assert!(is_serialization_failure(&strict.unwrap_err()));
}

#[test]
fn deadlocks_are_found_and_cancelling_ends_a_wait() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.deadlock_timeout = Duration::from_millis(50);
    let engine = millpond_engine::Engine::open(config).unwrap();
    let mut first = engine.session().unwrap();
    let accounts = create(&mut first, accounts());
    fill(&mut first, &accounts, 2);
    start(&mut first, RC);
    add(&first, &accounts, 1, 1).unwrap();
    let other = std::thread::spawn({
        let (engine, accounts) = (engine.clone(), accounts.clone());
        move || {
            let mut second = engine.session().unwrap();
            start(&mut second, RC);
            add(&second, &accounts, 2, 1).unwrap();
            let result = add(&second, &accounts, 1, 1);
            second.abort();
            result
        }
    });
    wait_for_waiter(&engine);
    let mine = add(&first, &accounts, 2, 1);
    let deadlock =
        |result: &Result<bool, EngineError>| matches!(result, Err(EngineError::Deadlock { .. }));
    first.abort();
    let theirs = other.join().unwrap();
    assert!(deadlock(&mine) || deadlock(&theirs), "{mine:?} {theirs:?}");

    start(&mut first, RC);
    add(&first, &accounts, 1, 1).unwrap();
    let mut second = engine.session().unwrap();
    let cancel = second.cancel_handle();
    let other = std::thread::spawn({
        let accounts = accounts.clone();
        move || {
            start(&mut second, RC);
            let result = add(&second, &accounts, 1, 1);
            second.abort();
            result
        }
    });
    wait_for_waiter(&engine);
    cancel.cancel();
    assert!(matches!(other.join().unwrap(), Err(EngineError::Cancelled)));
    first.abort();
}

#[test]
fn two_inserts_of_one_key_wait_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    for commits in [true, false] {
        let mut first = engine.session().unwrap();
        let name = format!("t{commits}");
        let accounts =
            create(&mut first, millpond_engine::catalog::NewTable { name, ..accounts() });
        start(&mut first, RC);
        first.insert(&accounts, &row(1, "first", 1)).unwrap();
        let other = std::thread::spawn({
            let (engine, accounts) = (engine.clone(), accounts.clone());
            move || {
                let mut second = engine.session().unwrap();
                run(&mut second, |s| s.insert(&accounts, &row(1, "second", 1))).is_ok()
            }
        });
        wait_for_waiter(&engine);
        if commits {
            first.commit().unwrap();
        } else {
            first.abort();
        }
        assert_eq!(other.join().unwrap(), !commits);
    }
    assert_whole(&engine);
}

#[test]
fn transfers_keep_the_sum() {
    const ACCOUNTS: i32 = 40;
    const THREADS: u64 = 4;
    const TRANSFERS: usize = 250;
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.deadlock_timeout = Duration::from_millis(20);
    let engine = millpond_engine::Engine::open(config).unwrap();
    let mut session = engine.session().unwrap();
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, ACCOUNTS);
    let done = AtomicBool::new(false);
    let seed: u64 = rand::random();
    println!("seed {seed}");
    std::thread::scope(|scope| {
        let workers = Vec::from_iter((0..THREADS).map(|thread| {
            let (engine, accounts) = (&engine, &accounts);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed + thread);
                let mut session = engine.session().unwrap();
                for i in 0..TRANSFERS {
                    let options = millpond_engine::session::TransactionOptions {
                        asynchronous: true,
                        ..if thread % 2 == 0 { RC } else { RR }
                    };
                    let (from, to) =
                        (random.random_range(1..=ACCOUNTS), random.random_range(1..=ACCOUNTS));
                    let amount = random.random_range(1..50);
                    session.begin(options).unwrap();
                    let result = session.start_statement().and_then(|()| {
                        assert!(add(&session, accounts, from, -amount)?);
                        session.end_statement();
                        session.start_statement()?;
                        assert!(add(&session, accounts, to, amount)?);
                        Ok(())
                    });
                    match result {
                        Ok(()) if i % 7 != 0 => {
                            session.commit().unwrap();
                        }
                        Ok(())
                        | Err(
                            EngineError::Deadlock { .. } | EngineError::SerializationFailure { .. },
                        ) => session.abort(),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        }));
        // A reader sees the sum unchanged at any moment, by table and by index.
        let reader = scope.spawn(|| {
            let mut session = engine.session().unwrap();
            let mut sums = 0;
            while !done.load(Ordering::Relaxed) {
                run(&mut session, |s| {
                    assert_eq!(total(s, &accounts)?, (ACCOUNTS as u64, 100 * i64::from(ACCOUNTS)));
                    let ids = ids(s, &accounts, millpond_engine::table::Direction::Forward)?;
                    assert_eq!(ids, Vec::from_iter(1..=i64::from(ACCOUNTS)));
                    Ok(())
                })
                .unwrap();
                sums += 1;
            }
            sums
        });
        let vacuum = scope.spawn(|| {
            let mut session = engine.session().unwrap();
            while !done.load(Ordering::Relaxed) {
                session.vacuum(accounts.oid).unwrap();
                std::thread::yield_now();
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
        vacuum.join().unwrap();
    });
    run(&mut session, |s| {
        assert_eq!(total(s, &accounts)?, (ACCOUNTS as u64, 100 * i64::from(ACCOUNTS)));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
}

#[test]
fn definitions_change_under_running_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    create(&mut session, accounts());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (engine, done) = (&engine, &done);
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
                        // A new plan is needed.
                        Err(EngineError::Table(
                            millpond_engine::table::TableError::StaleDefinition(_),
                        )) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for round in 0..12 {
            let accounts = table(&session, "accounts");
            if round % 3 == 2 {
                run(&mut session, |s| s.truncate(&[accounts.oid])).unwrap();
            } else {
                run(&mut session, |s| s.create_index(index(accounts.oid, &[1]))).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(table(&session, "accounts").indexes.len(), 9);
    assert_whole(&engine);
}

fn is_too_new(error: &EngineError) -> bool {
    use millpond_engine::table::TableError;
    matches!(error, EngineError::Table(TableError::IndexTooNew(_)))
}

/// The ids of accounts of that balance, by the index on it.
fn ids_of(session: &Session, table: &Arc<TableDef>, amount: i64) -> EngineResult<Vec<i64>> {
    session.lock_table(table, LockMode::AccessShare)?;
    let index = table.indexes.iter().find(|index| !index.primary).unwrap();
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    index.keys.encode(&[Datum::Int8(amount)], &mut lower).unwrap();
    index.keys.encode(&[Datum::Int8(amount + 1)], &mut upper).unwrap();
    let mut scan = IndexScan::new();
    let range = KeyRange { lower, upper };
    session.start_index_scan(table, index, &range, Direction::Forward, &mut scan)?;
    let (mut row, mut ids) = (RowBuf::new(), Vec::new());
    while scan.next(session, &mut row)? {
        ids.push(row.column(table, 0).unwrap().as_i64().unwrap());
    }
    Ok(ids)
}

#[test]
fn an_index_is_not_used_by_who_sees_rows_that_its_maker_changed_before() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let [mut maker, mut old, mut new] = [(); 3].map(|()| engine.session().unwrap());
    let accounts = create(&mut maker, accounts());
    fill(&mut maker, &accounts, 3);
    start(&mut old, RR);
    assert_eq!(balance(&old, &accounts, 1).unwrap(), Some(100));
    old.commit().unwrap();
    start(&mut maker, RC);
    add(&maker, &accounts, 1, 50).unwrap();
    next(&mut maker);
    // Before the commit, as far as this one can see; its locks are not in the way.
    start(&mut old, RR);
    maker.create_index(index(accounts.oid, &[2])).unwrap();
    next(&mut maker);
    assert_eq!(ids_of(&maker, &table(&maker, "accounts"), 150).unwrap(), [1]);
    maker.commit().unwrap();
    let accounts = table(&old, "accounts");
    let error = ids_of(&old, &accounts, 100).unwrap_err();
    assert!(is_too_new(&error), "{error}");
    old.abort();
    start(&mut new, RR);
    assert_eq!(ids_of(&new, &accounts, 100).unwrap(), [2, 3]);
    assert_eq!(ids_of(&new, &accounts, 150).unwrap(), [1]);
    new.commit().unwrap();
}

#[test]
fn a_snapshot_from_before_does_not_use_an_index_that_lacks_what_it_sees() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let [mut session, mut old, mut new] = [(); 3].map(|()| engine.session().unwrap());
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, 5);
    start(&mut old, RR);
    assert_eq!(balance(&old, &accounts, 1).unwrap(), Some(100));
    let rename = |session: &Session| {
        let mut found = RowBuf::new();
        let key = accounts.primary_key().unwrap();
        assert!(session.lookup(&accounts, key, &[Datum::Int4(1)], &mut found).unwrap());
        session.update(&accounts, &mut found, &row(1, "renamed", 100)).unwrap();
    };
    // How many the index on owners finds.
    let count = |session: &mut Session, owner: &str| {
        let accounts = table(session, "accounts");
        let index = accounts.indexes.last().unwrap();
        let mut range = millpond_engine::table::KeyRange::default();
        index
            .keys
            .range(&[Datum::Text(owner)], None, None, &mut range.lower, &mut range.upper)
            .unwrap();
        let mut scan = millpond_engine::table::IndexScan::new();
        let forward = millpond_engine::table::Direction::Forward;
        session.start_index_scan(&accounts, index, &range, forward, &mut scan)?;
        let (mut found, mut count) = (RowBuf::new(), 0);
        while scan.next(session, &mut found)? {
            count += 1;
        }
        Ok::<_, EngineError>(count)
    };
    for own_change in [false, true] {
        if !own_change {
            run(&mut session, |s| {
                rename(s);
                Ok(())
            })
            .unwrap();
        }
        start(&mut session, RC);
        if own_change {
            rename(&session);
        }
        let index = session.create_index(index(accounts.oid, &[1])).unwrap();
        next(&mut session);
        assert_eq!(count(&mut session, "renamed").unwrap(), 1);
        assert_eq!(count(&mut session, "somebody").unwrap(), 4);
        session.commit().unwrap();
        assert!(is_too_new(&count(&mut old, "renamed").unwrap_err()));
        let made = table(&old, "accounts");
        assert!(!old.is_usable(made.indexes.last().unwrap()).unwrap());
        assert!(session.is_usable(made.indexes.last().unwrap()).unwrap());
        start(&mut new, RR);
        assert_eq!(count(&mut new, "renamed").unwrap(), 1);
        new.abort();
        // Again, now with the change in the index's own transaction.
        old.abort();
        assert_whole(&engine);
        run(&mut session, |s| s.drop_index(index.oid, false)).unwrap();
        start(&mut old, RR);
        let accounts = table(&old, "accounts");
        assert_eq!(balance(&old, &accounts, 1).unwrap(), Some(100));
    }
}
