//! Each kind of file and each kind of damage, after a clean stop and after a crash.

use std::path::Path;
use std::sync::OnceLock;

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Deleted,
    Cut,
    Zeroed,
    Flipped,
    Exchanged,
}

const ALL: [Damage; 5] =
    [Damage::Deleted, Damage::Cut, Damage::Zeroed, Damage::Flipped, Damage::Exchanged];

impl Damage {
    fn inflict(self, dir: &Path, file: &str, other: &str) {
        let path = dir.join(file);
        let length = fs::metadata(&path).unwrap().len();
        match self {
            Self::Deleted => fs::remove_file(&path).unwrap(),
            Self::Cut => cut(&path, length / PAGE / 2 * PAGE),
            Self::Zeroed => zero(&path, (length / PAGE).saturating_sub(1)),
            Self::Flipped => flip(&path, (length / PAGE).saturating_sub(1) * PAGE + 40),
            Self::Exchanged => {
                fs::copy(dir.join(other), &path).unwrap();
            }
        }
    }
}

/// A directory whose engine was shut down, with no log to redo; or killed, with the last rows only in the log.
fn directory(crashed: bool) -> (tempfile::TempDir, &'static [String; 6]) {
    static MADE: [OnceLock<(tempfile::TempDir, [String; 6])>; 2] = [const { OnceLock::new() }; 2];
    let (made, files) = MADE[usize::from(crashed)].get_or_init(|| make(crashed));
    let copy = tempfile::tempdir().unwrap();
    copy_directory(made.path(), copy.path());
    (copy, files)
}

fn make(crashed: bool) -> (tempfile::TempDir, [String; 6]) {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    settle(dir.path());
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let indexed = table(&session, "indexed");
    let files = [
        path_of(indexed.storage.main()),
        path_of(indexed.primary_key().unwrap().storage.main()),
        path_of(indexed.storage.fork(Fork::Fsm)),
        file_of(&session, "other", Fork::Main),
        "base/1".to_owned(),
        "base/2".to_owned(),
    ];
    if crashed {
        let plain = table(&session, "plain");
        run(&mut session, |s| {
            s.lock_table(&plain, millpond_engine::lmgr::LockMode::RowExclusive)?;
            (0..50).try_for_each(|id| s.insert(&plain, &row(id, "late", 1)).map(|_| ()))
        })
        .unwrap();
    }
    drop(session);
    if !crashed {
        engine.shutdown().unwrap();
    }
    drop((engine, indexed));
    (dir, files)
}

/// Opens and reads everything: complete, or an error that names the file. Returns what failed.
fn read_all(dir: &Path, file: &str, crashed: bool) -> Vec<&'static str> {
    let engine = match Engine::open(config(dir)) {
        Ok(engine) => engine,
        Err(error) => {
            assert_names(&error, file);
            return vec!["start"];
        }
    };
    let mut session = engine.session().unwrap();
    let late = if crashed { 50 } else { 0 };
    let mut failed = Vec::new();
    let expected = ROWS as u64;
    let tables =
        [("indexed", expected), ("plain", expected + late), ("other", expected), ("empty", 0)];
    for (name, count) in tables {
        match rows(&mut session, name) {
            Ok(found) => assert_eq!(found, count, "{name}, with {file} damaged"),
            Err(error) => {
                assert_names(&error, file);
                failed.push(name);
            }
        }
    }
    let indexed = table(&session, "indexed");
    match keys(&mut session, &indexed) {
        Ok(found) => assert_eq!(found, ROWS as usize),
        Err(error) => {
            assert_names(&error, file);
            failed.push("by index");
        }
    }
    // Others can be written to, and the damaged one can be dropped.
    let other = table(&session, "empty");
    run(&mut session, |s| {
        s.lock_table(&other, millpond_engine::lmgr::LockMode::RowExclusive)?;
        s.insert(&other, &row(1, "new", 1)).map(|_| ())
    })
    .unwrap();
    run(&mut session, |s| s.drop_table(indexed.oid)).unwrap();
    drop((session, indexed, other));
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(dir);
    assert!(engine.findings().damaged.is_empty(), "{:?}", engine.findings());
    assert!(engine.findings().set_aside.is_empty(), "{:?}", engine.findings());
    assert_eq!(rows(&mut engine.session().unwrap(), "empty").unwrap(), 1);
    failed
}

fn each(crashed: bool, which: usize, expected: impl Fn(Damage) -> Vec<&'static str>) {
    for damage in ALL {
        let (dir, files) = directory(crashed);
        damage.inflict(dir.path(), &files[which], &files[3]);
        let failed = read_all(dir.path(), &files[which], crashed);
        assert_eq!(failed, expected(damage), "{damage:?} {}", files[which]);
    }
}

#[test]
fn a_damaged_heap_is_an_error_for_its_table_only() {
    for crashed in [false, true] {
        each(crashed, 0, |_| vec!["indexed", "by index"]);
    }
}

#[test]
fn a_damaged_index_is_an_error_for_its_readers_only() {
    for crashed in [false, true] {
        each(crashed, 1, |_| vec!["by index"]);
    }
}

#[test]
fn a_damaged_free_space_map_harms_nobody() {
    for crashed in [false, true] {
        each(crashed, 2, |_| vec![]);
    }
}

#[test]
fn a_damaged_catalog_stops_the_start() {
    each(false, 4, |_| vec!["start"]);
}

#[test]
fn damaged_statuses_stop_the_start() {
    each(false, 5, |_| vec!["start"]);
}

/// Redo restores pages of which the log has images: then all is as it was. What it does not, stops the start.
#[test]
fn a_damaged_catalog_after_a_crash_is_restored_or_stops_the_start() {
    for which in [4, 5] {
        for damage in ALL {
            let (dir, files) = directory(true);
            damage.inflict(dir.path(), &files[which], &files[3]);
            let failed = read_all(dir.path(), &files[which], true);
            assert!(failed.is_empty() || failed == ["start"], "{failed:?}");
        }
    }
}

#[test]
fn a_damaged_control_file_is_survived_or_stops_the_start() {
    for (damage, crashed) in ALL.into_iter().flat_map(|damage| [(damage, false), (damage, true)]) {
        let (dir, files) = directory(crashed);
        damage.inflict(dir.path(), "control", &files[3]);
        let before = bytes_of(dir.path());
        match Engine::open(config(dir.path())) {
            Err(error) => {
                assert!(error.to_string().contains("control file"), "{error}");
                assert!(before == bytes_of(dir.path()));
                let one_copy = [Damage::Zeroed, Damage::Flipped].contains(&damage);
                assert!(!one_copy, "the other copy is whole");
            }
            Ok(engine) => {
                let mut session = engine.session().unwrap();
                assert_eq!(rows(&mut session, "indexed").unwrap(), ROWS as u64);
            }
        }
    }
}
