//! Measures queries that touch many heap pages, through the session API and in memory. They are an
//! index scan with rows on random pages, its nested loop join with a primary key, and updates by
//! key.
//!
//! `cargo bench -p millpond-engine --bench join -- [ROWS]`
//!
//! Prints the processor time per row: the minimum of several runs, since the machine may be busy.
#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use millpond_engine::catalog::{ColumnDef, NewIndex, NewTable, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::IndexScan;
use millpond_engine::session::TransactionOptions;
use millpond_engine::table::{Direction, KeyRange, RowBatch, RowBuf};
use millpond_engine::types::key::NextColumn;
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineConfig, EngineResult, Session};

const RUNS: usize = 7;

fn transaction<R>(session: &mut Session, work: impl FnOnce(&mut Session) -> EngineResult<R>) -> R {
    let options = TransactionOptions { asynchronous: true, ..TransactionOptions::default() };
    session.begin(options).unwrap();
    session.start_statement().unwrap();
    let result = work(session).unwrap();
    session.end_statement();
    session.commit().unwrap();
    result
}

/// Processor time of this thread, in nanoseconds.
fn thread_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|time| time.parse().ok()).unwrap_or_default()
}

fn report(what: &str, mut run: impl FnMut() -> u64) {
    let mut least = f64::MAX;
    for _ in 0..RUNS {
        let begun = thread_time();
        let rows = run();
        least = least.min((thread_time() - begun) as f64 / rows as f64);
    }
    println!("{what:<52} {least:8.0} ns a row");
}

fn index(table: &TableDef, column: usize, primary: bool) -> NewIndex {
    let index = common::index(table.oid, &[column]);
    NewIndex { unique: primary, primary, constraint: primary, ..index }
}

/// A table of rows (id, a permutation of the ids, filler).
fn load(session: &mut Session, rows: i32) -> Arc<TableDef> {
    let table = transaction(session, |s| {
        s.ddl().create_table(NewTable {
            name: "items".into(),
            columns: vec![
                ColumnDef::new("id", DataType::Int4).not_null(),
                ColumnDef::new("other", DataType::Int4).not_null(),
                ColumnDef::new("filler", DataType::Char(84)),
            ],
            fillfactor: 50,
            indexes: Vec::new(),
        })
    });
    transaction(session, |s| {
        s.lock_table(&table, LockMode::RowExclusive)?;
        let mut batch = RowBatch::new();
        for id in 0..rows {
            let other = (i64::from(id) * 7_368_787 % i64::from(rows)) as i32;
            let row = [Datum::Int4(id), Datum::Int4(other), Datum::Text("")];
            s.add_to_batch(&table, &row, &mut batch)?;
            if batch.byte_len() > 60_000 {
                s.insert_batch(&table, &mut batch)?;
            }
        }
        s.insert_batch(&table, &mut batch)
    });
    transaction(session, |s| s.ddl().create_index(index(&table, 0, true)));
    transaction(session, |s| s.ddl().create_index(index(&table, 1, false)));
    session.maintenance().vacuum(table.oid).unwrap();
    session.catalog().table_by_name("items").unwrap().clone()
}

fn main() {
    let rows: i32 = std::env::args()
        .skip(1)
        .find(|arg| arg != "--bench")
        .map_or(200_000, |rows| rows.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut config = EngineConfig::new(directory.path().join("data"));
    config.buffers = 32_768;
    let engine = Engine::open(config).unwrap();
    let mut session = engine.session().unwrap();
    let table = load(&mut session, rows);
    let (primary, other) = (table.indexes[0].clone(), table.indexes[1].clone());
    let mut everything = KeyRange::default();
    other.keys.range(&[], NextColumn::Any, &mut everything.lower, &mut everything.upper).unwrap();
    let (mut scan, mut row, mut inner) = (IndexScan::new(), RowBuf::new(), RowBuf::new());

    report("index scan, rows on random heap pages", || {
        transaction(&mut session, |s| {
            s.lock_table(&table, LockMode::AccessShare)?;
            s.start_index_scan(&table, &other, &everything, Direction::Forward, &mut scan)?;
            let mut count = 0;
            while scan.next(s, &mut row)? {
                count += 1;
            }
            Ok(count)
        })
    });
    report("nested loop join of it with the primary key", || {
        transaction(&mut session, |s| {
            s.lock_table(&table, LockMode::AccessShare)?;
            s.start_index_scan(&table, &other, &everything, Direction::Forward, &mut scan)?;
            let mut count = 0;
            while scan.next(s, &mut row)? {
                let key = row.column(&table, 1).unwrap();
                assert!(s.lookup(&table, &primary, &[key], &mut inner)?);
                count += 1;
            }
            Ok(count)
        })
    });
    let mut run = 0;
    report("update by key, in random order of pages", || {
        run += 1;
        transaction(&mut session, |s| {
            s.lock_table(&table, LockMode::RowExclusive)?;
            let some = rows / 20;
            for at in 0..some {
                let id = (i64::from(at + run * some) * 7_368_787 % i64::from(rows)) as i32;
                assert!(s.lookup(&table, &primary, &[Datum::Int4(id)], &mut row)?);
                let other = row.column(&table, 1).unwrap().as_i64().unwrap() as i32;
                let values = [Datum::Int4(id), Datum::Int4(other), Datum::Text("x")];
                s.update(&table, &mut row, &values)?;
            }
            Ok(some as u64)
        })
    });
    drop(session);
    engine.shutdown().unwrap();
}
