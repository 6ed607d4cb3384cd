//! Reads Millpond's own trace format (`docs/trace-format.md`) and puts the sessions' accesses into
//! the order of their times.

use super::DecodeError;
use crate::replay::trace::{AccessKind, TraceBuilder};
use millpond_buffer::trace::codec::MAGIC;
use millpond_buffer::trace::{TraceError, TraceFlags, TraceReader, TracedChunk};
use std::io::BufRead;

/// Whether a file with these first bytes has this format.
pub fn looks_like(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// An access that is not yet in the trace's order.
struct Pending {
    nanos: u64,
    key: u64,
    kind: AccessKind,
}

/// Reads chunks until the input ends, and interleaves the accesses of different sessions by time.
pub fn decode(input: &mut dyn BufRead, trace: &mut TraceBuilder) -> Result<(), DecodeError> {
    let mut reader = TraceReader::new(input).map_err(error)?;
    let (mut accesses, mut hits, mut dropped) = (Vec::new(), 0, 0u64);
    while let Some(chunk) = reader.next_chunk().map_err(error)? {
        dropped += u64::from(chunk.dropped);
        hits +=
            chunk.records.iter().filter(|record| record.flags.has(TraceFlags::HIT)).count() as u64;
        spread(&chunk, &mut accesses);
    }
    // The sort is stable: accesses of one session at the same time keep their order.
    accesses.sort_by_key(|access| access.nanos);
    for access in accesses {
        trace.push(access.key, access.kind)?;
    }
    trace.hits(hits);
    if dropped > 0 {
        trace.note(format!("{dropped} accesses were dropped while it was recorded"));
    }
    if reader.broken_off() {
        trace.note("it ends within a chunk, which is left out".to_owned());
    }
    Ok(())
}

/// Spreads a chunk's accesses evenly over its time span.
fn spread(chunk: &TracedChunk, accesses: &mut Vec<Pending>) {
    let (start, end) = chunk.span_nanos;
    let step = end.saturating_sub(start) / (chunk.records.len().max(1) as u64);
    accesses.extend(chunk.records.iter().enumerate().map(|(at, record)| Pending {
        nanos: start.saturating_add(step.saturating_mul(at as u64)),
        key: record.page.raw(),
        kind: match record.flags.kind() {
            0 => AccessKind::Normal,
            1 => AccessKind::BulkRead,
            2 => AccessKind::BulkWrite,
            _ => AccessKind::Vacuum,
        },
    }));
}

fn error(error: TraceError) -> DecodeError {
    match error {
        TraceError::Io { offset, source } => DecodeError::Io { offset, source },
        TraceError::Damaged { what, offset } => DecodeError::malformed(what, offset),
        other => DecodeError::malformed(other.to_string(), 0),
    }
}
