//! A session: one thread of work's way to the pool, with its pins, its piece of the clock and its counters.

mod counting;

use crate::config::Wait;
use crate::error::BufferError;
use crate::frame::{DAMAGED, Frame, NoPin, NoRead};
use crate::guard::{ExclusivePage, PinnedPage, SharedPage};
use crate::ids::{BlockNumber, PageId};
use crate::latched::{How, Latched};
use crate::pins::{Added, PinSlots};
use crate::policy::Piece;
use crate::pool::BufferPool;
use crate::relation::RelHandle;
use crate::ring::Ring;
use crate::stats::{self, BackendKind, Event, IoContext, IoRow};
use crate::trace::{SessionTrace, TraceFlags};
use crate::translation::{frame_in, is_absent};
use crate::words::PageView;
use millpond_sync::atomic::Ordering;
use millpond_sync::hint::Backoff;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// How often an optimistic read begins anew before it takes the latch.
const MAX_RESTARTS: u32 = 8;

/// One thread of work's access to the pool. It can move between threads but not be used by two at a time, which the
/// compiler sees to: it is `Send` and not `Sync`, and its guards borrow it.
///
/// ```compile_fail
/// # use millpond_buffer::BufferSession;
/// fn shared(_: impl Sync) {}
/// fn f(session: BufferSession) {
///     shared(session);
/// }
/// ```
///
/// It keeps the pool alive. Dropping it gives back all pins, also those whose guards were leaked; a session that is itself
/// leaked ([`std::mem::forget`]) keeps its number and its pins as long as the pool lives.
pub struct BufferSession {
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) number: usize,
    pub(crate) pins: Arc<PinSlots>,
    pub(crate) piece: Cell<Piece>,
    /// Whose work it is, and of what kind: where its input and output are counted.
    kind: Cell<BackendKind>,
    pub(crate) latched: Latched,
    io_timing: Cell<bool>,
    io_row: Cell<IoRow>,
    /// `None` unless accesses are recorded.
    trace: Option<SessionTrace>,
}

impl BufferSession {
    pub(crate) fn new(pool: Arc<BufferPool>, number: usize) -> Self {
        Self {
            trace: pool.config.trace.as_ref().map(|sink| SessionTrace::new(sink, number)),
            pins: pool.pins.slots(number),
            pool,
            number,
            piece: Cell::new(Piece::default()),
            kind: Cell::new(BackendKind::default()),
            latched: Latched::default(),
            io_timing: Cell::new(false),
            io_row: Cell::new(IoRow::new(BackendKind::default(), IoContext::default())),
        }
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// The session's number, less than the pool's `max_sessions` and its own while it lives.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// How many different pages the session has pinned.
    #[must_use]
    pub fn pinned_pages(&self) -> usize {
        self.pins.held()
    }

    /// Pins a page: loads it if it isn't in memory, and keeps it there until the pin is dropped.
    // Always: a guard that is returned through memory costs as much again as the pin.
    #[inline(always)]
    pub fn pin(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
    ) -> Result<PinnedPage<'_>, BufferError> {
        self.pin_with(rel, block, wait, None)
    }

    /// Pins a page for a job that goes round in a ring (rule 11). Without one, as [`BufferSession::pin`].
    #[inline(always)]
    pub fn pin_with(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
        ring: Option<&Ring>,
    ) -> Result<PinnedPage<'_>, BufferError> {
        let page = rel.0.page(block);
        let _context = self.in_context(ring);
        if let Some(frame) = self.resident(rel, block)
            && self.pin_resident(frame, page, ring).is_ok()
        {
            self.count(Event::Hit, 1);
            self.trace(page, TraceFlags::HIT);
            return Ok(PinnedPage::new(self, frame, page));
        }
        match self.pin_slow(rel, block, wait, ring) {
            Ok(frame) => Ok(PinnedPage::new(self, frame, page)),
            Err(error) => Err(error),
        }
    }

    /// Pins a page and takes its latch shared, in one step if the page is in memory and nobody changes it: the latch alone keeps
    /// the page in memory then, and costs a quarter to a third less than a pin and the latch. Else as [`BufferSession::pin`] and
    /// [`PinnedPage::into_shared`] do, one after the other.
    #[inline(always)]
    pub fn pin_shared(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
    ) -> Result<SharedPage<'_>, BufferError> {
        let page = rel.0.page(block);
        if let Some(number) = self.resident(rel, block)
            && let Some(frame) = self.pool.frames.get(number as usize)
            && frame.try_latch_shared(page, self.pins.barriers())
        {
            frame.used(false);
            self.count(Event::Hit, 1);
            self.trace(page, TraceFlags::HIT);
            return Ok(SharedPage::latched(self, number, page));
        }
        self.pin_then_latch(rel, block, wait)
    }

    #[inline(never)]
    fn pin_then_latch(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
    ) -> Result<SharedPage<'_>, BufferError> {
        self.pin(rel, block, wait)?.into_shared()
    }

    /// Reads from a page optimistically: if it is in memory, without writing to any shared memory.
    ///
    /// `f` may run several times, and what it sees may be torn, so it must only compute; the result
    /// that is returned comes from a run during which the page did not change. The session must not be just changing the page: it
    /// would wait for itself.
    #[inline]
    pub fn read<R>(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
        f: impl FnMut(&PageView<'_>) -> R,
    ) -> Result<R, BufferError> {
        self.read_with(rel, block, wait, None, f)
    }

    /// Reads from a page for a job that goes round in a ring (rule 11). Without one, as
    /// [`BufferSession::read`].
    #[inline]
    pub fn read_with<R>(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
        ring: Option<&Ring>,
        mut f: impl FnMut(&PageView<'_>) -> R,
    ) -> Result<R, BufferError> {
        let context = self.in_context(ring);
        if let Some(number) = self.resident(rel, block)
            && let Some((frame, result)) = self.try_read(number, rel.0.page(block), &mut f)
        {
            frame.used(ring.is_some());
            self.count(Event::Hit, 1);
            self.trace(rel.0.page(block), TraceFlags::HIT);
            return Ok(result);
        }
        drop(context);
        self.pin_with(rel, block, wait, ring)?.read(f)
    }

    /// Asks for the memory that the session's reads will use, misses included: a hint, ahead of a session's turn.
    #[inline]
    pub fn prefetch(&self) {
        self.pins.prefetch();
        for event in [Event::Hit, Event::Miss] {
            self.pool.counters.prefetch(self.number, stats::cell(self.io_row.get(), event));
        }
    }

    /// The frame that a page seems to be in.
    #[inline]
    fn resident(&self, rel: &RelHandle, block: BlockNumber) -> Option<u32> {
        frame_in(rel.0.translation.get(block)?)
    }

    /// Whether a page is neither in memory nor on its way there.
    #[inline]
    pub(crate) fn is_absent(&self, rel: &RelHandle, block: BlockNumber) -> bool {
        let entry = rel.0.translation.get(block);
        entry.is_none_or(|entry| is_absent(entry.load(Ordering::Relaxed)))
    }

    /// One optimistic read of a frame, if it holds `page` and rests. The caller counts the use.
    #[inline]
    fn try_read<R>(
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

    /// Reads from a pinned page: optimistically, or under its latch if it keeps changing. The pin has been
    /// counted as its use.
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
        self.is_about_to_latch(page, How::Shared);
        let frame = &self.pool.frames[number as usize];
        let _latch = SharedLatch::take(frame.latch());
        // `f` may ask for other pages, or by mistake for this one.
        let _noted = Noted::new(self, page);
        // Whoever had it may have left the page damaged.
        if frame.state() & DAMAGED != 0 {
            return Err(BufferError::Damaged { page });
        }
        Ok(f(&PageView::new(self.pool.words(number))))
    }

    /// Pins a page that seems to be in a frame, and counts that as a use.
    #[inline]
    pub(crate) fn pin_resident(
        &self,
        number: u32,
        page: PageId,
        ring: Option<&Ring>,
    ) -> Result<(), NoPin> {
        let frame = self.pool.frames.get(number as usize).ok_or(NoPin::Changed)?;
        if self.pins.pin(number, frame, page)? == Added::First {
            frame.used(ring.is_some());
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn unpin(&self, number: u32) {
        self.pins.remove(number);
    }

    /// Adds a page of zeros to the end of a fork and returns it latched.
    pub fn extend(&self, rel: &RelHandle, wait: Wait) -> Result<ExclusivePage<'_>, BufferError> {
        self.extend_with(rel, wait, None)
    }

    /// Adds a page for a job that goes round in a ring (rule 11). Without one, as
    /// [`BufferSession::extend`].
    pub fn extend_with(
        &self,
        rel: &RelHandle,
        wait: Wait,
        ring: Option<&Ring>,
    ) -> Result<ExclusivePage<'_>, BufferError> {
        let _context = self.in_context(ring);
        self.extend_slow(rel, wait, ring)
    }
}

impl Drop for BufferSession {
    /// Gives back pins whose guards were forgotten.
    fn drop(&mut self) {
        self.pins.clear();
        self.pool.return_session(self.number);
    }
}

impl fmt::Debug for BufferSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferSession")
            .field("number", &self.number)
            .field("pinned_pages", &self.pinned_pages())
            .finish_non_exhaustive()
    }
}

/// A shared latch that the session's list has, until this is dropped.
struct Noted<'a>(&'a BufferSession, PageId);

impl<'a> Noted<'a> {
    fn new(session: &'a BufferSession, page: PageId) -> Self {
        session.note_latched(page, How::Shared);
        Self(session, page)
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.0.note_unlatched(self.1, How::Shared);
    }
}

/// A shared latch that is released also when the closure under it panics.
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
