//! The core of a session: its pins, its piece of the clock, its counters, and hits.
//!
//! [`SessionCore`] is what the modules that load, replace and write pages know of a session. It
//! belongs to one thread at a time. `BufferSession` is its public face.
//!
//! [`HeldLatches`] finds a session that would wait for itself (RULES.md, misuse). A release build
//! waits for ever: detection would cost each latch a store. In a debug build a session keeps a list
//! of its latches, and panics instead. A guard adds itself when it has the latch, and removes
//! itself before it gives it back. A forgotten guard stays on the list, as its latch stays held.

use crate::core::PoolCore;
use crate::core::frame::{DAMAGED, Frame, NoPin, NoRead};
use crate::core::page_table::{frame_in, is_absent};
use crate::core::pins::{Added, PinSlots};
use crate::core::relation::{RelHandle, Relation};
use crate::error::BufferError;
use crate::ids::{BlockNumber, PageId};
use crate::page::words::PageView;
use crate::policy::Piece;
use crate::stats::{self, BackendKind, Event, Histogram, IoContext, IoRow};
use crate::trace::{SessionTrace, TraceFlags};
use millpond_sync::atomic::Ordering;
use millpond_sync::hint::Backoff;
use std::cell::Cell;
#[cfg(debug_assertions)]
use std::cell::RefCell;
use std::sync::Arc;

/// How often an optimistic read starts again before it takes the latch.
const MAX_RESTARTS: u32 = 8;

/// The most frames that a session claims at a time when it needs one of them itself: a larger batch
/// would delay it.
pub(crate) const MAX_CLAIMS_ON_THE_WAY: usize = 32;

/// What a session owns.
pub(crate) struct SessionCore {
    pub(crate) pool: Arc<PoolCore>,
    pub(crate) number: usize,
    pub(crate) pins: Arc<PinSlots>,
    pub(crate) piece: Cell<Piece>,
    /// The kind of backend under which the session's input and output are counted.
    kind: Cell<BackendKind>,
    pub(crate) latched: HeldLatches,
    io_timing: Cell<bool>,
    io_row: Cell<IoRow>,
    /// `None` unless accesses are recorded.
    trace: Option<SessionTrace>,
}

impl SessionCore {
    pub(crate) fn new(pool: Arc<PoolCore>, number: usize) -> Self {
        Self {
            trace: pool.config.trace.as_ref().map(|sink| SessionTrace::new(sink, number)),
            pins: pool.pins.slots(number),
            pool,
            number,
            piece: Cell::new(Piece::default()),
            kind: Cell::new(BackendKind::default()),
            latched: HeldLatches::default(),
            io_timing: Cell::new(false),
            io_row: Cell::new(IoRow::new(BackendKind::default(), IoContext::default())),
        }
    }

    /// The freelist that this session uses first: the one of its processor.
    pub(crate) fn near(&self) -> usize {
        if cfg!(all(target_os = "linux", not(any(millpond_portable, miri, loom, shuttle)))) {
            crate::threads::place()
        } else {
            self.number
        }
    }

    /// Refuses another pool's fork before touching it: its entries name frames of the other pool.
    pub(crate) fn check_handle(&self, relation: &Relation) -> Result<(), BufferError> {
        if relation.pool == self.pool.number {
            Ok(())
        } else {
            Err(BufferError::ForeignHandle { rel: relation.rel })
        }
    }

    /// The frame that a page seems to be in.
    #[inline]
    pub(crate) fn resident(&self, rel: &RelHandle, block: BlockNumber) -> Option<u32> {
        frame_in(rel.0.translation.get(block)?)
    }

    /// Whether a page is neither in memory nor being loaded.
    #[inline]
    pub(crate) fn is_absent(&self, rel: &RelHandle, block: BlockNumber) -> bool {
        let entry = rel.0.translation.get(block);
        entry.is_none_or(|entry| is_absent(entry.load(Ordering::Relaxed)))
    }

    /// One optimistic read of a frame. `None` if the frame does not hold `page` or the page
    /// changes. The caller counts the use.
    #[inline]
    pub(crate) fn try_read<R>(
        &self,
        number: u32,
        page: PageId,
        f: &mut impl FnMut(&PageView<'_>) -> R,
    ) -> Option<(&Frame, R)> {
        let frame = self.pool.frames.get(number as usize)?;
        match frame.try_read(page, || f(&PageView::new(self.pool.words(number)))) {
            Ok(result) => Some((frame, result)),
            Err(NoRead::NotHere) => None,
            Err(NoRead::Torn) => {
                self.count(Event::Restart, 1);
                None
            }
        }
    }

    /// Shows a page to `f` if a frame holds it. Nothing says whether it changed meanwhile.
    #[inline]
    pub(crate) fn look_at(&self, number: u32, page: PageId, f: &mut impl FnMut(&PageView<'_>)) {
        if let Some(frame) = self.pool.frames.get(number as usize) {
            let _ = frame.try_read(page, || f(&PageView::new(self.pool.words(number))));
        }
    }

    /// Reads from a pinned page: optimistically, or under its latch if the page keeps changing. The
    /// pin has already been counted as a use.
    pub(crate) fn read_pinned<R>(
        &self,
        number: u32,
        page: PageId,
        mut f: impl FnMut(&PageView<'_>) -> R,
    ) -> Result<R, BufferError> {
        let mut backoff = Backoff::new();
        for _ in 0..MAX_RESTARTS {
            if let Some((_, result)) = self.try_read(number, page, &mut f) {
                return Ok(result);
            }
            if !backoff.spin() {
                break;
            }
        }
        self.count(Event::LatchedRead, 1);
        self.latched.is_about_to_latch(page, How::Shared);
        let frame = &self.pool.frames[number as usize];
        let _latch = SharedLatch::take(frame.latch());
        // `f` may ask for other pages, or by mistake for this one.
        let _noted = Noted::new(&self.latched, page);
        // The last holder of the latch may have left the page damaged.
        if frame.state() & DAMAGED != 0 {
            return Err(BufferError::Damaged { page });
        }
        Ok(f(&PageView::new(self.pool.words(number))))
    }

    /// Pins a page that seems to be in a frame, and counts that as a use, unless a job with a
    /// ring uses it `in_passing`.
    #[inline]
    pub(crate) fn pin_resident(
        &self,
        number: u32,
        page: PageId,
        in_passing: bool,
    ) -> Result<(), NoPin> {
        let frame = self.pool.frames.get(number as usize).ok_or(NoPin::Changed)?;
        if self.pins.pin(number, frame, page)? == Added::First {
            frame.used(in_passing);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn unpin(&self, number: u32) {
        self.pins.remove(number);
    }
}

impl Drop for SessionCore {
    /// Releases pins whose guards were leaked.
    fn drop(&mut self) {
        self.pins.clear();
        self.pool.return_session(self.number);
    }
}

/// Keeps a shared latch in the session's list until this is dropped.
struct Noted<'a>(&'a HeldLatches, PageId);

impl<'a> Noted<'a> {
    fn new(latched: &'a HeldLatches, page: PageId) -> Self {
        latched.note_latched(page, How::Shared);
        Self(latched, page)
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.0.note_unlatched(self.1, How::Shared);
    }
}

/// A shared latch that is released also if the closure under it panics.
pub(crate) struct SharedLatch<'a>(&'a millpond_sync::latch::Latch);

impl<'a> SharedLatch<'a> {
    pub(crate) fn take(latch: &'a millpond_sync::latch::Latch) -> Self {
        latch.shared();
        Self(latch)
    }

    pub(crate) fn try_take(latch: &'a millpond_sync::latch::Latch) -> Option<Self> {
        latch.try_shared().then(|| Self(latch))
    }
}

impl Drop for SharedLatch<'_> {
    fn drop(&mut self) {
        self.0.unlock_shared();
    }
}

// What a session counts, times and records, and for which kind of backend.
impl SessionCore {
    #[inline]
    pub(crate) fn count(&self, event: Event, n: u64) {
        self.pool.counters.add(self.number, stats::cell(self.io_row.get(), event), n);
    }

    /// How often the session has counted an event that is not one of I/O.
    pub(crate) fn counted(&self, event: Event) -> u64 {
        self.pool.counters.get(self.number, stats::cell(self.io_row.get(), event))
    }

    /// Counts a value in a histogram by powers of two.
    pub(crate) fn count_log2(&self, histogram: Histogram, value: u64) {
        self.pool.counters.add(self.number, stats::log2_cell(histogram, value), 1);
    }

    /// Counts a value in a histogram of small values.
    pub(crate) fn count_nth(&self, histogram: Histogram, value: usize) {
        self.pool.counters.add(self.number, stats::nth_cell(histogram, value), 1);
    }

    /// Counts a page that is in memory again and had left at the time `left_at`.
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

    /// Sets the kind of backend that uses the session, for the statistics.
    pub(crate) fn set_backend_kind(&self, kind: BackendKind) {
        self.kind.set(kind);
        self.set_io_context(IoContext::Normal);
    }

    /// Sets whether the session's calls to the store are timed, for the statistics.
    pub(crate) fn set_io_timing(&self, timed: bool) {
        self.io_timing.set(timed);
    }

    /// Calls the store or waits for it. Counts the microseconds if the session is timed.
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

    /// Sets the kind of work that follows, for the statistics.
    pub(crate) fn set_io_context(&self, context: IoContext) {
        self.io_row.set(IoRow::new(self.kind.get(), context));
    }

    /// Counts what follows in the context of a job with a ring, as long as the result lives.
    #[inline]
    pub(crate) fn in_context(&self, context: Option<IoContext>) -> Option<InContext<'_>> {
        let context = context?;
        let before = self.io_row.replace(IoRow::new(self.kind.get(), context));
        Some(InContext { row: &self.io_row, before })
    }

    /// Prefetches the memory that pins and counts write to.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.pins.prefetch();
        for event in [Event::Hit, Event::Miss] {
            self.pool.counters.prefetch(self.number, stats::cell(self.io_row.get(), event));
        }
    }

    /// Records an access and the kind of work under way, if accesses are recorded.
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

/// Ends the context of a job with a ring when it is dropped.
pub(crate) struct InContext<'a> {
    row: &'a Cell<IoRow>,
    before: IoRow,
}

impl Drop for InContext<'_> {
    fn drop(&mut self) {
        self.row.set(self.before);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Shared,
    Exclusively,
}

#[derive(Default)]
pub(crate) struct HeldLatches {
    #[cfg(debug_assertions)]
    pages: RefCell<Vec<(PageId, How)>>,
}

#[cfg(debug_assertions)]
impl HeldLatches {
    /// Notes that a guard has the latch of a page.
    pub(crate) fn note_latched(&self, page: PageId, how: How) {
        self.pages.borrow_mut().push((page, how));
    }

    /// Notes that a guard is about to give the latch back.
    pub(crate) fn note_unlatched(&self, page: PageId, how: How) {
        let mut pages = self.pages.borrow_mut();
        if let Some(at) = pages.iter().rposition(|latched| *latched == (page, how)) {
            pages.swap_remove(at);
        }
    }

    /// Panics if the session holds a latch that it is about to wait for. (Two shared latches are
    /// compatible, unless a writer queues in between.)
    pub(crate) fn is_about_to_latch(&self, page: PageId, how: How) {
        let pages = self.pages.borrow();
        let in_the_way = pages.iter().find(|(latched, held)| {
            *latched == page && (*held == How::Exclusively || how == How::Exclusively)
        });
        if let Some((_, held)) = in_the_way {
            panic!(
                "the session waits for itself: it holds {page} latched ({held:?}) and wants it again ({how:?})"
            );
        }
    }

    /// Panics if the session holds any page exclusively.
    pub(crate) fn must_not_wait_for_itself(&self) {
        let pages = self.pages.borrow();
        if let Some((page, _)) = pages.iter().find(|(_, held)| *held == How::Exclusively) {
            panic!("the session would wait for itself: it holds {page} latched exclusively");
        }
    }
}

#[cfg(not(debug_assertions))]
impl HeldLatches {
    #[inline(always)]
    pub(crate) fn note_latched(&self, _: PageId, _: How) {}

    #[inline(always)]
    pub(crate) fn note_unlatched(&self, _: PageId, _: How) {}

    #[inline(always)]
    pub(crate) fn is_about_to_latch(&self, _: PageId, _: How) {}

    #[inline(always)]
    pub(crate) fn must_not_wait_for_itself(&self) {}
}
