//! What the pool and its helpers have done: `pg_stat_io`, `pg_stat_bgwriter`,
//! `pg_stat_checkpointer`, `millpond_stat_replacement`.

use millpond_buffer::trace::TraceStats;
use millpond_buffer::{BackendKind, IoContext, IoCounts, PoolStats};

use super::Kind::{Bool, Float8, Int4, Int8, Numeric, Text, TimestampTz};
use super::{Cell, Columns, Kind, Source, View, view};
use crate::Value;
use crate::error::Result;
use crate::statistics::Statistics;

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_stat_io", 12031, PG_STAT_IO, pg_stat_io),
    view("millpond_stat_backend_io", 12039, MILLPOND_STAT_BACKEND_IO, millpond_stat_backend_io),
    view("pg_stat_bgwriter", 12032, PG_STAT_BGWRITER, pg_stat_bgwriter),
    view("pg_stat_checkpointer", 12033, PG_STAT_CHECKPOINTER, pg_stat_checkpointer),
    view("millpond_stat_replacement", 12034, MILLPOND_STAT_REPLACEMENT, millpond_stat_replacement),
    view("millpond_stat_trace", 12042, MILLPOND_STAT_TRACE, millpond_stat_trace),
];

/// The same for each session by its process id.
const MILLPOND_STAT_BACKEND_IO: Columns = &[
    ("pid", Int4),
    ("backend_type", Text),
    ("object", Text),
    ("context", Text),
    ("reads", Int8),
    ("read_bytes", Numeric),
    ("read_time", Float8),
    ("writes", Int8),
    ("write_bytes", Numeric),
    ("write_time", Float8),
    ("writebacks", Int8),
    ("writeback_time", Float8),
    ("extends", Int8),
    ("extend_bytes", Numeric),
    ("extend_time", Float8),
    ("hits", Int8),
    ("evictions", Int8),
    ("reuses", Int8),
    ("fsyncs", Int8),
    ("fsync_time", Float8),
    ("stats_reset", TimestampTz),
];

/// As in PostgreSQL 18.
const PG_STAT_IO: Columns = MILLPOND_STAT_BACKEND_IO.split_at(1).1;

/// PostgreSQL has no row for what can't be.
fn is_possible(kind: BackendKind, context: IoContext) -> bool {
    match kind {
        BackendKind::BackgroundWriter | BackendKind::Checkpointer => context == IoContext::Normal,
        BackendKind::Autovacuum => context != IoContext::BulkWrite,
        _ => true,
    }
}

fn pg_stat_io(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let stats = statistics.io();
    let mut rows = Vec::new();
    for kind in BackendKind::ALL {
        for context in IoContext::ALL {
            if is_possible(kind, context) {
                let gain = |of: Count| stats.gain(|stats| of(stats.io_of(kind, context)));
                rows.push(io_row(kind, context, gain, stats.reset_us.into()));
            }
        }
    }
    rows.extend(super::wal::io_rows(&statistics.log_io()));
    rows
}

fn millpond_stat_backend_io(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let rows = backend_rows(statistics).into_iter();
    rows.map(|(pid, row)| std::iter::once(pid.into()).chain(row).collect()).collect()
}

/// The rows of a session's `pg_stat_io`.
pub(crate) fn backend_io(statistics: &Statistics, pid: i32) -> Result<Vec<Vec<Value>>> {
    let rows =
        backend_rows(statistics).into_iter().filter(|(of, _)| i64::from(*of) == i64::from(pid));
    let value = |((_, kind), cell): (&(&str, Kind), Cell)| kind.value(cell);
    rows.map(|(_, row)| PG_STAT_IO.iter().zip(row).map(value).collect()).collect()
}

/// The rows of all sessions, beside their process ids.
fn backend_rows(statistics: &Statistics) -> Vec<(u32, Vec<Cell>)> {
    let mut rows = Vec::new();
    for (backend, io) in statistics.backend_io() {
        for context in IoContext::ALL.into_iter().filter(|c| is_possible(backend.kind, *c)) {
            let gain = |of: Count| io.gain(|io| of(&io[context as usize]));
            let row = io_row(backend.kind, context, gain, io.reset_us.into());
            rows.push((backend.process_id, row));
        }
    }
    rows
}

type Count = fn(&IoCounts) -> u64;

/// A row. What this kind of backend never does in this context is NULL, by PostgreSQL's rules;
/// times are those of sessions with `track_io_timing`.
fn io_row(
    kind: BackendKind,
    context: IoContext,
    gain: impl Fn(Count) -> u64,
    reset: Cell,
) -> Vec<Cell> {
    let cell = |possible: bool, of: Count| if possible { gain(of).into() } else { Cell::Null };
    let time = |possible: bool, of: Count| {
        if possible { (gain(of) as f64 / 1000.0).into() } else { Cell::Null }
    };
    let reads = !matches!(kind, BackendKind::BackgroundWriter | BackendKind::Checkpointer);
    let in_ring = context != IoContext::Normal;
    vec![
        kind.name().into(),
        "relation".into(),
        context.name().into(),
        cell(reads, |io| io.reads),
        cell(reads, |io| io.read_bytes),
        time(reads, |io| io.read_us),
        cell(true, |io| io.writes),
        cell(true, |io| io.write_bytes),
        time(true, |io| io.write_us),
        // The system is never told to begin writing back.
        0.into(),
        0.0.into(),
        cell(reads, |io| io.extends),
        cell(reads, |io| io.extend_bytes),
        time(reads, |io| io.extend_us),
        cell(reads, |io| io.hits),
        // Unlike PostgreSQL's, the background writer also evicts pages.
        cell(kind != BackendKind::Checkpointer, |io| io.evictions),
        cell(in_ring, |io| io.reuses),
        cell(!in_ring, |io| io.fsyncs),
        time(!in_ring, |io| io.fsync_us),
        reset,
    ]
}

/// As in PostgreSQL 18.
const PG_STAT_BGWRITER: Columns = &[
    ("buffers_clean", Int8),
    ("maxwritten_clean", Int8),
    ("buffers_alloc", Int8),
    ("stats_reset", TimestampTz),
];

fn pg_stat_bgwriter(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let stats = statistics.bgwriter();
    let writer = (BackendKind::BackgroundWriter, IoContext::Normal);
    let bytes = stats.gain(|stats| stats.io_of(writer.0, writer.1).write_bytes);
    vec![vec![
        (bytes / millpond_buffer::PAGE_SIZE as u64).into(),
        // It has no quota that would make it stop.
        0.into(),
        stats.gain(|stats| stats.allocations()).into(),
        stats.reset_us.into(),
    ]]
}

/// As in PostgreSQL 18.
const PG_STAT_CHECKPOINTER: Columns = &[
    ("num_timed", Int8),
    ("num_requested", Int8),
    ("num_done", Int8),
    ("restartpoints_timed", Int8),
    ("restartpoints_req", Int8),
    ("restartpoints_done", Int8),
    ("write_time", Float8),
    ("sync_time", Float8),
    ("buffers_written", Int8),
    ("slru_written", Int8),
    ("stats_reset", TimestampTz),
];

fn pg_stat_checkpointer(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let stats = statistics.checkpointer();
    vec![vec![
        stats.gain(|stats| stats.scheduled).into(),
        stats.gain(|stats| stats.requested).into(),
        stats.gain(|stats| stats.scheduled + stats.requested).into(),
        0.into(),
        0.into(),
        0.into(),
        (stats.gain(|stats| stats.write_ms) as f64).into(),
        (stats.gain(|stats| stats.sync_ms) as f64).into(),
        stats.gain(|stats| stats.pages_written).into(),
        0.into(),
        stats.reset_us.into(),
    ]]
}

/// How good the replacement is: histograms, a row a bucket.
///
/// | histogram | counts | by |
/// |---|---|---|
/// | `examined` | frames that sessions took for pages | frames examined |
/// | `examined_ahead` | sweeps of the reclaimer | frames examined |
/// | `victim_usage` | pages that left | usage count at the hand's first visit after the last use |
/// | `victim_age` | pages that left | frames taken from pages while they were there |
/// | `absence` | pages that came back | frames taken from pages while they were away |
/// | `regret` | pages that came back | the same, in one row: away for less than one pool's worth |
const MILLPOND_STAT_REPLACEMENT: Columns = &[
    ("histogram", Text),
    ("bucket", Int4),
    ("lower_bound", Int8),
    ("upper_bound", Int8),
    ("count", Int8),
    ("stats_reset", TimestampTz),
];

fn millpond_stat_replacement(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let stats = statistics.io();
    let frames = statistics.frame_count() as u64;
    let mut rows = Vec::new();
    let mut add = |name: &str, bucket: usize, bounds: (u64, Option<u64>), count: u64| {
        let (lower, upper) = bounds;
        let reset = stats.reset_us.into();
        rows.push(vec![
            name.into(),
            bucket.into(),
            lower.into(),
            upper.into(),
            count.into(),
            reset,
        ]);
    };
    type Buckets = fn(&PoolStats) -> &[u64];
    let by_powers: [(&str, Buckets); 4] = [
        ("examined", |stats| &stats.examined_per_allocation),
        ("examined_ahead", |stats| &stats.examined_ahead),
        ("victim_age", |stats| &stats.victim_age),
        ("absence", |stats| &stats.regret_age),
    ];
    for (name, of) in by_powers {
        let buckets = of(&stats.now).len();
        for bucket in 0..buckets {
            let bounds = power_bounds(bucket, bucket + 1 == buckets);
            add(name, bucket, bounds, stats.gain(|stats| of(stats)[bucket]));
        }
    }
    for usage in 0..stats.now.victim_usage.len() {
        let bounds = (usage as u64, Some(usage as u64));
        add("victim_usage", usage, bounds, stats.gain(|stats| stats.victim_usage[usage]));
    }
    add("regret", 0, (0, Some(frames.saturating_sub(1))), stats.gain(|stats| stats.regret));
    rows
}

/// The least and the largest value of a bucket by powers of two; the last has no largest.
fn power_bounds(bucket: usize, last: bool) -> (u64, Option<u64>) {
    let lower = if bucket == 0 { 0 } else { 1 << (bucket - 1) };
    (lower, (!last).then(|| (1u64 << bucket) - 1))
}

/// The recording of accesses to pages (`trace_pages`): a row, or none if there is no recording.
const MILLPOND_STAT_TRACE: Columns =
    &[("records", Int8), ("outdated", Int8), ("dropped", Int8), ("failed", Bool)];

fn millpond_stat_trace(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    let row = |stats: TraceStats| {
        vec![stats.records.into(), stats.outdated.into(), stats.dropped.into(), stats.failed.into()]
    };
    statistics.trace().map(row).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_next_to_each_other() {
        let bounds: Vec<_> = (0..5).map(|bucket| power_bounds(bucket, bucket == 4)).collect();
        assert_eq!(bounds, [(0, Some(0)), (1, Some(1)), (2, Some(3)), (4, Some(7)), (8, None)]);
    }
}
