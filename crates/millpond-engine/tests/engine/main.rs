//! The engine as a whole: tables, indexes, definitions, restarts.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod definitions;
mod restarts;

use common::*;
use millpond_buffer::{BackendKind, BlockNumber, IoContext, Wait};
use millpond_engine::catalog::{ColumnDef, NewIndex, NewTable};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::Commit;
use millpond_engine::table::{Direction, RowBatch, RowBuf, RowOutcome, TableError};
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineError, Session};

#[test]
fn workers_see_what_the_session_sees() {
    let (_dir, _engine, mut session, accounts) = bank(2000);
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    for id in 1..=100 {
        add(&session, &accounts, id, 1).unwrap();
    }
    session.start_statement().unwrap();
    for id in 1..=50 {
        // A second change of a row that this transaction made needs a combo command id.
        add(&session, &accounts, id, 1).unwrap();
    }
    session.start_statement().unwrap();
    let scan = session.parallel_scan(&accounts).unwrap();
    let half = scan.blocks() / 2;
    let sums = std::thread::scope(|scope| {
        let work = |range: std::ops::Range<u32>| {
            let scan = scan.clone();
            move || {
                let mut worker = scan.worker(range).unwrap();
                let (mut rows, mut sum) = (0, 0);
                while worker
                    .next_page(&mut |_, bytes| {
                        rows += 1;
                        sum += scan.table().layout.column(bytes, 2).unwrap().as_i64().unwrap();
                        Ok(())
                    })
                    .unwrap()
                {}
                (rows, sum)
            }
        };
        let threads = [scope.spawn(work(0..half)), scope.spawn(work(half..scan.blocks()))];
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(sums[0].0 + sums[1].0, 2000);
    assert_eq!(sums[0].1 + sums[1].1, 200_150);
    let mut worker = scan.worker(0..1).unwrap();
    session.end_statement();
    assert!(matches!(worker.next_page(&mut |_, _| Ok(())), Err(EngineError::Cancelled)));
    session.abort();
}

#[test]
fn would_block_is_returned_before_any_change() {
    let (_dir, engine, mut session, accounts) = bank(10);
    let mut holder = engine.session().unwrap();
    holder.begin(RC).unwrap();
    holder.start_statement().unwrap();
    add(&holder, &accounts, 1, 1).unwrap();
    holder.insert(&accounts, &row(11, "x", 1)).unwrap();

    session.set_wait(Wait::Never);
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    assert!(matches!(add(&session, &accounts, 1, 5), Err(EngineError::WouldBlock)));
    assert!(matches!(session.insert(&accounts, &row(11, "y", 1)), Err(EngineError::WouldBlock)));
    assert!(add(&session, &accounts, 2, 5).unwrap());
    match session.commit().unwrap() {
        Commit::Done => {}
        Commit::Pending(ticket) => {
            let woken = std::sync::Arc::new(Woken::default());
            session.on_durable(&ticket, std::task::Waker::from(woken.clone()));
            woken.wait();
            session.finish_commit(ticket).unwrap();
        }
    }
    holder.commit().unwrap();
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    assert_eq!(total(&session, &accounts).unwrap(), (11, 1007));
    session.commit().unwrap();
}

#[derive(Default)]
struct Woken(std::sync::Mutex<bool>, std::sync::Condvar);

impl Woken {
    fn wait(&self) {
        let mut woken = self.0.lock().unwrap();
        while !*woken {
            woken = self.1.wait(woken).unwrap();
        }
    }
}

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

#[test]
fn connections_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.max_connections = 2;
    let engine = Engine::open(config).unwrap();
    let first = engine.session().unwrap();
    let _second = engine.session().unwrap();
    assert!(matches!(engine.session(), Err(EngineError::TooManySessions)));
    drop(first);
    engine.session().unwrap();
}

#[test]
fn dead_rows_are_vacuumed_in_the_background() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.autovacuum.enabled = true;
    config.autovacuum.naptime = std::time::Duration::from_millis(20);
    let engine = Engine::open(config).unwrap();
    let mut session = engine.session().unwrap();
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, 200);
    while accounts.stats.vacuums().1 == 0 {
        // Indexes have come and gone.
        let accounts = table(&session, "accounts");
        run(&mut session, |s| {
            for id in 1..=200 {
                // The row gets a new index entry: only vacuum removes the old versions' entries.
                let mut found = find(s, &accounts, id)?;
                s.delete(&accounts, &mut found)?;
                s.insert(&accounts, &row(id, "moved", 100))?;
            }
            Ok(())
        })
        .unwrap();
        // DDL runs meanwhile; autovacuum yields to it.
        run(&mut session, |s| s.ddl().create_index(index(accounts.oid, &[1]))).unwrap();
        let newest = table(&session, "accounts").indexes.last().unwrap().oid;
        run(&mut session, |s| s.ddl().drop_index(newest, false)).unwrap();
    }
    drop((session, accounts));
    engine.shutdown().unwrap();
    drop(engine);
    // The check needs a database without other sessions, and so without autovacuum.
    let engine = open(dir.path());
    assert_whole(&engine);
    engine.shutdown().unwrap();
}

#[test]
fn frozen_loads_are_visible_after_commit_and_gone_after_rollback() {
    let (_dir, engine, mut session) = opened();
    let load = |session: &mut Session| {
        session.begin(RC).unwrap();
        session.start_statement().unwrap();
        let accounts = session.ddl().create_table(accounts()).unwrap();
        let mut batch = RowBatch::new();
        batch.freeze();
        for id in 0..1000 {
            session.add_to_batch(&accounts, &row(id, "x", 1), &mut batch).unwrap();
        }
        session.insert_batch(&accounts, &mut batch).unwrap();
        accounts
    };
    load(&mut session);
    session.abort();
    assert!(session.catalog().table_by_name("accounts").is_none());
    let accounts = load(&mut session);
    session.commit().unwrap();
    run(&mut session, |s| {
        assert_eq!(total(s, &accounts)?, (1000, 1000));
        assert!(!s.is_new(&accounts));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
}

#[test]
fn parallel_scans_leave_room_for_every_client() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = config(dir.path());
    small.max_connections = 4;
    let engine = Engine::open(small).unwrap();
    let mut session = engine.session().unwrap();
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, 1);
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    let scan = session.parallel_scan(&accounts).unwrap();
    let mut workers = Vec::new();
    let error = loop {
        match scan.worker(0..1) {
            Ok(worker) => workers.push(worker),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, EngineError::LimitExceeded { .. }), "{error}");
    let others: Vec<Session> = (0..3).map(|_| engine.session().unwrap()).collect();
    drop(workers);
    assert!(scan.worker(0..1).is_ok());
    // Idle workers beyond the limit give up their lines.
    let idle = engine.sessions().in_use();
    assert!(idle <= 4 + 8 + engine.config().max_parallel_workers, "{idle}");
    drop(others);
    session.commit().unwrap();
}

#[test]
fn checkpoint_writes_are_timed_with_io_timing() {
    let write_us = |io_timing| {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.bulk_access.io_timing = io_timing;
        let engine = Engine::open(config).unwrap();
        let mut session = engine.session().unwrap();
        let table = create(&mut session, accounts());
        fill(&mut session, &table, 1000);
        engine.checkpoint().unwrap();
        let stats = engine.pool().stats();
        let written = stats.io_of(BackendKind::Checkpointer, IoContext::Normal);
        assert!(written.writes > 0, "{written:?}");
        written.write_us
    };
    assert_eq!(write_us(false), 0);
    assert!(write_us(true) > 0);
}
