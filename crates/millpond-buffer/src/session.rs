//! A session, as its users see it: a thread's access to the pool.
//!
//! Hits are dealt with here and in [`crate::core::session`]. Misses go to [`crate::read`].

use crate::config::Wait;
use crate::core::relation::RelHandle;
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::guard::{ExclusivePage, PinnedPage, SharedPage};
use crate::ids::BlockNumber;
use crate::page::words::PageView;
use crate::pool::BufferPool;
use crate::read;
use crate::replacement::ring::Ring;
use crate::replacement::vacate;
use crate::stats::{BackendKind, Event, IoContext};
use crate::trace::TraceFlags;
use crate::write_back::async_write::{self, WriteProgress};
use millpond_sync::prefetch::prefetch;
use std::fmt;
use std::sync::Arc;

/// The access of one thread of work to the pool. A session can move between threads, but two
/// threads can't use it at a time. The compiler checks this: the session is `Send` and not `Sync`,
/// and its guards borrow it.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// std::thread::scope(|threads| {
///     for _ in 0..4 {
///         let session = pool.session()?;
///         threads.spawn(move || println!("session {}", session.number()));
///     }
///     Ok::<(), BufferError>(())
/// })?;
/// # Ok::<(), BufferError>(())
/// ```
///
/// ```compile_fail
/// # use millpond_buffer::BufferSession;
/// fn shared(_: impl Sync) {}
/// fn f(session: BufferSession) {
///     shared(session);
/// }
/// ```
///
/// It keeps the pool alive. Dropping it releases all its pins, also those whose guards were leaked.
/// A session that is itself leaked ([`std::mem::forget`]) keeps its number and its pins as long as
/// the pool lives.
pub struct BufferSession {
    pool: Arc<BufferPool>,
    pub(crate) core: SessionCore,
}

impl BufferSession {
    pub(crate) fn new(pool: Arc<BufferPool>, number: usize) -> Self {
        Self { core: SessionCore::new(Arc::clone(&pool.core), number), pool }
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// The session's number: less than the pool's `max_sessions`, and unique while it lives.
    #[must_use]
    pub fn number(&self) -> usize {
        self.core.number
    }

    /// How many different pages the session has pinned.
    #[must_use]
    pub fn pinned_pages(&self) -> usize {
        self.core.pins.held()
    }

    /// Pins a page: loads it if it isn't in memory, and keeps it there until the pin is dropped.
    // Always inlined: a guard that is returned through memory costs as much again as the pin.
    #[inline(always)]
    pub fn pin(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
    ) -> Result<PinnedPage<'_>, BufferError> {
        self.pin_with(rel, block, wait, None)
    }

    /// Pins a page for a job with a ring (rule 11). Without one, like [`BufferSession::pin`].
    #[inline(always)]
    pub fn pin_with(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
        ring: Option<&Ring>,
    ) -> Result<PinnedPage<'_>, BufferError> {
        let page = rel.0.page(block);
        let _context = self.core.in_context(ring.map(Ring::io_context));
        if let Some(frame) = self.core.resident(rel, block)
            && self.core.pin_resident(frame, page, ring.is_some()).is_ok()
        {
            self.core.count(Event::Hit, 1);
            self.core.trace(page, TraceFlags::HIT);
            return Ok(PinnedPage::new(&self.core, frame, page));
        }
        match read::pin_slow(&self.core, rel, block, wait, ring) {
            Ok(frame) => Ok(PinnedPage::new(&self.core, frame, page)),
            Err(error) => Err(error),
        }
    }

    /// Pins a page and takes its latch shared. If the page is in memory and no session changes it,
    /// this is one step: the latch alone keeps the page in memory. That costs a quarter to a third
    /// less than a pin and the latch. Otherwise it does what [`BufferSession::pin`] and
    /// [`PinnedPage::into_shared`] do, one after the other.
    #[inline(always)]
    pub fn pin_shared(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
    ) -> Result<SharedPage<'_>, BufferError> {
        let page = rel.0.page(block);
        if let Some(number) = self.core.resident(rel, block)
            && let Some(frame) = self.core.pool.frames.get(number as usize)
            && frame.try_latch_shared(page, self.core.pins.barriers())
        {
            frame.used(false);
            self.core.count(Event::Hit, 1);
            self.core.trace(page, TraceFlags::HIT);
            return Ok(SharedPage::latched(&self.core, number, page));
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

    /// Reads from a page optimistically. If it is in memory, the call writes to no shared memory.
    ///
    /// `f` may run several times, and what it sees may be torn, so it must only compute. The result
    /// comes from a run during which the page did not change. The session must not call this while
    /// it changes the page itself: it would wait for itself.
    ///
    /// ```
    /// # use millpond_buffer::*;
    /// # let store = std::sync::Arc::new(MemoryStore::new());
    /// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
    /// # let rel = RelationId::constant(1).main();
    /// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
    /// # drop(session.extend(&rel, Wait::Allowed)?);
    /// let key = session.read(&rel, BlockNumber(0), Wait::Allowed, |page| page.u64(16))?;
    ///
    /// // An event loop does not wait. It passes on what would block.
    /// match session.read(&rel, BlockNumber(0), Wait::Never, |page| page.u64(16)) {
    ///     Ok(now) => assert_eq!(now, key),
    ///     Err(BufferError::WouldBlock) => { /* repeat it on a thread that may wait */ }
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), BufferError>(())
    /// ```
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

    /// Reads for a job with a ring (rule 11). Without one, like [`BufferSession::read`].
    #[inline]
    pub fn read_with<R>(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        wait: Wait,
        ring: Option<&Ring>,
        mut f: impl FnMut(&PageView<'_>) -> R,
    ) -> Result<R, BufferError> {
        let context = self.core.in_context(ring.map(Ring::io_context));
        if let Some(number) = self.core.resident(rel, block)
            && let Some((frame, result)) = self.core.try_read(number, rel.0.page(block), &mut f)
        {
            frame.used(ring.is_some());
            self.core.count(Event::Hit, 1);
            self.core.trace(rel.0.page(block), TraceFlags::HIT);
            return Ok(result);
        }
        drop(context);
        self.pin_with(rel, block, wait, ring)?.read(f)
    }

    /// Asks for the memory of what the pool knows of a page that will be read, or looked at with
    /// [`BufferSession::look_ahead`], soon: a hint.
    #[inline]
    pub fn prefetch_entry(&self, rel: &RelHandle, block: BlockNumber) {
        if let Some(number) = self.core.resident(rel, block)
            && let Some(frame) = self.core.pool.frames.get(number as usize)
        {
            prefetch(frame);
        }
    }

    /// Lets `f` look at a page that will be read soon, and ask for its memory with
    /// [`PageView::prefetch`]. A hint: nothing happens if the page is not in memory, the look is no
    /// use of the page, and what `f` sees may be torn.
    #[inline]
    pub fn look_ahead(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
        mut f: impl FnMut(&PageView<'_>),
    ) {
        if let Some(number) = self.core.resident(rel, block) {
            self.core.look_at(number, rel.0.page(block), &mut f);
        }
    }

    /// Adds a page of zeros to the end of a fork and returns it latched.
    pub fn extend(&self, rel: &RelHandle, wait: Wait) -> Result<ExclusivePage<'_>, BufferError> {
        self.extend_with(rel, wait, None)
    }

    /// Adds a page for a job with a ring (rule 11). Without one, like [`BufferSession::extend`].
    pub fn extend_with(
        &self,
        rel: &RelHandle,
        wait: Wait,
        ring: Option<&Ring>,
    ) -> Result<ExclusivePage<'_>, BufferError> {
        let _context = self.core.in_context(ring.map(Ring::io_context));
        let (frame, page) = read::extend(&self.core, rel, wait, ring)?;
        Ok(ExclusivePage::latched(PinnedPage::new(&self.core, frame, page)))
    }

    /// Pins a page whatever its state in the store, for recovery. A page that is missing or not
    /// valid becomes a page of zeros in memory. Creates and extends the fork where needed.
    ///
    /// ```
    /// # use millpond_buffer::*;
    /// # let store = std::sync::Arc::new(MemoryStore::new());
    /// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
    /// # let rel = RelationId::constant(1).main();
    /// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
    /// # drop(session.extend(&rel, Wait::Allowed)?);
    /// // Redo of a record that ends at `end` and writes `7` to a page:
    /// let end = Lsn(300);
    /// let mut page = session.pin_or_zero(&rel, BlockNumber(9))?.into_exclusive()?;
    /// if page.lsn() < end {
    ///     let mut change = page.change();
    ///     change.write(16, &[7]);
    ///     change.publish(end);
    /// }
    /// assert_eq!((page.u8(16), rel.block_count()), (7, 10));
    /// # Ok::<(), BufferError>(())
    /// ```
    pub fn pin_or_zero(
        &self,
        rel: &RelHandle,
        block: BlockNumber,
    ) -> Result<PinnedPage<'_>, BufferError> {
        let frame = read::pin_or_zero(&self.core, rel, block)?;
        Ok(PinnedPage::new(&self.core, frame, rel.0.page(block)))
    }

    /// Prefetches the memory that the session's reads will use, misses included: a hint.
    #[inline]
    pub fn prefetch(&self) {
        self.core.prefetch();
    }

    // Statistics.

    /// How many pages have been loaded for this session: when it needed them, or ahead.
    #[must_use]
    pub fn loads(&self) -> u64 {
        self.core.counted(Event::Miss) + self.core.counted(Event::ReadAhead)
    }

    /// Sets the kind of backend that uses the session, for the statistics.
    pub fn set_backend_kind(&self, kind: BackendKind) {
        self.core.set_backend_kind(kind);
    }

    /// Sets whether the session's calls to the store are timed, for the statistics.
    pub fn set_io_timing(&self, timed: bool) {
        self.core.set_io_timing(timed);
    }

    /// Sets the kind of work that follows, for the statistics.
    pub fn set_io_context(&self, context: IoContext) {
        self.core.set_io_context(context);
    }
}

/// What sessions do for the pool as a whole.
impl BufferPool {
    /// A session: a thread of work uses it to reach pages.
    pub fn session(self: &Arc<Self>) -> Result<BufferSession, BufferError> {
        let number = self.core.take_session_number()?;
        Ok(BufferSession::new(Arc::clone(self), number))
    }

    /// Changes the size of the pool to `frames` pages, while it is in use.
    ///
    /// Growing is immediate, up to [`PoolConfig::max_frames`](crate::PoolConfig::max_frames). The
    /// cost is that of the frames that come or go; sessions go on meanwhile. Shrinking gives memory
    /// back to the system; the addresses stay mapped, for optimistic readers that come too late.
    ///
    /// To shrink, the pool evicts pages. It waits three seconds or more for those that stay pinned,
    /// also by this session. If some are still pinned then, the pool stays larger.
    /// [`BufferError::Shrinking`] says how large, and because of which page; the call can be
    /// repeated. Lost frames ([`PoolStats::lost_frames`](crate::PoolStats::lost_frames)) are not
    /// waited for.
    ///
    /// ```
    /// # use millpond_buffer::*;
    /// # use std::sync::Arc;
    /// let mut config = PoolConfig::new(64, 16);
    /// config.max_frames = 256; // Reserves addresses, but no memory.
    /// let pool = BufferPool::new(config, Arc::new(MemoryStore::new()), Arc::new(NoLog))?;
    /// let session = pool.session()?;
    /// pool.resize(&session, 256)?;
    /// pool.resize(&session, 32)?;
    /// assert_eq!(pool.frames(), 32);
    /// # Ok::<(), BufferError>(())
    /// ```
    pub fn resize(&self, session: &BufferSession, frames: usize) -> Result<(), BufferError> {
        self.check_session(session)?;
        vacate::resize(&session.core, frames)
    }

    /// Frees frames until `target_clean` frames are free or no more can be freed. It writes dirty
    /// pages where that is needed. Returns how many it freed.
    pub fn reclaim(
        &self,
        session: &BufferSession,
        target_clean: usize,
    ) -> Result<usize, BufferError> {
        self.check_session(session)?;
        let (core, session) = (&self.core, &session.core);
        let wanted = target_clean.min(core.frames()).saturating_sub(core.free_frames());
        let near = session.near() % core.free.lists();
        let freed = vacate::refill(session, near, core.free.len_of(near, &core.frames) + wanted)?;
        session.count(Event::Reclaimed, freed as u64);
        Ok(freed)
    }

    /// Writes every page that is dirty at the call, once; for a checkpoint. It begins the writes in
    /// file order with neighbours joined, several at a time. Returns the number of those pages.
    /// `pace` is called after each write has begun and may take its time.
    ///
    /// When it returns, no write is under way. The session must hold no exclusive latch: it would
    /// wait for itself for ever (in debug builds, panics). After an error the remaining pages are
    /// dirty as before, and the caller can repeat the call.
    ///
    /// ```
    /// # use millpond_buffer::*;
    /// # let store = std::sync::Arc::new(MemoryStore::new());
    /// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
    /// # let rel = RelationId::constant(1).main();
    /// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
    /// # drop(session.extend(&rel, Wait::Allowed)?);
    /// let redo_point = Lsn(0); // Note the log's end first.
    /// let written = pool.write_dirty(&session, |_progress| ())?;
    /// pool.sync()?;
    /// // Only now may the log before `redo_point` be thrown away.
    /// # let _ = (redo_point, written);
    /// # Ok::<(), BufferError>(())
    /// ```
    pub fn write_dirty(
        &self,
        session: &BufferSession,
        pace: impl FnMut(WriteProgress),
    ) -> Result<usize, BufferError> {
        self.check_session(session)?;
        async_write::write_dirty(&session.core, pace)
    }

    /// Fails if the session belongs to another pool: its pins and counts mean nothing to this one.
    fn check_session(&self, session: &BufferSession) -> Result<(), BufferError> {
        if session.core.pool.number == self.core.number {
            Ok(())
        } else {
            Err(BufferError::ForeignSession)
        }
    }
}

impl fmt::Debug for BufferSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferSession")
            .field("number", &self.number())
            .field("pinned_pages", &self.pinned_pages())
            .finish_non_exhaustive()
    }
}
