//! The state after a restart, and the lock on the directory.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use millpond_vfs::OsVfs;
use millpond_vfs::testing::{AskingVfs, Call};

use super::*;

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
        other.ddl().create_table(NewTable { name: "lost".into(), ..common::accounts() }).unwrap();
        // Leave as a crash would: no rollback reaches the log.
        std::mem::forget(other);
        std::mem::forget(session);
        engine.log().flush(engine.log().insert_position()).unwrap();
        engine.log().abandon();
        std::mem::forget(engine);
    }
    let lock = dir.path().join("millpond.lock");
    // The forgotten engine holds the lock file, so open a copy of the directory.
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

/// All file accesses of the engine go through the file system that it was given.
#[test]
fn an_engine_runs_on_another_file_system_alone() {
    let dir = tempfile::tempdir().unwrap();
    let written = Arc::new(Mutex::new(BTreeSet::new()));
    let (root, seen) = (dir.path().to_owned(), Arc::clone(&written));
    let vfs = AskingVfs::new(OsVfs, move |call, path: &Path| {
        if call == Call::Write {
            let inner = path.strip_prefix(&root).map_err(std::io::Error::other)?;
            let part = inner.components().next().map(|part| part.as_os_str().to_owned());
            seen.lock().unwrap().extend(part);
        }
        Ok(())
    });
    for round in 0..2 {
        let mut config = config(dir.path());
        config.vfs = vfs.clone();
        config.trace_pages = Some(dir.path().join("trace"));
        // Files of `AskingVfs` have no descriptors, so nothing can bypass the file system.
        let engine = Engine::open(config).unwrap();
        let mut session = engine.session().unwrap();
        if round == 0 {
            let accounts = create(&mut session, accounts());
            fill(&mut session, &accounts, 300);
        }
        let accounts = table(&session, "accounts");
        assert_eq!(run(&mut session, |s| total(s, &accounts)).unwrap().0, 300);
        drop(session);
        assert_whole(&engine);
        engine.shutdown().unwrap();
    }
    let written = written.lock().unwrap();
    let parts: Vec<_> = written.iter().map(|part| part.to_str().unwrap()).collect();
    assert_eq!(parts, ["base", "control", "control.new", "millpond.lock", "trace", "wal"]);
}

/// The checkpoint after a failed truncation remembers the truncation (wal rule 16).
#[test]
fn truncated_blocks_stay_removed_after_checkpoint_and_crash() {
    let (dir, engine, mut session, accounts) = bank(5000);
    engine.checkpoint().unwrap();
    let main = accounts.storage.main();
    let blocks = |engine: &Engine| engine.pool().relation(main).unwrap().block_count();
    let before = blocks(&engine);
    run(&mut session, |s| {
        (11..=5000).try_for_each(|id| {
            let mut found = find(s, &accounts, id)?;
            s.delete(&accounts, &mut found).map(|_| ())
        })
    })
    .unwrap();
    {
        let reader = engine.pool().session().unwrap();
        let rel = engine.pool().relation(main).unwrap();
        let _pinned = reader.pin(&rel, BlockNumber(before - 1), Wait::Allowed).unwrap();
        let refused = session.maintenance().vacuum(accounts.oid);
        assert!(matches!(refused, Err(EngineError::Buffer(_))), "{refused:?}");
        engine.checkpoint().unwrap();
    }
    let after = blocks(&engine);
    assert!(after < before / 10, "{after} of {before}");
    // The state after a crash.
    let copy = tempfile::tempdir().unwrap();
    copy_directory(dir.path(), copy.path());
    let engine = open(copy.path());
    assert_eq!(blocks(&engine), after);
    let mut session = engine.session().unwrap();
    run(&mut session, |s| {
        assert_eq!(ids(s, &table(s, "accounts"), Direction::Forward)?, Vec::from_iter(1..=10));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
}

#[test]
fn a_second_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _engine = open(dir.path());
    assert!(matches!(Engine::open(config(dir.path())), Err(EngineError::Directory(_))));
}
