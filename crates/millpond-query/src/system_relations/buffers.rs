//! What is in the buffer pool: `pg_buffercache` with its functions.

use millpond_buffer::FrameInfo;

use super::Kind::{Bool, Float8, Int2, Int4, Int8, Oid};
use super::{Cell, Columns, Source, View, view};

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[view("pg_buffercache", 12030, PG_BUFFERCACHE, pg_buffercache)];

/// The functions of this file.
pub(crate) const FUNCTIONS: &[View] = &[
    view("pg_buffercache_summary", 12120, PG_BUFFERCACHE_SUMMARY, pg_buffercache_summary),
    view(
        "pg_buffercache_usage_counts",
        12121,
        PG_BUFFERCACHE_USAGE_COUNTS,
        pg_buffercache_usage_counts,
    ),
];

/// The usage counts that there are: 0 to 5.
const USAGES: usize = 6;

const PG_BUFFERCACHE: Columns = &[
    ("bufferid", Int4),
    ("relfilenode", Oid),
    ("reltablespace", Oid),
    ("reldatabase", Oid),
    ("relforknumber", Int2),
    ("relblocknumber", Int8),
    ("isdirty", Bool),
    ("usagecount", Int2),
    ("pinning_backends", Int4),
];

fn frames(source: &Source<'_>) -> Vec<FrameInfo> {
    source.session().statistics.iter().flat_map(|statistics| statistics.frames()).collect()
}

fn pg_buffercache(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |(number, frame): (usize, FrameInfo)| {
        // PostgreSQL counts buffers from one.
        let mut row = vec![(number + 1).into()];
        match frame.page {
            None => row.resize(PG_BUFFERCACHE.len(), Cell::Null),
            Some(page) => row.extend([
                page.relation().get().into(),
                1663.into(),
                5.into(),
                (page.fork() as i32).into(),
                page.block().0.into(),
                frame.dirty.into(),
                i32::from(frame.usage).into(),
                frame.pins.into(),
            ]),
        }
        row
    };
    frames(source).into_iter().enumerate().map(row).collect()
}

const PG_BUFFERCACHE_SUMMARY: Columns = &[
    ("buffers_used", Int4),
    ("buffers_unused", Int4),
    ("buffers_dirty", Int4),
    ("buffers_pinned", Int4),
    ("usagecount_avg", Float8),
];

fn pg_buffercache_summary(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let frames = frames(source);
    let used = || frames.iter().filter(|frame| frame.page.is_some());
    let (count, usage) = (used().count(), used().map(|frame| u64::from(frame.usage)).sum::<u64>());
    vec![vec![
        count.into(),
        (frames.len() - count).into(),
        used().filter(|frame| frame.dirty).count().into(),
        used().filter(|frame| frame.pins > 0).count().into(),
        if count == 0 { Cell::Null } else { (usage as f64 / count as f64).into() },
    ]]
}

const PG_BUFFERCACHE_USAGE_COUNTS: Columns =
    &[("usage_count", Int4), ("buffers", Int4), ("dirty", Int4), ("pinned", Int4)];

fn pg_buffercache_usage_counts(source: &Source<'_>) -> Vec<Vec<Cell>> {
    // As in PostgreSQL, a buffer that holds nothing counts with those that no session uses.
    let mut counts = [[0u32; 3]; USAGES];
    for frame in frames(source) {
        let usage = if frame.page.is_some() { usize::from(frame.usage) } else { 0 };
        let [buffers, dirty, pinned] = &mut counts[usage.min(USAGES - 1)];
        *buffers += 1;
        *dirty += u32::from(frame.dirty);
        *pinned += u32::from(frame.page.is_some() && frame.pins > 0);
    }
    let row = |(usage, counts): (usize, [u32; 3])| {
        std::iter::once(usage.into()).chain(counts.map(Cell::from)).collect()
    };
    counts.into_iter().enumerate().map(row).collect()
}
