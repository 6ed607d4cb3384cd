//! Files of a data directory that were removed, cut, zeroed or exchanged while the engine was down. Whatever happens to
//! them, a table has all of its rows or reading it is an error that names the file: never fewer rows, never silence.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod expected;
mod log;
mod matrix;
mod older;
mod settling;
mod system;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use common::*;
use millpond_buffer::{Fork, RelFork};
use millpond_engine::catalog::{NewTable, TableDef};
use millpond_engine::table::Direction;
use millpond_engine::types::Datum;
use millpond_engine::{Engine, EngineConfig, EngineError, EngineResult, Session};

const PAGE: u64 = 8192;
/// So many that a table has some pages.
const ROWS: i32 = 1000;
/// Bytes of a log segment: few, so that a directory is copied quickly.
const SEGMENT: u64 = 1 << 16;

fn config(path: &Path) -> EngineConfig {
    let mut config = common::config(path);
    config.wal_segment_bytes = SEGMENT;
    config.wal_buffer_bytes = SEGMENT as usize;
    config
}

fn open(path: &Path) -> Arc<Engine> {
    Engine::open(config(path)).unwrap()
}

/// A table of many rows with an index, one without, and one without rows.
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

/// Two more starts, so that no record behind the redo point is about the tables.
fn settle(dir: &Path) {
    for _ in 0..2 {
        open(dir).shutdown().unwrap();
    }
}

/// The files of a table or of its index.
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
    // A file that ends before gets the byte.
    file.read_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

fn cut(file: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(file).unwrap().set_len(bytes).unwrap();
}

/// Every file but lock files.
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

/// Rows by way of the index.
fn keys(session: &mut Session, table: &Arc<TableDef>) -> EngineResult<usize> {
    run(session, |s| {
        s.lock_table(table, millpond_engine::lmgr::LockMode::AccessShare)?;
        ids(s, table, Direction::Forward).map(|ids| ids.len())
    })
}

/// The start is refused with an error that names the file, and nothing has changed.
fn assert_refused(dir: &Path, file: &str) {
    let before = bytes_of(dir);
    let error = Engine::open(config(dir)).expect_err("the start is refused").to_string();
    assert!(error.contains(file), "{file} is not named: {error}");
    let after = bytes_of(dir);
    let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    assert!(before == after, "a file has changed");
}

/// The error is about this file.
fn assert_names(error: &EngineError, file: &str) {
    let number = file.trim_start_matches("base/");
    let text = error.to_string();
    assert!(text.contains(file) || text.contains(&format!("relation {number}")), "{file}: {text}");
}
