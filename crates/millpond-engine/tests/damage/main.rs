//! Files of a data directory that were removed, cut, zeroed or exchanged while the engine was down.
//! Afterwards a table has all of its rows, or reading it fails with an error that names the file.
//! It never silently has fewer rows.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod expected;
mod log;
mod matrix;
mod older;
mod rebuilt;
mod settling;
mod system;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use common::*;
use millpond_buffer::{Fork, RelFork};
use millpond_engine::catalog::{NewTable, TableDef};
use millpond_engine::recovery::DirectoryError;
use millpond_engine::table::Direction;
use millpond_engine::{Engine, EngineConfig, EngineError, EngineResult, Session};

const PAGE: u64 = 8192;
/// Enough rows that a table has several pages.
const ROWS: i32 = 1000;
/// The size of a log segment: small, so that copying a directory is quick.
const SEGMENT: u64 = 1 << 16;

fn config(path: &Path) -> EngineConfig {
    let mut config = common::config(path);
    config.wal_segment_bytes = SEGMENT;
    config.wal_buffer_bytes = SEGMENT as usize;
    config
}

fn open(path: &Path) -> Arc<Engine> {
    reopened(path).unwrap()
}

/// A table with rows and an index, two without an index, and an empty one.
fn make_tables(dir: &Path) {
    let engine = open(dir);
    let mut session = engine.session().unwrap();
    for (name, rows, indexed) in [
        ("indexed", ROWS, true),
        ("plain", ROWS, false),
        ("other", ROWS, false),
        ("empty", 0, false),
    ] {
        let indexes = if indexed { accounts().indexes } else { Vec::new() };
        let table = create(&mut session, NewTable { name: name.into(), indexes, ..accounts() });
        fill(&mut session, &table, rows);
    }
    drop(session);
    engine.shutdown().unwrap();
}

/// Starts twice more, so that no record after the redo point concerns the tables.
fn settle(dir: &Path) {
    for _ in 0..2 {
        open(dir).shutdown().unwrap();
    }
}

fn file_of(session: &Session, name: &str, fork: Fork) -> String {
    path_of(table(session, name).storage.fork(fork))
}

fn path_of(rel: RelFork) -> String {
    millpond_engine::relation_file(rel)
}

fn zero(file: &Path, block: u64) {
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(&[0; PAGE as usize], block * PAGE).unwrap();
}

fn flip(file: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    // In a file that ends before, the write appends the byte.
    file.read_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

fn cut(file: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(file).unwrap().set_len(bytes).unwrap();
}

fn bytes_of(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut rest = vec![dir.to_path_buf()];
    while let Some(at) = rest.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            if path.is_dir() {
                found.insert(name, Vec::new());
                rest.push(path);
            } else if !name.ends_with("lock") {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn copy_directory(from: &Path, to: &Path) {
    for (name, bytes) in bytes_of(from) {
        if from.join(&name).is_dir() {
            fs::create_dir_all(to.join(name)).unwrap();
        } else {
            fs::create_dir_all(to.join(&name).parent().unwrap()).unwrap();
            fs::write(to.join(name), bytes).unwrap();
        }
    }
    fs::write(to.join("millpond.lock"), b"").unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
}

fn rows(session: &mut Session, name: &str) -> EngineResult<u64> {
    let table = table(session, name);
    run(session, |s| total(s, &table)).map(|(rows, _)| rows)
}

/// The number of rows, read through the index.
fn keys(session: &mut Session, table: &Arc<TableDef>) -> EngineResult<usize> {
    run(session, |s| {
        s.lock_table(table, millpond_engine::lmgr::LockMode::AccessShare)?;
        ids(s, table, Direction::Forward).map(|ids| ids.len())
    })
}

/// Opens a directory whose last engine was dropped. If a background thread was in the middle of a
/// step, that thread ends the engine, which may be after the drop has returned.
fn reopened(dir: &Path) -> EngineResult<Arc<Engine>> {
    loop {
        match Engine::open(config(dir)) {
            Err(EngineError::Directory(DirectoryError::AlreadyOpen { .. })) => thread::yield_now(),
            opened => return opened,
        }
    }
}

/// Asserts that the start is refused with an error that names the file, and changes nothing.
fn assert_refused(dir: &Path, file: &str) {
    let before = bytes_of(dir);
    let error = reopened(dir).expect_err("the start is refused").to_string();
    assert!(error.contains(file), "{file} is not named: {error}");
    let after = bytes_of(dir);
    let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    assert!(before == after, "a file has changed");
}

/// Asserts that the error names this file.
fn assert_names(error: &EngineError, file: &str) {
    let number = file.trim_start_matches("base/");
    let text = error.to_string();
    assert!(text.contains(file) || text.contains(&format!("relation {number}")), "{file}: {text}");
}
