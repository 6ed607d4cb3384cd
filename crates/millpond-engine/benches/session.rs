//! Measures the Session API, without SQL and without a server. It loads accounts as pgbench does,
//! builds their primary key, then measures reads by key, changes and scans.
//!
//! `cargo bench -p millpond-engine --bench session -- [ROWS] [THREADS] [DIRECTORY]`
#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_engine::catalog::{ColumnDef, NewIndex, NewTable, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::TransactionOptions;
use millpond_engine::table::{RowBatch, RowBuf, RowOutcome};
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineConfig, EngineResult, Session};

fn accounts() -> NewTable {
    NewTable {
        name: "pgbench_accounts".into(),
        columns: vec![
            ColumnDef::new("aid", DataType::Int4).not_null(),
            ColumnDef::new("bid", DataType::Int4),
            ColumnDef::new("abalance", DataType::Int4),
            ColumnDef::new("filler", DataType::Char(84)),
        ],
        fillfactor: 100,
        indexes: Vec::new(),
    }
}

fn transaction<R>(
    session: &mut Session,
    options: TransactionOptions,
    work: impl FnOnce(&mut Session) -> EngineResult<R>,
) -> R {
    session.begin(options).unwrap();
    session.start_statement().unwrap();
    let result = work(session).unwrap();
    session.end_statement();
    session.commit().unwrap();
    result
}

/// Processor time that the process has used, in seconds (Linux counts it in hundredths).
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in parentheses, which may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

struct Begun(Instant, f64);

fn begin() -> Begun {
    Begun(Instant::now(), processor_time())
}

fn report(what: &str, count: u64, begun: &Begun) {
    let elapsed = begun.0.elapsed().as_secs_f64();
    let each = (processor_time() - begun.1) * 1e6 / count.max(1) as f64;
    let rate = count as f64 / elapsed;
    println!("{what:<42} {rate:>11.0}/s {each:>9.2} us of processor time each");
}

fn load(session: &mut Session, rows: i32) -> Arc<TableDef> {
    let options = TransactionOptions::default();
    let table = transaction(session, options, |s| s.ddl().create_table(accounts()));
    let begun = begin();
    transaction(session, options, |s| {
        s.lock_table(&table, LockMode::RowExclusive)?;
        let mut batch = RowBatch::new();
        for aid in 1..=rows {
            let row = [
                Datum::Int4(aid),
                Datum::Int4((aid - 1) / 100_000 + 1),
                Datum::Int4(0),
                Datum::Text(""),
            ];
            s.add_to_batch(&table, &row, &mut batch)?;
            if batch.byte_len() > 60_000 {
                s.insert_batch(&table, &mut batch)?;
            }
        }
        s.insert_batch(&table, &mut batch)
    });
    report("rows loaded", rows as u64, &begun);
    let begun = begin();
    let key = common::index(table.oid, &[0]);
    let key = NewIndex { unique: true, primary: true, constraint: true, ..key };
    transaction(session, options, |s| s.ddl().create_index(key));
    report("entries of the primary key built", rows as u64, &begun);
    let begun = begin();
    session.maintenance().vacuum(table.oid).unwrap();
    report("rows vacuumed", rows as u64, &begun);
    session.catalog().table_by_name("pgbench_accounts").unwrap().clone()
}

/// Runs `work` in several threads for two seconds. Each call gets a random number.
fn measure(
    what: &str,
    engine: &Arc<Engine>,
    threads: u64,
    work: impl Fn(&mut Session, &mut RowBuf, u64) + Sync,
) {
    let begun = begin();
    let begun = &begun;
    let time = Duration::from_secs(2);
    let count: u64 = std::thread::scope(|scope| {
        let work = &work;
        let threads = Vec::from_iter((0..threads).map(|thread| {
            scope.spawn(move || {
                let mut session = engine.session().unwrap();
                let mut row = RowBuf::new();
                let (mut random, mut count) = (0x9e37_79b9_7f4a_7c15 ^ (thread + 1), 0);
                while begun.0.elapsed() < time {
                    for _ in 0..16 {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        work(&mut session, &mut row, random >> 8);
                    }
                    count += 16;
                }
                count
            })
        }));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    report(&format!("{what}, {threads} threads"), count, begun);
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let rows: i32 = arguments.next().map_or(1_000_000, |rows| rows.parse().unwrap());
    let threads: u64 = arguments.next().map_or(2, |threads| threads.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = arguments.next().map_or(directory.path().join("data"), Into::into);
    let engine = Engine::open(EngineConfig::new(path)).unwrap();
    let mut session = engine.session().unwrap();
    let table = load(&mut session, rows);
    let key = table.primary_key().unwrap();
    let options = TransactionOptions::default();
    let select = |session: &mut Session, row: &mut RowBuf, random: u64| {
        let aid = (random % rows as u64) as i32 + 1;
        transaction(session, options, |s| {
            s.lock_table(&table, LockMode::AccessShare)?;
            assert!(s.lookup(&table, key, &[Datum::Int4(aid)], row)?);
            assert!(matches!(row.column(&table, 2), Ok(Datum::Int4(_))));
            Ok(())
        });
    };
    measure("selects by key", &engine, 1, select);
    measure("selects by key", &engine, threads, select);
    measure("selects by key in one transaction", &engine, 1, |session, row, random| {
        if !session.in_transaction() {
            session.begin(options).unwrap();
            session.start_statement().unwrap();
        }
        let aid = (random % rows as u64) as i32 + 1;
        assert!(session.lookup(&table, key, &[Datum::Int4(aid)], row).unwrap());
    });
    measure("empty transactions", &engine, 1, |session, _, _| {
        transaction(session, options, |_| Ok(()));
    });
    let update = |options| {
        let table = &table;
        move |session: &mut Session, row: &mut RowBuf, random: u64| {
            let aid = (random % rows as u64) as i32 + 1;
            transaction(session, options, |s| {
                s.lock_table(table, LockMode::RowExclusive)?;
                assert!(s.lookup(table, key, &[Datum::Int4(aid)], row)?);
                loop {
                    let balance = row.column(table, 2).unwrap().as_i64().unwrap() as i32;
                    let values = [
                        Datum::Int4(aid),
                        Datum::Int4(1),
                        Datum::Int4(balance.wrapping_add(1)),
                        Datum::Text(""),
                    ];
                    if s.update(table, row, &values)? != RowOutcome::Changed {
                        return Ok(());
                    }
                }
            });
        }
    };
    let background = TransactionOptions { asynchronous: true, ..options };
    measure("updates, synchronous_commit off", &engine, threads, update(background));
    measure("updates, durable", &engine, threads, update(options));
    measure("updates, durable", &engine, 16, update(options));
    let begun = begin();
    let count = transaction(&mut session, options, |s| {
        let mut scan = s.heap_scan(&table)?;
        let mut sum = 0i64;
        let mut count = 0;
        while scan.next_page(s, &mut |_, bytes| {
            sum += table.layout.column(bytes, 2).unwrap().as_i64().unwrap();
            count += 1;
            Ok(())
        })? {}
        Ok(count)
    });
    report("rows scanned and summed", count, &begun);
    drop(session);
    engine.shutdown().unwrap();
}
