//! The engine as a whole: tables, indexes, definitions, restarts.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use millpond_buffer::Wait;
use millpond_engine::catalog::{ColumnDef, NewIndex, NewTable};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::Commit;
use millpond_engine::table::{Direction, RowBatch, RowBuf, RowOutcome, TableError};
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineError, Session};

#[test]
fn rows_come_back_after_a_clean_restart() {
    let dir = tempfile::tempdir().unwrap();
    {
        let engine = open(dir.path());
        let mut session = engine.session().unwrap();
        let accounts = create(&mut session, accounts());
        fill(&mut session, &accounts, 1000);
        run(&mut session, |s| {
            assert!(add(s, &accounts, 7, 11)?);
            assert!(!add(s, &accounts, 7000, 11)?);
            Ok(())
        })
        .unwrap();
        drop(session);
        assert_whole(&engine);
        engine.shutdown().unwrap();
    }
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let accounts = table(&session, "accounts");
    run(&mut session, |s| {
        assert_eq!(balance(s, &accounts, 7)?, Some(111));
        assert_eq!(total(s, &accounts)?, (1000, 100_011));
        assert_eq!(ids(s, &accounts, Direction::Forward)?, Vec::from_iter(1..=1000));
        assert_eq!(ids(s, &accounts, Direction::Backward)?, Vec::from_iter((1..=1000).rev()));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
}

#[test]
fn committed_work_survives_without_a_shutdown_and_other_work_does_not() {
    let dir = tempfile::tempdir().unwrap();
    {
        let engine = open(dir.path());
        let mut session = engine.session().unwrap();
        let accounts = create(&mut session, accounts());
        fill(&mut session, &accounts, 300);
        engine.checkpoint().unwrap();
        run(&mut session, |s| add(s, &accounts, 1, 1)).unwrap();
        let mut other = engine.session().unwrap();
        other.begin(RC).unwrap();
        other.start_statement().unwrap();
        add(&other, &accounts, 2, 1000).unwrap();
        other.create_table(NewTable { name: "lost".into(), ..common::accounts() }).unwrap();
        // Leaves like a crash: no rollback reaches the log.
        std::mem::forget(other);
        std::mem::forget(session);
        engine.log().flush(engine.log().insert_position()).unwrap();
        engine.log().abandon();
        std::mem::forget(engine);
    }
    let lock = dir.path().join("millpond.lock");
    // The forgotten engine holds the lock file: the copy is a directory that nobody has open.
    let copy = tempfile::tempdir().unwrap();
    copy_directory(dir.path(), copy.path());
    let _ = lock;
    let engine = open(copy.path());
    let mut session = engine.session().unwrap();
    let accounts = table(&session, "accounts");
    assert!(session.catalog().table_by_name("lost").is_none());
    run(&mut session, |s| {
        assert_eq!(balance(s, &accounts, 1)?, Some(101));
        assert_eq!(balance(s, &accounts, 2)?, Some(100));
        assert_eq!(total(s, &accounts)?, (300, 30_001));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
    // The name is free, and the orphaned files are gone.
    create(&mut session, NewTable { name: "lost".into(), ..common::accounts() });
}

fn copy_directory(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_directory(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_second_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _engine = open(dir.path());
    assert!(matches!(Engine::open(config(dir.path())), Err(EngineError::Directory(_))));
}

#[test]
fn constraints_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, 10);
    let error = run(&mut session, |s| s.insert(&accounts, &row(5, "x", 1))).unwrap_err();
    match error {
        EngineError::Table(TableError::DuplicateKey { table, index, columns, values }) => {
            assert_eq!(
                (&*table, &*index, columns),
                ("accounts", "accounts_pkey", vec!["id".into()])
            );
            assert_eq!(values, [millpond_engine::types::Value::Int4(5)]);
        }
        other => panic!("{other}"),
    }
    let null = [Datum::Null, Datum::Text("x"), Datum::Int8(1)];
    let error = run(&mut session, |s| s.insert(&accounts, &null)).unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::NotNull { .. })), "{error}");
    run(&mut session, |s| {
        // A key can be used again once its row is gone, also within one transaction.
        let mut found = RowBuf::new();
        let key = accounts.primary_key().unwrap();
        assert!(s.lookup(&accounts, key, &[Datum::Int4(5)], &mut found)?);
        assert!(matches!(s.delete(&accounts, &mut found)?, RowOutcome::Done(_)));
        s.insert(&accounts, &row(5, "again", 1))?;
        Ok(())
    })
    .unwrap();
    // Moving a key onto another's is refused.
    let error = run(&mut session, |s| {
        let mut found = RowBuf::new();
        s.lookup(&accounts, accounts.primary_key().unwrap(), &[Datum::Int4(1)], &mut found)?;
        s.update(&accounts, &mut found, &row(2, "x", 1))
    })
    .unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::DuplicateKey { .. })), "{error}");
    run(&mut session, |s| {
        assert_eq!(balance(s, &accounts, 5)?, Some(1));
        assert_eq!(balance(s, &accounts, 1)?, Some(100));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
}

#[test]
fn indexes_are_built_from_rows_and_kept_up() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let accounts = create(&mut session, NewTable { indexes: Vec::new(), ..common::accounts() });
    let mut batch = RowBatch::new();
    run(&mut session, |s| {
        s.lock_table(&accounts, LockMode::RowExclusive)?;
        for id in 0..5000 {
            s.add_to_batch(&accounts, &row(id, &format!("owner {}", id % 100), 100), &mut batch)?;
        }
        assert_eq!(s.insert_batch(&accounts, &mut batch)?, 5000);
        Ok(())
    })
    .unwrap();
    // An aborted build leaves nothing.
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    session.create_index(index(accounts.oid, &[1])).unwrap();
    session.abort();
    assert!(session.catalog().relation("accounts_owner_idx").is_none());
    let unique = NewIndex { unique: true, ..index(accounts.oid, &[1]) };
    let error = run(&mut session, |s| s.create_index(unique)).unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::NotUnique { .. })), "{error}");

    run(&mut session, |s| {
        s.create_index(index(accounts.oid, &[1, 0]))?;
        s.create_index(NewIndex { primary: true, ..index(accounts.oid, &[0]) })
    })
    .unwrap();
    let stale = accounts;
    run(&mut session, |s| {
        let error = s.lock_table(&stale, LockMode::AccessShare).unwrap_err();
        assert!(matches!(error, EngineError::Table(TableError::StaleDefinition(_))), "{error}");
        Ok(())
    })
    .unwrap();
    let accounts = table(&session, "accounts");
    assert_eq!(accounts.indexes.len(), 2);
    assert!(accounts.columns[0].not_null);
    let owners = accounts.indexes[1].clone();
    assert_eq!(owners.name, "accounts_owner_id_idx");
    run(&mut session, |s| {
        let mut range = millpond_engine::table::KeyRange::default();
        owners
            .keys
            .range(&[Datum::Text("owner 42")], None, None, &mut range.lower, &mut range.upper)
            .unwrap();
        let mut scan = millpond_engine::table::IndexScan::new();
        s.start_index_scan(&accounts, &owners, &range, Direction::Backward, &mut scan)?;
        let mut found = RowBuf::new();
        let mut ids = Vec::new();
        while scan.next(s, &mut found)? {
            ids.push(found.column(&accounts, 0).unwrap().as_i64().unwrap());
        }
        assert_eq!(ids, Vec::from_iter((0..50).map(|i| i * 100 + 42).rev()));
        for id in 0..500 {
            assert!(add(s, &accounts, id, 5)?);
        }
        Ok(())
    })
    .unwrap();
    run(&mut session, |s| {
        assert_eq!(total(s, &accounts)?, (5000, 502_500));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
    let summary = session.vacuum(accounts.oid).unwrap();
    assert_eq!(summary.remaining, 5000);
    assert_whole(&engine);
    run(&mut session, |s| s.drop_index(owners.oid, false)).unwrap();
    let pkey = accounts.primary_key().unwrap().oid;
    let error = run(&mut session, |s| s.drop_index(pkey, false)).unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::RequiredByConstraint { .. })));
    assert_whole(&engine);
}

#[test]
fn definitions_are_transactional() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let mut other = engine.session().unwrap();
    let files = |engine: &Engine| engine.pool().store().relations().unwrap().len();
    let before = files(&engine);

    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    let created = session.create_table(accounts()).unwrap();
    session.insert(&created, &row(1, "mine", 5)).unwrap();
    assert!(session.catalog().table_by_name("accounts").is_some());
    assert!(other.catalog().table_by_name("accounts").is_none());
    session.start_statement().unwrap();
    assert_eq!(balance(&session, &created, 1).unwrap(), Some(5));
    session.abort();
    assert!(session.catalog().table_by_name("accounts").is_none());
    assert_eq!(files(&engine), before);

    let created = create(&mut session, accounts());
    fill(&mut session, &created, 100);
    let with_table = files(&engine);
    // TRUNCATE and DROP can be taken back, too.
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    session.truncate(&[created.oid]).unwrap();
    let emptied = table(&session, "accounts");
    session.start_statement().unwrap();
    assert_eq!(total(&session, &emptied).unwrap(), (0, 0));
    session.insert(&emptied, &row(1, "new", 1)).unwrap();
    session.drop_table(created.oid).unwrap();
    assert!(session.catalog().table_by_name("accounts").is_none());
    session.abort();
    assert_eq!(files(&engine), with_table);
    let back = table(&session, "accounts");
    run(&mut session, |s| {
        assert_eq!(total(s, &back)?, (100, 10_000));
        s.truncate(&[back.oid])
    })
    .unwrap();
    assert_eq!(files(&engine), with_table);
    let emptied = table(&other, "accounts");
    fill(&mut other, &emptied, 3);
    assert_whole(&engine);
    let error = run(&mut session, |s| s.create_table(accounts())).unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::DuplicateRelation(_))));
    run(&mut session, |s| s.drop_table(emptied.oid)).unwrap();
    assert_eq!(files(&engine), before);
    assert!(other.catalog().table_by_name("accounts").is_none());
    drop((session, other));
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(engine.catalog().tables().count(), 0);
}

#[test]
fn workers_see_what_the_session_sees() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, 2000);
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
fn what_may_not_wait_says_so_before_it_changes_anything() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, 10);
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
fn every_type_can_be_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let types = [
        DataType::Bool,
        DataType::Int2,
        DataType::Int8,
        DataType::Float8,
        DataType::Numeric { precision_scale: None },
        DataType::Char(5),
        DataType::Bytea,
        DataType::Date,
        DataType::Timestamptz,
    ];
    let columns = types.iter().enumerate().map(|(i, ty)| ColumnDef::new(format!("c{i}"), *ty));
    let all = Vec::from_iter(0..types.len());
    let created = create(
        &mut session,
        NewTable {
            name: "t".into(),
            columns: columns.collect(),
            fillfactor: 100,
            indexes: vec![NewIndex { unique: true, ..index(0, &all) }],
        },
    );
    assert_eq!(created.indexes[0].name, "t_c0_c1_c2_c3_c4_c5_c6_c7_c8_idx");
    let number = "12.50".parse::<millpond_engine::types::Numeric>().unwrap();
    let values = [
        Datum::Bool(true),
        Datum::Int2(-5),
        Datum::Int8(5),
        Datum::Float8(f64::NAN),
        Datum::Numeric(number.as_ref()),
        Datum::Text("ab"),
        Datum::Bytea(&[0, 255]),
        Datum::Date(-1),
        Datum::Timestamptz(i64::MAX),
    ];
    run(&mut session, |s| s.insert(&created, &values)).unwrap();
    assert!(run(&mut session, |s| s.insert(&created, &values)).is_err());
    // NULLs are never the same.
    let mut with_null = values;
    with_null[3] = Datum::Null;
    run(&mut session, |s| s.insert(&created, &with_null)).unwrap();
    run(&mut session, |s| s.insert(&created, &with_null)).unwrap();
    run(&mut session, |s| {
        let mut found = RowBuf::new();
        assert!(s.lookup(&created, &created.indexes[0], &values, &mut found)?);
        assert!(found.column(&created, 8).unwrap() == values[8]);
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
}

#[test]
fn dead_rows_are_vacuumed_in_the_background() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.autovacuum = true;
    config.autovacuum_naptime = std::time::Duration::from_millis(20);
    let engine = Engine::open(config).unwrap();
    let mut session = engine.session().unwrap();
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, 200);
    while accounts.stats.vacuums().1 == 0 {
        run(&mut session, |s| {
            for id in 1..=200 {
                // Moved in the index too: only vacuum can remove the old versions' entries.
                let mut found = RowBuf::new();
                let key = accounts.primary_key().unwrap();
                if s.lookup(&accounts, key, &[Datum::Int4(id)], &mut found)? {
                    s.delete(&accounts, &mut found)?;
                    s.insert(&accounts, &row(id, "moved", 100))?;
                }
            }
            Ok(())
        })
        .unwrap();
        // Definitions change meanwhile; the vacuum gives way.
        run(&mut session, |s| s.create_index(index(accounts.oid, &[1]))).unwrap();
        let newest = table(&session, "accounts").indexes.last().unwrap().oid;
        run(&mut session, |s| s.drop_index(newest, false)).unwrap();
    }
    assert_whole(&engine);
    drop(session);
    engine.shutdown().unwrap();
}

#[test]
fn frozen_loads_are_visible_after_commit_and_gone_after_rollback() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let load = |session: &mut Session| {
        session.begin(RC).unwrap();
        session.start_statement().unwrap();
        let accounts = session.create_table(accounts()).unwrap();
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
fn scans_for_sessions_leave_every_client_its_place() {
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
    // Those that are not needed give their places back.
    let idle = engine.sessions().in_use();
    assert!(idle <= 4 + 8 + engine.config().max_parallel_workers, "{idle}");
    drop(others);
    session.commit().unwrap();
}
