//! What transactions see of each other: interleaved sessions with PostgreSQL's answers, as scripts.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../common/mod.rs"]
mod common;

mod definitions;
mod definitions_in_use;
mod ground;
mod histories;
mod hot_row;
mod portals;

use common::fresh_with;
use ground::{Embedded, Protocol};
use millpond::Settings;

/// Runs a script at a level in every way that a statement can be run.
#[track_caller]
fn scenarios(script: &str, level: &str) {
    for protocol in [Protocol::Simple, Protocol::Prepared] {
        let settings = Settings::default()
            .with("shared_buffers", "8MB")
            .and_then(|settings| settings.with("synchronous_commit", "off"))
            .unwrap();
        let fresh = fresh_with(settings);
        let ground = Embedded { database: fresh.database.clone(), level, protocol };
        if let Err(wrong) = millpond_sim::schedule::run_all(script, &ground) {
            panic!("{level}, {protocol:?}:\n{wrong}");
        }
    }
}

#[test]
fn hermitage_at_read_committed() {
    scenarios(include_str!("read_committed.txt"), "read committed");
}

#[test]
fn hermitage_at_repeatable_read() {
    scenarios(include_str!("repeatable_read.txt"), "repeatable read");
}

#[test]
fn tables_at_read_committed() {
    scenarios(include_str!("tables_read_committed.txt"), "read committed");
}

#[test]
fn tables_at_repeatable_read() {
    scenarios(include_str!("tables_repeatable_read.txt"), "repeatable read");
}

#[test]
fn changed_rows_are_looked_at_again() {
    scenarios(include_str!("recheck.txt"), "read committed");
}
