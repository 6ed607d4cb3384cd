//! What the log has counted: `pg_stat_wal`, and the log's rows of `pg_stat_io`.

use millpond_engine::wal::{LogStats, LogWrites};

use super::Kind::{Int8, Numeric, TimestampTz};
use super::{Cell, Columns, Source, View, view};
use crate::statistics::Since;

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[view("pg_stat_wal", 12035, PG_STAT_WAL, pg_stat_wal)];

/// As in PostgreSQL 18.
const PG_STAT_WAL: Columns = &[
    ("wal_records", Int8),
    ("wal_fpi", Int8),
    ("wal_bytes", Numeric),
    ("wal_buffers_full", Int8),
    ("stats_reset", TimestampTz),
];

fn pg_stat_wal(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let stats = statistics.wal();
    vec![vec![
        stats.gain(|stats| stats.records).into(),
        stats.gain(|stats| stats.images).into(),
        stats.gain(|stats| stats.bytes).into(),
        stats.gain(|stats| stats.buffers_full).into(),
        stats.reset_us.into(),
    ]]
}

/// The rows of `pg_stat_io` whose object is `wal`: the writes and syncs of each kind of process.
pub(crate) fn io_rows(stats: &Since<LogStats>) -> Vec<Vec<Cell>> {
    let row = |kind: &str, of: fn(&LogStats) -> LogWrites| {
        let count =
            |count: fn(&LogWrites) -> u64| Cell::from(stats.gain(|stats| count(&of(stats))));
        vec![
            kind.into(),
            "wal".into(),
            "normal".into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            count(|log| log.writes),
            count(|log| log.bytes),
            0.0.into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            count(|log| log.syncs),
            0.0.into(),
            stats.reset_us.into(),
        ]
    };
    vec![
        row("client backend", |stats| stats.by_backends),
        row("walwriter", |stats| stats.by_log_thread),
    ]
}
