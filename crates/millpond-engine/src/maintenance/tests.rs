//! Background work of a whole engine.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::{BlockNumber, IoMethod, Wait};
use millpond_vfs::OsVfs;
use millpond_vfs::testing::{AskingVfs, Call};
use parking_lot::Mutex;

use crate::catalog::{ColumnDef, IndexColumn, NewIndex, NewTable, TableDef};
use crate::lmgr::{LockMode, LockTag};
use crate::session::{Session, TransactionOptions};
use crate::table::{RowBuf, RowOutcome};
use crate::testing::Hearer;
use crate::types::key::KeyOrder;
use crate::types::{DataType, Datum};
use crate::{Engine, EngineConfig};

const ROWS: i32 = 200;

fn in_transaction<R>(session: &mut Session, work: impl FnOnce(&mut Session) -> R) -> R {
    session.begin(TransactionOptions::default()).unwrap();
    session.start_statement().unwrap();
    let result = work(session);
    session.end_statement();
    session.commit().unwrap();
    result
}

/// A table of some ten pages.
fn table(session: &mut Session) -> Arc<TableDef> {
    let key = NewIndex {
        name: None,
        table: 0,
        columns: vec![IndexColumn { column: 0, order: KeyOrder::ASC }],
        unique: true,
        primary: true,
        constraint: true,
        fillfactor: 90,
    };
    let columns = vec![ColumnDef::new("id", DataType::Int4), ColumnDef::new("v", DataType::Text)];
    let new = NewTable { name: "t".into(), columns, fillfactor: 100, indexes: vec![key] };
    let table = in_transaction(session, |s| s.ddl().create_table(new).unwrap());
    let text = "x".repeat(400);
    in_transaction(session, |s| {
        s.lock_table(&table, LockMode::RowExclusive).unwrap();
        for id in 0..ROWS {
            s.insert(&table, &[Datum::Int4(id), Datum::Text(&text)]).unwrap();
        }
    });
    table
}

/// A running vacuum waits for a page that the test has latched, until it is interrupted.
#[test]
fn autovacuum_yields_to_a_lock_waiter_and_retries() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = EngineConfig::new(dir.path());
    config.buffers = 256;
    config.max_connections = 8;
    config.autovacuum.naptime = Duration::from_millis(5);
    let engine = Engine::open(config).unwrap();
    engine.locks().set_deadlock_timeout(Duration::from_millis(1));
    let [mut session, mut waiter, holder] = [(); 3].map(|()| engine.session().unwrap());
    let table = table(&mut session);
    let heap = holder.heap(&table).unwrap();
    let first_page = holder.ctx().buffers().pin(&heap.main, BlockNumber(0), Wait::Allowed).unwrap();
    let first_page = first_page.into_exclusive().unwrap();
    in_transaction(&mut session, |s| {
        s.lock_table(&table, LockMode::RowExclusive).unwrap();
        let (mut row, key) = (RowBuf::new(), table.primary_key().unwrap());
        for id in ROWS / 4..ROWS {
            assert!(s.lookup(&table, key, &[Datum::Int4(id)], &mut row).unwrap());
            assert!(matches!(s.delete(&table, &mut row).unwrap(), RowOutcome::Done(_)));
        }
    });
    let is_vacuums = |lock: &crate::lmgr::LockInfo| {
        lock.tag == LockTag::Relation(table.oid) && lock.mode == LockMode::ShareUpdateExclusive
    };
    while !engine.locks().list().iter().any(is_vacuums) {
        std::thread::yield_now();
    }
    let hearer = Hearer::of_debug();
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| {
            tracing::subscriber::with_default(hearer.clone(), || {
                in_transaction(&mut waiter, |s| {
                    s.lock_table(&table, LockMode::AccessExclusive).unwrap();
                    assert_eq!(table.stats.vacuums(), (0, 0));
                });
            });
        });
        let is_told =
            |said: &String| said.starts_with("sending cancel to blocking autovacuum PID ");
        while !hearer.heard().iter().any(is_told) {
            std::thread::yield_now();
        }
        assert!(!wait.is_finished());
        drop(first_page);
        wait.join().unwrap();
    });
    while table.stats.vacuums().1 == 0 {
        std::thread::yield_now();
    }
    drop((session, waiter, holder));
    engine.shutdown().unwrap();
}

/// The names of the log's segments, in order.
fn segments(data: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data.join("wal")).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A crash here needs the log from the redo point that the file still names (wal rule 9).
#[test]
fn a_checkpoint_forgets_log_after_it_has_written_the_control_file() {
    let dir = tempfile::tempdir().unwrap();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (its_seen, data) = (Arc::clone(&seen), dir.path().to_owned());
    let vfs = AskingVfs::new(OsVfs, move |call, path: &Path| {
        if call == Call::Write && path.file_stem().is_some_and(|name| name == "control") {
            its_seen.lock().extend(segments(&data).into_iter().next());
        }
        Ok(())
    });
    let mut config = EngineConfig::new(dir.path());
    (config.vfs, config.io_method) = (vfs, IoMethod::Sync);
    (config.buffers, config.max_connections) = (256, 8);
    config.wal_segment_bytes = 1 << 16;
    let engine = Engine::open(config).unwrap();
    let mut session = engine.session().unwrap();
    table(&mut session);
    let first = segments(dir.path()).swap_remove(0);
    seen.lock().clear();
    engine.checkpoint().unwrap();
    assert_eq!(*seen.lock(), std::slice::from_ref(&first));
    assert!(segments(dir.path())[0] > first, "nothing was forgotten");
    drop(session);
    engine.shutdown().unwrap();
}
