//! Older copies of pages and files, in which each page has a valid checksum.

use std::sync::OnceLock;

use super::*;
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::TransactionOptions;

/// The number of transactions that fill the first status page and a part of the second.
const TRANSACTIONS: u32 = 66_000;

/// A directory in which redo changes none of the tables.
pub(super) fn settled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    settle(dir.path());
    dir
}

/// Commits `count` transactions, each of which adds a row to a table.
fn commit_rows(session: &mut Session, count: u32) {
    let other = table(session, "other");
    for _ in 0..count {
        session.begin(TransactionOptions { asynchronous: true, ..RC }).unwrap();
        session.start_statement().unwrap();
        session.lock_table(&other, LockMode::RowExclusive).unwrap();
        session.insert(&other, &row(1, "x", 1)).unwrap();
        session.end_statement();
        session.commit().unwrap();
    }
}

/// A directory whose current transaction ids are on the second status page, and the status file
/// from halfway.
pub(super) fn with_two_status_pages() -> (tempfile::TempDir, &'static [u8]) {
    static MADE: OnceLock<(tempfile::TempDir, Vec<u8>)> = OnceLock::new();
    let (made, halfway) = MADE.get_or_init(make_two_status_pages);
    let copy = tempfile::tempdir().unwrap();
    copy_directory(made.path(), copy.path());
    (copy, halfway)
}

fn make_two_status_pages() -> (tempfile::TempDir, Vec<u8>) {
    let dir = settled();
    let statuses = dir.path().join("base/2");
    let mut halfway = Vec::new();
    for _ in 0..2 {
        halfway = fs::read(&statuses).unwrap();
        let engine = open(dir.path());
        commit_rows(&mut engine.session().unwrap(), TRANSACTIONS / 2);
        engine.shutdown().unwrap();
    }
    settle(dir.path());
    assert!(fs::metadata(&statuses).unwrap().len() >= 2 * PAGE);
    (dir, halfway)
}

/// Overwrites the pages of a file with those of an older copy.
fn bring_back(dir: &Path, file: &str, older: &[u8]) {
    let path = dir.join(file);
    let mut now = fs::read(&path).unwrap();
    assert!(!now.starts_with(older), "the pages have not changed");
    now[..older.len()].copy_from_slice(older);
    fs::write(path, now).unwrap();
}

/// An older status page would roll back half of the transactions.
#[test]
fn an_older_status_page_stops_the_start() {
    for crashed in [false, true] {
        let (dir, halfway) = with_two_status_pages();
        if crashed {
            let engine = open(dir.path());
            commit_rows(&mut engine.session().unwrap(), 10);
        }
        bring_back(dir.path(), "base/2", halfway);
        assert_refused(dir.path(), "base/2");
    }
}

/// A catalog from before the creation of a table, with valid checksums.
#[test]
fn an_older_catalog_stops_the_start() {
    let dir = settled();
    let old = fs::read(dir.path().join("base/1")).unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    create(&mut session, NewTable { name: "late".into(), ..accounts() });
    close(session, engine);
    settle(dir.path());
    fs::write(dir.path().join("base/1"), old).unwrap();
    let error = Engine::open(config(dir.path())).err().unwrap().to_string();
    assert!(error.contains("base/1"), "{error}");
}

/// The log is older than the tables, as when the last segment is lost in a crash.
#[test]
fn a_page_newer_than_the_log_is_an_error() {
    let (before, after) = (settled(), tempfile::tempdir().unwrap());
    copy_directory(before.path(), after.path());
    let engine = open(after.path());
    let mut session = engine.session().unwrap();
    let file = file_of(&session, "indexed", Fork::Main);
    let indexed = table(&session, "indexed");
    // A row of the first page.
    assert!(run(&mut session, |s| add(s, &indexed, 1, 1)).unwrap());
    drop((session, indexed));
    engine.shutdown().unwrap();
    drop(engine);
    // Only the first page, so that the file does not become too long.
    let newer = fs::read(after.path().join(&file)).unwrap();
    bring_back(before.path(), &file, &newer[..PAGE as usize]);
    let engine = open(before.path());
    let mut session = engine.session().unwrap();
    assert_names(&rows(&mut session, "indexed").unwrap_err(), &file);
    assert_eq!(rows(&mut session, "other").unwrap(), ROWS as u64);
}
