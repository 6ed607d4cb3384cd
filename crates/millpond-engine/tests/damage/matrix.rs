//! Each kind of damage to each kind of file, after a clean stop and after a crash, with one
//! expectation per combination.
//!
//! Each combination runs the check, a start, and reads of all tables.

use std::sync::OnceLock;

use millpond_engine::check::{CheckConfig, check_directory};
use millpond_engine::control::ControlFile;
use millpond_engine::lmgr::LockMode;
use millpond_engine::wal::FileLogStore;

use super::expected::{EXPECTED, Expect};
use super::*;

/// Rows that redo adds to table "plain" after a crash.
const LATE: i32 = 50;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Heap,
    Index,
    Map,
    Catalog,
    Statuses,
    Log,
    Control,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Damage {
    Deleted,
    Cut,
    Zeroed,
    Flipped,
    /// The file as it was before the last run that changed it.
    Older,
    /// One page from that older file, in the current file.
    OlderPage,
    Exchanged,
}

impl Damage {
    pub(super) const ALL: [Self; 7] = [
        Self::Deleted,
        Self::Cut,
        Self::Zeroed,
        Self::Flipped,
        Self::Older,
        Self::OlderPage,
        Self::Exchanged,
    ];
}

/// A directory, and facts about it.
struct Made {
    dir: tempfile::TempDir,
    /// All files as they were before the last run that changed the tables.
    older: BTreeMap<String, Vec<u8>>,
    /// The files of table "indexed": heap, index, map; and that of table "other".
    files: [String; 4],
    /// The segment with the redo point, and the offset of the redo point in it.
    log: (String, u64),
}

impl Made {
    fn file(&self, kind: Kind) -> &str {
        match kind {
            Kind::Heap => &self.files[0],
            Kind::Index => &self.files[1],
            Kind::Map => &self.files[2],
            Kind::Catalog => "base/1",
            Kind::Statuses => "base/2",
            Kind::Log => &self.log.0,
            Kind::Control => "control",
        }
    }

    /// Errors and findings must contain one of these names.
    fn names(&self, kind: Kind) -> Vec<String> {
        let file = self.file(kind);
        let relation = format!("relation {}", file.trim_start_matches("base/"));
        let own = match kind {
            Kind::Heap => "indexed",
            Kind::Index => "indexed_pkey",
            Kind::Map => "map",
            Kind::Catalog => "catalog",
            Kind::Statuses => "transaction statuses",
            Kind::Log => "log",
            Kind::Control => "control file",
        };
        // An older control file refers to log that no longer exists.
        let needed = if kind == Kind::Control { "log" } else { own };
        [file, &relation, own, needed].map(str::to_owned).into()
    }

    /// The offset of the damaged page, or of the log's first record.
    fn place(&self, kind: Kind, length: u64) -> u64 {
        match kind {
            Kind::Log => self.log.1,
            // Pages that have changed since. Page 0 of the index is its meta page, which readers
            // don't need.
            Kind::Heap | Kind::Catalog => 0,
            Kind::Index => PAGE,
            _ => (length / PAGE).saturating_sub(1) * PAGE,
        }
    }

    fn older(&self, kind: Kind) -> &[u8] {
        let file = self.file(kind);
        // A segment is recycled from an older one.
        let is_segment = |name: &String| name.starts_with("wal/") && kind == Kind::Log;
        let recycled = || self.older.iter().find(|(name, _)| is_segment(name));
        match self.older.get(file) {
            Some(bytes) => bytes,
            None => recycled().unwrap().1,
        }
    }

    fn inflict(&self, dir: &Path, kind: Kind, damage: Damage) {
        let path = dir.join(self.file(kind));
        let now = fs::read(&path).unwrap();
        let at = self.place(kind, now.len() as u64);
        let (older, page) = (self.older(kind), at as usize..now.len().min((at + PAGE) as usize));
        match damage {
            Damage::Deleted => fs::remove_file(&path).unwrap(),
            Damage::Cut if kind == Kind::Log => cut(&path, at),
            Damage::Cut => cut(&path, now.len() as u64 / PAGE / 2 * PAGE),
            Damage::Zeroed => {
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&vec![0; page.len()], at).unwrap();
            }
            Damage::Flipped => flip(&path, at + 40),
            Damage::Older => {
                assert!(now != older, "{kind:?} has not changed");
                fs::write(&path, older).unwrap();
            }
            Damage::OlderPage => {
                let mut mixed = now.clone();
                mixed[page.clone()].copy_from_slice(&older[page]);
                assert!(now != mixed, "the page of {kind:?} has not changed");
                fs::write(&path, mixed).unwrap();
            }
            Damage::Exchanged => {
                fs::copy(dir.join(&self.files[3]), &path).unwrap();
            }
        }
    }
}

/// A directory that was shut down, with no log to redo, or that was killed, with the last rows only
/// in the log.
fn directory(crashed: bool) -> (tempfile::TempDir, &'static Made) {
    static MADE: [OnceLock<Made>; 2] = [const { OnceLock::new() }; 2];
    let made = MADE[usize::from(crashed)].get_or_init(|| make(crashed));
    let copy = tempfile::tempdir().unwrap();
    copy_directory(made.dir.path(), copy.path());
    (copy, made)
}

fn make(crashed: bool) -> Made {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    change_tables(dir.path(), 1);
    settle(dir.path());
    let older = bytes_of(dir.path());
    change_tables(dir.path(), 2);
    settle(dir.path());
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let indexed = table(&session, "indexed");
    let files = [
        path_of(indexed.storage.main()),
        path_of(indexed.primary_key().unwrap().storage.main()),
        path_of(indexed.storage.fork(Fork::Fsm)),
        file_of(&session, "other", Fork::Main),
    ];
    if crashed {
        let plain = table(&session, "plain");
        run(&mut session, |s| {
            s.lock_table(&plain, LockMode::RowExclusive)?;
            (0..LATE).try_for_each(|id| s.insert(&plain, &row(id, "late", 1)).map(|_| ()))
        })
        .unwrap();
    }
    drop(session);
    if !crashed {
        engine.shutdown().unwrap();
    }
    drop((engine, indexed));
    assert!(fs::metadata(dir.path().join(&files[2])).unwrap().len() >= PAGE, "the map is empty");
    let log = redo_point(dir.path());
    Made { dir, older, files, log }
}

fn redo_point(dir: &Path) -> (String, u64) {
    let bytes = config(dir).wal_segment_bytes;
    let store = Arc::new(FileLogStore::open(dir, bytes).unwrap());
    let redo = ControlFile::read(store).unwrap().unwrap().current().redo.get();
    (format!("wal/{:016x}", redo / bytes), redo % bytes)
}

/// Replaces every third row of table "indexed". The catalog and the map change, too.
fn change_tables(dir: &Path, first: i32) {
    let engine = open(dir);
    let mut session = engine.session().unwrap();
    let indexed = table(&session, "indexed");
    let gone = (first..=ROWS).step_by(3);
    run(&mut session, |s| {
        for id in gone.clone() {
            s.delete(&indexed, &mut find(s, &indexed, id)?)?;
        }
        Ok(())
    })
    .unwrap();
    session.maintenance().vacuum(indexed.oid).unwrap();
    run(&mut session, |s| {
        s.lock_table(&indexed, LockMode::RowExclusive)?;
        let owner = "o".repeat(100 * first as usize);
        gone.clone().try_for_each(|id| s.insert(&indexed, &row(-id, &owner, 1)).map(|_| ()))
    })
    .unwrap();
    session.maintenance().vacuum(indexed.oid).unwrap();
    let new = millpond_engine::catalog::NewIndex {
        name: Some("gone".into()),
        ..index(indexed.oid, &[1])
    };
    let new = run(&mut session, |s| s.ddl().create_index(new)).unwrap();
    run(&mut session, |s| s.ddl().drop_index(new.oid, false)).unwrap();
    drop((session, indexed));
    engine.shutdown().unwrap();
}

/// Whether the check finds the damage; if so, it must name it. Checks that nothing changes.
fn check_finds(dir: &Path, names: &[String], cell: &str) -> bool {
    let before = bytes_of(dir);
    let mut findings = Vec::new();
    let mut hear = |finding: millpond_engine::check::Finding| findings.push(finding.to_string());
    check_directory(CheckConfig::new(dir), &mut Hear(&mut hear)).unwrap();
    assert!(before == bytes_of(dir), "{cell}: the check has changed a file");
    let is_named = findings.iter().any(|found| names.iter().any(|name| found.contains(name)));
    assert!(findings.is_empty() || is_named, "{cell}: {findings:?}");
    !findings.is_empty()
}

struct Hear<'a>(&'a mut dyn FnMut(millpond_engine::check::Finding));

impl millpond_engine::check::Watch for Hear<'_> {
    fn found(&mut self, finding: millpond_engine::check::Finding) {
        (self.0)(finding);
    }
}

/// The results of a start and of reads.
#[derive(Debug, PartialEq)]
struct Read {
    is_refused: bool,
    failed: Vec<&'static str>,
    /// Tables that return a wrong number of rows without an error.
    wrong: Vec<&'static str>,
}

fn read_all(dir: &Path, names: &[String], late: u64, cell: &str) -> Read {
    let mut read = Read { is_refused: false, failed: Vec::new(), wrong: Vec::new() };
    let named = |error: EngineError| {
        let error = error.to_string();
        assert!(names.iter().any(|name| error.contains(name)), "{cell}: {error}");
    };
    let before = bytes_of(dir);
    let engine = match Engine::open(config(dir)) {
        Ok(engine) => engine,
        Err(error) => {
            named(error);
            assert!(before == bytes_of(dir), "{cell}: a refused start has changed a file");
            return Read { is_refused: true, ..read };
        }
    };
    let mut session = engine.session().unwrap();
    let all = ROWS as u64;
    for (name, count) in [("indexed", all), ("plain", all + late), ("other", all), ("empty", 0)] {
        match rows(&mut session, name) {
            Ok(found) if found == count => {}
            Ok(_) => read.wrong.push(name),
            Err(error) => {
                named(error);
                read.failed.push(name);
            }
        }
    }
    let indexed = table(&session, "indexed");
    match keys(&mut session, &indexed) {
        Ok(found) if found == ROWS as usize => {}
        Ok(_) => read.wrong.push("by index"),
        Err(error) => {
            named(error);
            read.failed.push("by index");
        }
    }
    // Other tables can be written to, and the damaged one can be dropped.
    let other = table(&session, "empty");
    run(&mut session, |s| {
        s.lock_table(&other, LockMode::RowExclusive)?;
        s.insert(&other, &row(1, "new", 1)).map(|_| ())
    })
    .unwrap();
    run(&mut session, |s| s.ddl().drop_table(indexed.oid)).unwrap();
    drop((session, indexed, other));
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(dir);
    assert!(engine.findings().damaged.is_empty(), "{cell}: {:?}", engine.findings());
    assert!(engine.findings().set_aside.is_empty(), "{cell}: {:?}", engine.findings());
    assert_eq!(rows(&mut engine.session().unwrap(), "empty").unwrap(), 1);
    read
}

fn assert_cell(kind: Kind, damage: Damage, crashed: bool, expected: Expect) {
    let stop = if crashed { "after a crash" } else { "after a clean stop" };
    let cell = format!("{kind:?} {damage:?} {stop}, expected {expected:?}");
    let (dir, made) = directory(crashed);
    made.inflict(dir.path(), kind, damage);
    let names = made.names(kind);
    let is_found = check_finds(dir.path(), &names, &cell);
    let read = read_all(dir.path(), &names, if crashed { LATE as u64 } else { 0 }, &cell);
    let (refused, failed, found): (bool, &[&str], bool) = match expected {
        Expect::NoStart => (true, &[], true),
        Expect::TableFails => (false, &["indexed", "by index"], true),
        Expect::IndexFails => (false, &["by index"], true),
        Expect::Whole => (false, &[], false),
        Expect::WholeAndFound => (false, &[], true),
        Expect::OnlyCheckFinds => {
            assert!(is_found && !read.is_refused, "{cell}: {read:?}");
            return;
        }
    };
    let expected = Read { is_refused: refused, failed: failed.to_vec(), wrong: Vec::new() };
    assert_eq!((read, is_found), (expected, found), "{cell}");
}

fn assert_row(kind: Kind) {
    let (_, row) = EXPECTED.iter().find(|(one, _)| *one == kind).unwrap();
    for (damage, cells) in Damage::ALL.into_iter().zip(row) {
        for (crashed, expected) in [false, true].into_iter().zip(cells) {
            assert_cell(kind, damage, crashed, *expected);
        }
    }
}

#[test]
fn damage_to_a_heap() {
    assert_row(Kind::Heap);
}

#[test]
fn damage_to_an_index() {
    assert_row(Kind::Index);
}

#[test]
fn damage_to_a_free_space_map() {
    assert_row(Kind::Map);
}

#[test]
fn damage_to_the_catalog() {
    assert_row(Kind::Catalog);
}

#[test]
fn damage_to_the_statuses() {
    assert_row(Kind::Statuses);
}

#[test]
fn damage_to_the_log() {
    assert_row(Kind::Log);
}

#[test]
fn damage_to_the_control_file() {
    assert_row(Kind::Control);
}
