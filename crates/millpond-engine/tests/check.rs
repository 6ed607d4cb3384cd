//! The consistency check: its cost, its findings, and that it changes nothing.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use common::*;
use millpond_engine::catalog::{ColumnDef, NewTable};
use millpond_engine::check::{
    CheckConfig, Checked, Finding, Progress, Watch, check_directory, check_engine,
};
use millpond_engine::lmgr::LockMode;
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineError};
use millpond_vfs::testing::{AskingVfs, Call};
use millpond_vfs::{OsVfs, Spill};

/// The number of page accesses by sessions so far.
fn looks(engine: &Engine) -> u64 {
    let stats = engine.pool().stats();
    stats.hits + stats.misses
}

/// The page accesses of a check, for a table whose `rows` rows all have the same key of 500 bytes.
fn looks_for_equal_keys(rows: i32) -> u64 {
    let (_dir, engine, mut session) = opened();
    let columns = vec![ColumnDef::new("id", DataType::Int4), ColumnDef::new("k", DataType::Text)];
    let indexes = vec![index(0, &[1])];
    let same = NewTable { name: "same".into(), columns, fillfactor: 100, indexes };
    let same = create(&mut session, same);
    let key = "k".repeat(500);
    run(&mut session, |s| {
        s.lock_table(&same, LockMode::RowExclusive)?;
        for id in 0..rows {
            s.insert(&same, &[Datum::Int4(id), Datum::Text(&key)])?;
        }
        Ok(())
    })
    .unwrap();
    let before = looks(&engine);
    let began = Instant::now();
    let checked = check_engine(&engine, &mut |finding| panic!("{finding}")).unwrap();
    println!("{rows} rows of one key: checked in {:.2} s", began.elapsed().as_secs_f64());
    let rows = u64::try_from(rows).unwrap();
    assert_eq!((checked.rows, checked.entries), (rows, rows));
    looks(&engine) - before
}

/// The check needs a descent of two or three levels for each row, and reads each page once. A check
/// that compared rows with the same key one by one would need more. It would read 4 leaves per row
/// of the small table, and 16 per row of the large one.
#[test]
fn rows_with_equal_keys_are_checked_in_n_log_n_steps() {
    let (few, many) = (2000, 8000);
    let [few_looks, many_looks] = [few, many].map(looks_for_equal_keys);
    assert!(many_looks < 6 * 8000, "{many_looks} looks at pages for {many} rows");
    let for_each = |looks: u64, rows: i32| looks as f64 / f64::from(rows);
    let more = for_each(many_looks, many) - for_each(few_looks, few);
    assert!(more < 1.5, "{few_looks} looks for {few} rows, {many_looks} for {many}");
}

/// Measures the time for many rows: `cargo test --release -p millpond-engine --test check --
/// --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn a_hundred_thousand_equal_keys() {
    assert!(looks_for_equal_keys(100_000) < 6 * 100_000);
}

fn state_of(root: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let bytes = if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        found.insert(path, (modified, bytes));
    }
    found
}

/// What a check has reported.
#[derive(Default)]
struct Heard {
    findings: Vec<String>,
    progress: Vec<Progress>,
}

impl Watch for Heard {
    fn found(&mut self, finding: Finding) {
        self.findings.push(finding.to_string());
    }

    fn progress(&mut self, progress: Progress) {
        assert!(progress.total == 0 || progress.done <= progress.total, "{progress:?}");
        if let Some(last) = self.progress.last()
            && last.part == progress.part
        {
            assert!(last.done <= progress.done);
        }
        self.progress.push(progress);
    }
}

fn check_with(config: CheckConfig) -> (Heard, Result<Checked, EngineError>) {
    let mut heard = Heard::default();
    let path = config.path.clone();
    let before = state_of(&path);
    let checked = check_directory(config, &mut heard);
    let after = state_of(&path);
    let names = |state: &BTreeMap<PathBuf, _>| state.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after), "names came or went");
    for (path, before) in before {
        assert!(before == after[&path], "{} has changed", path.display());
    }
    (heard, checked)
}

/// Checks a directory, and that it stays the same. Calls that could change something panic.
fn check(path: &Path) -> (Heard, Result<Checked, EngineError>) {
    let mut config = CheckConfig::new(path);
    config.vfs = AskingVfs::new(OsVfs, |call, path| match call {
        Call::Open | Call::List | Call::Len | Call::Read | Call::Lock | Call::OpenDirectory => {
            Ok(())
        }
        other => panic!("{other:?} of {}", path.display()),
    });
    check_with(config)
}

/// A database with a table of accounts, cleanly shut down or not.
fn database(is_clean: bool) -> tempfile::TempDir {
    let (dir, engine, mut session, accounts) = bank(1000);
    engine.checkpoint().unwrap();
    // Changes that only the log has, a new table and a dropped one.
    for id in 1..=60 {
        run(&mut session, |s| add(s, &accounts, id, 1)).unwrap();
    }
    let doomed = NewTable { name: "doomed".into(), ..common::accounts() };
    let doomed = create(&mut session, doomed);
    fill(&mut session, &doomed, 50);
    engine.checkpoint().unwrap();
    run(&mut session, |s| s.ddl().drop_table(doomed.oid)).unwrap();
    let young = NewTable { name: "young".into(), ..common::accounts() };
    let young = create(&mut session, young);
    fill(&mut session, &young, 300);
    // A transaction that is still running.
    let mut other = engine.session().unwrap();
    if is_clean {
        drop(other);
        drop(session);
        engine.shutdown().unwrap();
        return dir;
    }
    other.begin(RC).unwrap();
    other.start_statement().unwrap();
    add(&other, &accounts, 7, 1000).unwrap();
    engine.log().flush(engine.log().insert_position()).unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_directory(dir.path(), copy.path());
    copy
}

#[test]
fn check_changes_no_byte() {
    for is_clean in [true, false] {
        let dir = database(is_clean);
        // Files that a start would remove.
        fs::write(dir.path().join("wal/00000000000000ff.new"), "half made").unwrap();
        fs::create_dir_all(dir.path().join("pgsql_tmp")).unwrap();
        fs::write(dir.path().join("pgsql_tmp/pgsql_tmp1.2"), "left by a sort").unwrap();
        for _ in 0..2 {
            let (heard, checked) = check(dir.path());
            let checked = checked.unwrap();
            assert_eq!(heard.findings, Vec::<String>::new());
            assert_eq!((checked.tables, checked.indexes, checked.rows), (2, 2, 1300));
            // The updates that moved a row left index entries that vacuum has not removed.
            assert!(checked.entries >= 1300, "{checked:?}");
            assert_eq!(checked.records > 300, !is_clean, "{checked:?}");
            let last = heard.progress.last().unwrap();
            assert_eq!(last.done, last.total);
        }
        // The recovery of the original still works.
        let engine = open(dir.path());
        let mut session = engine.session().unwrap();
        let accounts = table(&session, "accounts");
        let sum = run(&mut session, |s| total(s, &accounts)).unwrap();
        assert_eq!(sum, (1000, 100_060));
    }
}

#[test]
fn recovery_in_memory_spills_to_a_file_elsewhere() {
    let dir = database(false);
    let elsewhere = tempfile::tempdir().unwrap();
    let mut config = CheckConfig::new(dir.path());
    config.buffers = 32;
    config.changes = Spill::to_directory(0, Arc::new(OsVfs), elsewhere.path().to_owned());
    let (heard, checked) = check_with(config);
    assert_eq!((heard.findings, checked.unwrap().rows), (Vec::new(), 1300));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    // A lack of space there is no damage here.
    let mut config = CheckConfig::new(dir.path());
    config.changes = Spill::to_directory(0, Arc::new(OsVfs), elsewhere.path().join("missing"));
    let (heard, checked) = check_with(config);
    assert_eq!(heard.findings, Vec::<String>::new());
    let error = checked.unwrap_err().to_string();
    assert!(error.contains("temporary file"), "{error}");
    let mut config = CheckConfig::new(dir.path());
    config.changes = Spill::to_directory(0, Arc::new(OsVfs), dir.path().join("base"));
    let error = check_with(config).1.unwrap_err().to_string();
    assert!(error.contains("TMPDIR lies in the data directory"), "{error}");
}

#[test]
fn a_database_in_use_is_not_checked() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut heard = Heard::default();
    let refused = check_directory(CheckConfig::new(dir.path()), &mut heard).unwrap_err();
    assert!(refused.to_string().contains("is already open in this process"), "{refused}");
    engine.shutdown().unwrap();
    drop(engine);
    check(dir.path()).1.unwrap();
}

#[test]
fn check_refuses_what_is_not_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| check_directory(CheckConfig::new(path), &mut Heard::default());
    let refusal = |path: &Path| refusal(path).unwrap_err().to_string();
    assert!(refusal(dir.path()).contains("is not a Millpond database: it has no control file"));
    let missing = dir.path().join("missing");
    assert!(refusal(&missing).contains("there is no such directory"));
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(refusal(&file).contains("it is not a directory"));
    assert!(!missing.exists());
}

/// Changes the bytes of a file.
fn deface(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// A crash can undo the removal or renaming of segments, so that old names come back.
#[test]
fn log_segments_that_a_crash_brings_back_are_no_damage() {
    let dir = database(true);
    let wal = dir.path().join("wal");
    let name = fs::read_dir(&wal).unwrap().next().unwrap().unwrap().path();
    fs::copy(name, wal.join("00000000000000ff")).unwrap();
    let (heard, checked) = check(dir.path());
    assert_eq!(heard.findings, Vec::<String>::new());
    assert_eq!(checked.unwrap().rows, 1300);
    drop(open(dir.path()));
    assert!(!wal.join("00000000000000ff").exists(), "the start removes it");
}

/// A name, what is done to a database's directory, and part of the finding.
type Damage = (&'static str, fn(&Path), &'static str);

const DAMAGES: [Damage; 15] = [
    ("one copy", |dir| deface(&dir.join("control"), |b| b[30] ^= 1), "control file: copy 0"),
    (
        "both copies",
        |dir| {
            deface(&dir.join("control"), |b| {
                b[30] ^= 1;
                b[8192 + 30] ^= 1;
            });
        },
        "control file: copy 1",
    ),
    (
        "no control file",
        |dir| fs::remove_file(dir.join("control")).unwrap(),
        "control file: it is missing",
    ),
    (
        "no segments",
        |dir| fs::remove_dir_all(dir.join("wal")).unwrap(),
        "wal: the directory is missing",
    ),
    ("no first segment", |dir| fs::remove_file(&segments(dir)[0]).unwrap(), "log: "),
    ("a short segment", |dir| deface(&segments(dir)[1], |b| b.truncate(5000)), "has 5000 bytes"),
    ("the catalog", |dir| deface(&dir.join("base/1"), |b| b[8000] ^= 1), "checksum"),
    (
        "statuses",
        |dir| {
            deface(&dir.join("base/2"), |b| {
                b.resize(2 * 8192, 0);
                b.resize(3 * 8192, 7);
            });
        },
        "transaction statuses, block 2: checksum",
    ),
    (
        "a table",
        |dir| deface(&dir.join("base/16384"), |b| b[8192 + 8000] ^= 1),
        "accounts, block 1: checksum",
    ),
    (
        "a table without a file",
        |dir| fs::remove_file(dir.join("base/16384")).unwrap(),
        "relation 16384 does not exist",
    ),
    (
        "a short table",
        |dir| deface(&dir.join("base/16384"), |b| b.truncate(8192)),
        "relation 16384 is too short",
    ),
    (
        "zeros in a table",
        |dir| deface(&dir.join("base/16384"), |b| b[8192..2 * 8192].fill(0)),
        "block 1 of relation 16384 is all zeros",
    ),
    (
        "zeros in the catalog",
        |dir| deface(&dir.join("base/1"), |b| b[..8192].fill(0)),
        "block 0 of relation 1 is all zeros",
    ),
    (
        "a file that nothing names",
        |dir| fs::write(dir.join("base/99999"), b"rows").unwrap(),
        "base/99999: a file of 4 bytes that belongs to no relation",
    ),
    (
        "no files",
        |dir| fs::remove_dir_all(dir.join("base")).unwrap(),
        "base: the directory is missing",
    ),
];

/// The segments of the log in order.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir.join("wal")).unwrap();
    let mut names: Vec<_> = names.map(|name| name.unwrap().path()).collect();
    names.sort();
    names
}

#[test]
fn damage_is_found_wherever_it_is() {
    let whole = database(true);
    for (name, damage, expected) in DAMAGES {
        let dir = tempfile::tempdir().unwrap();
        copy_directory(whole.path(), dir.path());
        damage(dir.path());
        let (heard, checked) = check(dir.path());
        checked.unwrap();
        let found = heard.findings.join("\n");
        assert!(found.contains(expected), "{name}: {found:?}");
    }
}

#[test]
fn a_missing_permission_is_no_damage() {
    let dir = database(true);
    let mut refused = 0;
    // Each file in turn can't be opened.
    for file in ["millpond.lock", "control", "base/1", "base/2", "base/16384"] {
        let denied = dir.path().join(file);
        let mut config = CheckConfig::new(dir.path());
        config.vfs = AskingVfs::new(OsVfs, move |call, path| match call {
            Call::Open if path == denied => Err(io::ErrorKind::PermissionDenied.into()),
            _ => Ok(()),
        });
        let (heard, checked) = check_with(config);
        assert_eq!(heard.findings, Vec::<String>::new(), "{file}");
        let error = checked.unwrap_err().to_string();
        assert!(error.contains("permission denied"), "{file}: {error}");
        refused += 1;
    }
    assert_eq!(refused, 5);
}
