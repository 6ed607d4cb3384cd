//! Python's clients against the server, where they are installed.

mod common;

use common::server::{ServerProcess, installed};
use std::process::Command;

/// Runs a script, which is told the server's port, if its modules are there.
fn run(modules: &str, script: &str) {
    let Some(python) = installed("python3") else { return };
    let import = format!("import {modules}");
    let has = Command::new(&python).args(["-c", &import]).output().expect("python runs");
    if !has.status.success() {
        println!("skipped: one of {modules} is not installed");
        return;
    }
    let server = ServerProcess::start();
    let port = server.port.to_string();
    let output = Command::new(&python).args(["-c", script, &port]).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn psycopg_connects_and_adapts() {
    run("psycopg", include_str!("python/psycopg.py"));
}

/// It asks the catalog about types with a recursive query, and its pool resets connections.
#[test]
fn asyncpg_has_arrays_and_a_pool() {
    run("asyncpg", include_str!("python/asyncpg.py"));
}

/// An ORM creates, joins, changes, and reads the definitions back.
#[test]
fn sqlalchemy_reflects_what_it_created() {
    run("sqlalchemy, psycopg2", include_str!("python/sqlalchemy.py"));
}
