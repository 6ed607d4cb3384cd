//! How a start treats files: which it removes, which it moves away, which it leaves.

use super::*;
use millpond_engine::recovery::QUARANTINE;

#[test]
fn unknown_file_is_moved_away_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    fs::write(dir.path().join("base/99999"), b"somebody's rows").unwrap();
    fs::write(dir.path().join("base/99999_fsm.1"), b"").unwrap();
    fs::write(dir.path().join("base/letter.txt"), b"dear").unwrap();
    let engine = open(dir.path());
    let moved = &engine.findings().set_aside;
    assert_eq!(moved.len(), 2, "{moved:?}");
    let rows_of_somebody = moved.iter().find(|file| file.rel.fork == Fork::Main).unwrap();
    assert!(rows_of_somebody.path.starts_with(dir.path().join(QUARANTINE)));
    assert_eq!(fs::read(&rows_of_somebody.path).unwrap(), b"somebody's rows");
    assert!(!dir.path().join("base/99999").exists() && dir.path().join("base/letter.txt").exists());
    // A new table does not get its number.
    let mut session = engine.session().unwrap();
    let new = create(&mut session, NewTable { name: "new".into(), ..accounts() });
    assert!(new.storage.get() > 99_999);
}

/// Relation 3 is not in the log. The start reads nothing of its file and keeps nothing.
#[test]
fn each_start_removes_the_file_of_commit_numbers() {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    let numbers = ["base/3", "base/3.1"].map(|name| dir.path().join(name));
    for left in [Vec::new(), vec![0; 3 * PAGE as usize], b"somebody's bytes".to_vec()] {
        for file in &numbers {
            fs::write(file, &left).unwrap();
        }
        let engine = open(dir.path());
        let findings = engine.findings();
        assert!(findings.damaged.is_empty() && findings.set_aside.is_empty(), "{findings:?}");
        assert!(numbers.iter().all(|file| !file.exists()));
        assert_whole(&engine);
    }
}

#[test]
fn start_removes_files_of_uncommitted_transactions() {
    for checkpoint in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path());
        let mut session = engine.session().unwrap();
        session.begin(RC).unwrap();
        session.start_statement().unwrap();
        let table =
            session.ddl().create_table(NewTable { name: "lost".into(), ..accounts() }).unwrap();
        if checkpoint {
            engine.checkpoint().unwrap();
        }
        engine.log().flush(engine.log().insert_position()).unwrap();
        let file = dir.path().join(path_of(table.storage.main()));
        assert!(file.exists());
        // The state that a kill would leave at this moment.
        let copy = tempfile::tempdir().unwrap();
        copy_directory(dir.path(), copy.path());
        let engine = open(copy.path());
        assert!(!copy.path().join(file.strip_prefix(dir.path()).unwrap()).exists());
        let findings = engine.findings();
        assert!(findings.damaged.is_empty() && findings.set_aside.is_empty(), "{findings:?}");
        assert_whole(&engine);
    }
}

#[test]
fn commit_removes_files_of_a_failed_statement() {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    let engine = open(dir.path());
    let files = || engine.pool().store().relations().unwrap().len();
    let before = files();
    let mut session = engine.session().unwrap();
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    let index = millpond_engine::catalog::NewIndex { name: Some("plain".into()), ..index(0, &[0]) };
    let broken = NewTable { name: "broken".into(), indexes: vec![index], ..accounts() };
    session.ddl().create_table(broken).unwrap_err();
    session.end_statement();
    // Through SQL, such a transaction could not commit.
    session.commit().unwrap();
    assert_eq!(files(), before);
    close(session, engine);
    assert_whole(&open(dir.path()));
}

#[test]
fn a_dropped_table_is_no_damage_before_and_after_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    for name in ["plain", "indexed"] {
        let engine = open(dir.path());
        let mut session = engine.session().unwrap();
        let dropped = table(&session, name);
        run(&mut session, |s| s.ddl().drop_table(dropped.oid)).unwrap();
        if name == "indexed" {
            engine.checkpoint().unwrap();
        }
        drop((session, dropped, engine));
        let engine = open(dir.path());
        let findings = engine.findings();
        assert!(findings.damaged.is_empty() && findings.set_aside.is_empty(), "{findings:?}");
        assert_whole(&engine);
    }
}

#[test]
fn a_file_longer_than_its_table_is_cut_if_the_rest_is_zeros() {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    let engine = open(dir.path());
    let file = dir.path().join(file_of(&engine.session().unwrap(), "plain", Fork::Main));
    engine.shutdown().unwrap();
    drop(engine);
    let length = fs::metadata(&file).unwrap().len();
    cut(&file, length + 3 * PAGE);
    let engine = open(dir.path());
    assert!(engine.findings().damaged.is_empty());
    assert_eq!(fs::metadata(&file).unwrap().len(), length);
    assert_eq!(rows(&mut engine.session().unwrap(), "plain").unwrap(), ROWS as u64);
    engine.shutdown().unwrap();
    drop(engine);
    // Unknown rows are left alone and reported.
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend_from_within(..PAGE as usize);
    fs::write(&file, &bytes).unwrap();
    let engine = open(dir.path());
    assert_eq!(engine.findings().damaged.len(), 1);
    drop(engine);
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

/// A page is zeroed, and every kind of access reports it. TRUNCATE then repairs the table.
#[test]
fn every_kind_of_read_reports_zeroed_pages() {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    settle(dir.path());
    let engine = open(dir.path());
    let session = engine.session().unwrap();
    let files = ["indexed", "plain"].map(|name| file_of(&session, name, Fork::Main));
    close(session, engine);
    for file in &files {
        zero(&dir.path().join(file), 1);
    }
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    for (name, file) in ["indexed", "plain"].into_iter().zip(&files) {
        assert_names(&rows(&mut session, name).unwrap_err(), file);
        let damaged = table(&session, name);
        assert_names(&session.maintenance().vacuum(damaged.oid).unwrap_err(), file);
        let counted = run(&mut session, |s| {
            s.ddl().create_index(millpond_engine::catalog::NewIndex {
                name: Some(format!("{name}_owner")),
                ..index(damaged.oid, &[1])
            })
        });
        assert_names(&counted.map(drop).unwrap_err(), file);
    }
    assert_eq!(rows(&mut session, "other").unwrap(), ROWS as u64);
    // TRUNCATE gives the table new files.
    let damaged = table(&session, "plain");
    run(&mut session, |s| s.ddl().truncate(&[damaged.oid])).unwrap();
    assert_eq!(rows(&mut session, "plain").unwrap(), 0);
}
