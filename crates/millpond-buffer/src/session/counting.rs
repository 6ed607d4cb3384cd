//! What a session counts, times and records, and on whose behalf.

use super::BufferSession;
use crate::ids::PageId;
use crate::ring::Ring;
use crate::stats::{self, BackendKind, Event, Histogram, IoContext, IoRow};
use crate::trace::TraceFlags;
use std::cell::Cell;

impl BufferSession {
    #[inline]
    pub(crate) fn count(&self, event: Event, n: u64) {
        self.pool.counters.add(self.number, stats::cell(self.io_row.get(), event), n);
    }

    /// Counts a value in a histogram by powers of two.
    pub(crate) fn count_log2(&self, histogram: Histogram, value: u64) {
        self.pool.counters.add(self.number, stats::log2_cell(histogram, value), 1);
    }

    /// Counts a value in a histogram of small values.
    pub(crate) fn count_nth(&self, histogram: Histogram, value: usize) {
        self.pool.counters.add(self.number, stats::nth_cell(histogram, value), 1);
    }

    /// Counts a page that is in memory again, and had left at that time.
    pub(crate) fn count_return(&self, left_at: u64) {
        let away = self.pool.clock.taken().saturating_sub(left_at);
        self.count_log2(Histogram::RegretAge, away);
        if let Some(probation) = &self.pool.probation {
            probation.note_return(away, self.pool.frames());
        }
        if away < self.pool.frames() as u64 {
            self.count(Event::Regret, 1);
        }
    }

    /// Says whose session this is, for the statistics.
    pub fn set_backend_kind(&self, kind: BackendKind) {
        self.kind.set(kind);
        self.set_io_context(IoContext::Normal);
    }

    /// Says whether the session's calls to the store are timed, for the statistics.
    pub fn set_io_timing(&self, timed: bool) {
        self.io_timing.set(timed);
    }

    /// Calls the store, or waits for it, and counts the microseconds that takes if the session wants that.
    #[inline]
    pub(crate) fn timed<R>(&self, time: Event, call: impl FnOnce() -> R) -> R {
        if !self.io_timing.get() {
            return call();
        }
        let start = millpond_sync::clock::now();
        let result = call();
        self.count(time, millpond_sync::clock::since(start).as_micros() as u64);
        result
    }

    /// Says what kind of work follows, for the statistics.
    pub fn set_io_context(&self, context: IoContext) {
        self.io_row.set(IoRow::new(self.kind.get(), context));
    }

    /// Counts what follows as the work of a job with a ring, as long as the result lives.
    #[inline]
    pub(crate) fn in_context(&self, ring: Option<&Ring>) -> Option<InContext<'_>> {
        let ring = ring?;
        let before = self.io_row.replace(IoRow::new(self.kind.get(), ring.io_context()));
        Some(InContext { row: &self.io_row, before })
    }

    /// Records an access, if accesses are recorded, with the kind of work that is under way.
    #[inline]
    pub(crate) fn trace(&self, page: PageId, flags: TraceFlags) {
        if self.trace.is_some() {
            self.note_in_trace(page, flags);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_in_trace(&self, page: PageId, flags: TraceFlags) {
        if let Some(trace) = &self.trace {
            trace.note(page, flags.with(TraceFlags(self.io_row.get().context())));
        }
    }
}

/// The time of a call for a job with a ring.
pub(crate) struct InContext<'a> {
    row: &'a Cell<IoRow>,
    before: IoRow,
}

impl Drop for InContext<'_> {
    fn drop(&mut self) {
        self.row.set(self.before);
    }
}
