//! The table of all settings, with PostgreSQL's names, units, ranges, contexts and defaults: a file
//! for each chapter of PostgreSQL's own configuration file.

mod autovacuum;
mod client;
mod compatibility;
mod connections;
mod planner;
mod presets;
mod reporting;
mod resources;
mod wal;

use std::sync::LazyLock;

use super::definition::Definition;

/// All settings, sorted by name without regard to letter case, as `SHOW ALL` lists them.
pub static SETTINGS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let mut all = [
        autovacuum::SETTINGS,
        client::SETTINGS,
        compatibility::SETTINGS,
        connections::SETTINGS,
        planner::SETTINGS,
        presets::SETTINGS,
        reporting::SETTINGS,
        resources::SETTINGS,
        wal::SETTINGS,
    ]
    .concat();
    all.sort_by_key(|definition| definition.name.to_ascii_lowercase());
    all
});

const I32: i64 = i32::MAX as i64;

const MESSAGE_LEVELS: &[(&str, &str)] = &[
    ("debug5", "debug5"),
    ("debug4", "debug4"),
    ("debug3", "debug3"),
    ("debug2", "debug2"),
    ("debug1", "debug1"),
    ("debug", "debug2"),
    ("log", "log"),
    ("notice", "notice"),
    ("info", "info"),
    ("warning", "warning"),
    ("error", "error"),
    ("fatal", "fatal"),
    ("panic", "panic"),
];

/// Switches that can't be switched off here.
const ON_ONLY: &[(&str, &str)] = &[("on", "on"), ("true", "on"), ("1", "on"), ("yes", "on")];
