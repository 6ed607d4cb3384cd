//! Long index scans, which read the rows of consecutive entries together, return what a table scan
//! returns.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{RC, RR, accounts, add, all_of, config, create, find, ids_by, index, row, run, table};
use millpond_buffer::{IoMethod, Wait};
use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::IndexScan;
use millpond_engine::table::{Direction, KeyRange, RowBuf, RowOutcome};
use millpond_engine::types::Datum;
use millpond_engine::types::key::{NextColumn, RangeEnd};
use millpond_engine::{Engine, EngineConfig, EngineError, EngineResult, Session};

/// So few frames that a scan is long after 16 rows and uses a ring.
const BUFFERS: usize = 128;
const ROWS: i32 = 8000;

/// A text whose order differs from that of the ids.
fn owner(id: i32) -> String {
    let scattered = (id as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("{scattered:016x}").repeat(4)
}

/// Accounts with an index on `id`, in the order of the table, and one on `owner`, in random order.
fn world(directory: &std::path::Path) -> (Arc<Engine>, Session, Arc<TableDef>) {
    world_on(Engine::open(small(directory)).unwrap())
}

fn small(directory: &std::path::Path) -> EngineConfig {
    let mut config = config(directory);
    config.buffers = BUFFERS;
    config
}

fn world_on(engine: Arc<Engine>) -> (Arc<Engine>, Session, Arc<TableDef>) {
    let mut session = engine.session().unwrap();
    let made = create(&mut session, accounts());
    run(&mut session, |s| s.ddl().create_index(index(made.oid, &[1]))).unwrap();
    let accounts = table(&session, "accounts");
    run(&mut session, |s| {
        s.lock_table(&accounts, LockMode::RowExclusive)?;
        for id in 1..=ROWS {
            s.insert(&accounts, &row(id, &owner(id), 100))?;
        }
        Ok(())
    })
    .unwrap();
    (engine, session, accounts)
}

/// The id, owner and balance of all rows, by a scan of the table, sorted by that column.
fn by_table(
    session: &Session,
    accounts: &Arc<TableDef>,
    column: usize,
) -> EngineResult<Vec<(i64, String, i64)>> {
    let mut rows = Vec::new();
    let mut scan = session.heap_scan(accounts)?;
    while scan.next_page(session, &mut |_, bytes| {
        rows.push(values(accounts, bytes));
        Ok(())
    })? {}
    match column {
        0 => rows.sort(),
        _ => rows.sort_by(|a, b| a.1.cmp(&b.1)),
    }
    Ok(rows)
}

fn values(accounts: &TableDef, bytes: &[u8]) -> (i64, String, i64) {
    let column = |column| accounts.layout.column(bytes, column).unwrap();
    let Datum::Text(owner) = column(1) else { panic!("an owner") };
    (column(0).as_i64().unwrap(), owner.to_owned(), column(2).as_i64().unwrap())
}

/// Begins a scan of all entries of the index on that column.
fn start(
    session: &Session,
    accounts: &Arc<TableDef>,
    column: usize,
    direction: Direction,
    scan: &mut IndexScan,
) -> EngineResult<()> {
    let index = accounts.indexes.iter().find(|index| index.columns[0].column == column).unwrap();
    session.start_index_scan(accounts, index, &all_of(index), direction, scan)
}

fn by_index(
    session: &Session,
    accounts: &Arc<TableDef>,
    column: usize,
    (direction, first): (Direction, usize),
) -> EngineResult<Vec<(i64, String, i64)>> {
    let (mut scan, mut row, mut rows) = (IndexScan::new(), RowBuf::new(), Vec::new());
    start(session, accounts, column, direction, &mut scan)?;
    scan.expect(first);
    while scan.next(session, &mut row)? {
        rows.push(values(accounts, row.bytes()));
    }
    assert!(!scan.next(session, &mut row)?, "the end stays the end");
    Ok(rows)
}

/// Compares all scans of all indexes with the scan of the table.
fn assert_same(session: &Session, accounts: &Arc<TableDef>) -> EngineResult<usize> {
    session.lock_table(accounts, LockMode::AccessShare)?;
    let mut count = 0;
    for column in [0, 1] {
        let wanted = by_table(session, accounts, column)?;
        for (direction, first) in [
            (Direction::Forward, 1),
            (Direction::Forward, usize::MAX),
            (Direction::Backward, 4),
            (Direction::Backward, 0),
        ] {
            let rows = by_index(session, accounts, column, (direction, first))?;
            let is_same = match direction {
                Direction::Forward => rows.iter().eq(&wanted),
                Direction::Backward => rows.iter().rev().eq(&wanted),
            };
            assert!(is_same, "{column} {direction:?} {first}");
        }
        count = wanted.len();
    }
    Ok(count)
}

/// Makes chains of many versions, rows that moved, and deleted rows.
fn change_some(session: &mut Session, accounts: &Arc<TableDef>) {
    for _ in 0..6 {
        run(session, |s| {
            for id in (1..=ROWS).step_by(50) {
                assert!(add(s, accounts, id, 1)?);
            }
            Ok(())
        })
        .unwrap();
    }
    run(session, |s| {
        for id in (2..=ROWS).step_by(7) {
            let mut found = find(s, accounts, id)?;
            match id % 3 {
                0 => s.delete(accounts, &mut found)?,
                _ => s.update(accounts, &mut found, &row(id, &owner(-id), 5))?,
            };
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_long_scan_of_an_index_sees_what_a_scan_of_the_table_sees() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session, accounts) = world(directory.path());
    let mut before = engine.session().unwrap();
    before.begin(RR).unwrap();
    before.start_statement().unwrap();
    assert_eq!(assert_same(&before, &accounts).unwrap(), ROWS as usize);
    before.end_statement();

    change_some(&mut session, &accounts);
    let mut running = engine.session().unwrap();
    running.begin(RC).unwrap();
    running.start_statement().unwrap();
    assert!(add(&running, &accounts, 3, 1000).unwrap());
    let now = run(&mut session, |s| assert_same(s, &accounts)).unwrap();
    assert!(now < ROWS as usize);
    assert_eq!(assert_same(&running, &accounts).unwrap(), now);

    before.start_statement().unwrap();
    assert_eq!(assert_same(&before, &accounts).unwrap(), ROWS as usize);
    before.end_statement();
    before.abort();
    running.end_statement();
    running.abort();
    session.maintenance().vacuum(accounts.oid).unwrap();
    assert_eq!(run(&mut session, |s| assert_same(s, &accounts)).unwrap(), now);
}

#[test]
fn long_scan_that_updates_rows_returns_each_once() {
    let directory = tempfile::tempdir().unwrap();
    let (_engine, mut session, accounts) = world(directory.path());
    let met = run(&mut session, |s| {
        s.lock_table(&accounts, LockMode::RowExclusive)?;
        let by_owner = &accounts.indexes[1];
        let (mut scan, mut found, mut met) = (IndexScan::new(), RowBuf::new(), 0);
        s.start_index_scan(&accounts, by_owner, &all_of(by_owner), Direction::Forward, &mut scan)?;
        while scan.next(s, &mut found)? {
            let (id, owner, balance) = values(&accounts, found.bytes());
            // The new key sorts after all others.
            let new = format!("z{owner}");
            let done = s.update(&accounts, &mut found, &row(id as i32, &new, balance + 1))?;
            assert!(matches!(done, RowOutcome::Done(_)));
            met += 1;
        }
        Ok(met)
    })
    .unwrap();
    assert_eq!(met, ROWS);
    let ids = run(&mut session, |s| {
        s.lock_table(&accounts, LockMode::AccessShare)?;
        assert_same(s, &accounts)?;
        ids_by(s, &accounts, &accounts.indexes[0], &[], Direction::Forward)
    });
    assert_eq!(ids.unwrap(), (1..=i64::from(ROWS)).collect::<Vec<_>>());
}

#[test]
fn a_long_scan_that_may_not_wait_goes_on_where_it_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = small(directory.path());
    // A page that is not in the pool must be waited for.
    (config.io_method, config.direct_io) = (IoMethod::Sync, true);
    let engine = match Engine::open(config) {
        Err(EngineError::Buffer(error)) => {
            println!("skipped: no direct I/O here: {error}");
            return;
        }
        opened => opened.unwrap(),
    };
    let (_engine, mut session, accounts) = world_on(engine);
    change_some(&mut session, &accounts);
    run(&mut session, |s| {
        s.lock_table(&accounts, LockMode::AccessShare)?;
        let (mut scan, mut found) = (IndexScan::new(), RowBuf::new());
        for column in [0, 1] {
            let (mut rows, mut refused) = (Vec::new(), 0);
            start(s, &accounts, column, Direction::Forward, &mut scan)?;
            loop {
                s.set_wait(Wait::Never);
                let next = scan.next(s, &mut found);
                s.set_wait(Wait::Allowed);
                let more = match next {
                    Err(EngineError::WouldBlock) => {
                        refused += 1;
                        scan.next(s, &mut found)?
                    }
                    next => next?,
                };
                if !more {
                    break;
                }
                rows.push(values(&accounts, found.bytes()));
            }
            assert!(refused > 0);
            assert!(rows == by_table(s, &accounts, column)?, "column {column}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn abandoned_long_scan_keeps_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (_engine, mut session, accounts) = world(directory.path());
    run(&mut session, |s| {
        s.lock_table(&accounts, LockMode::AccessShare)?;
        let (mut scan, mut found) = (IndexScan::new(), RowBuf::new());
        let is_long = |scan: &IndexScan| format!("{scan:?}").contains("is_long: true");
        for taken in [1, 300] {
            start(s, &accounts, 0, Direction::Forward, &mut scan)?;
            for _ in 0..taken {
                assert!(scan.next(s, &mut found)?);
            }
            assert_eq!(is_long(&scan), taken == 300);
            scan.end();
            assert!(!is_long(&scan));
            assert!(!scan.next(s, &mut found)?);
        }
        start(s, &accounts, 0, Direction::Forward, &mut scan)?;
        let mut count = 0;
        while scan.next(s, &mut found)? {
            count += 1;
        }
        assert_eq!(count, ROWS);
        Ok(())
    })
    .unwrap();
}

/// Scans that stay short return the rows of their range, also after one that was left early in the
/// same memory.
#[test]
fn a_short_scan_sees_what_a_scan_of_the_table_sees() {
    const MOST: usize = 150;
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    config.buffers = 16 * MOST;
    let (_engine, mut session, accounts) = world_on(Engine::open(config).unwrap());
    change_some(&mut session, &accounts);
    run(&mut session, |s| {
        s.lock_table(&accounts, LockMode::AccessShare)?;
        let all = by_table(s, &accounts, 0)?;
        let index = accounts.primary_key().unwrap();
        let (mut scan, mut range, mut found) = Default::default();
        for (place, length) in (0..all.len() - MOST).step_by(97).zip((1..=MOST).cycle()) {
            let wanted = &all[place..place + length];
            let key = |at: usize| Datum::Int4(wanted[at].0 as i32);
            range_of(index, key(0), key(length - 1), &mut range);
            for direction in [Direction::Forward, Direction::Backward] {
                for stop in [length / 2, usize::MAX] {
                    s.start_index_scan(&accounts, index, &range, direction, &mut scan)?;
                    let mut rows = Vec::new();
                    while rows.len() < stop && scan.next(s, &mut found)? {
                        assert!(found.tid().is_some());
                        rows.push(values(&accounts, found.bytes()));
                    }
                    let in_order: Vec<_> = match direction {
                        Direction::Forward => wanted.iter().take(stop).cloned().collect(),
                        Direction::Backward => wanted.iter().rev().take(stop).cloned().collect(),
                    };
                    assert!(rows == in_order, "{place} {length} {direction:?} {stop}");
                }
            }
        }
        assert!(format!("{scan:?}").contains("is_long: false"));
        Ok(())
    })
    .unwrap();
}

/// The keys from one to another, both included.
fn range_of(index: &IndexDef, from: Datum<'_>, to: Datum<'_>, range: &mut KeyRange) {
    let end = |value| Some(RangeEnd { value, inclusive: true });
    let values = NextColumn::Value { from: end(from), to: end(to) };
    index.keys.range(&[], values, &mut range.lower, &mut range.upper).unwrap();
}
