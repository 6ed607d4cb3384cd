//! Guards: how a session holds a page, and what that allows (rule 5).
//!
//! | guard | the page stays in memory | its bytes |
//! |---|---|---|
//! | [`PinnedPage`] | yes | only through an optimistic closure |
//! | [`SharedPage`] | yes | may be read: no thread changes them |
//! | [`ExclusivePage`] | yes | may be read; others may only read them optimistically |
//! | [`PageChange`] | yes | may be changed |
//!
//! Dropping a guard gives back what it holds, on every path. A [`PageChange`] that is dropped after
//! a write but before it was published leaves the page *damaged*. Its bytes may be anything between
//! two states, so the pool never writes it and no longer hands it out; recovery repairs it. So does
//! one that is forgotten at that point ([`std::mem::forget`]). Any other forgotten guard keeps what
//! it holds: a pin as long as its session, a latch as long as the pool. A session that needs that
//! latch then waits for ever.
//!
//! **After a wait, the state is checked again.** The previous holder of a latch may have left the
//! page damaged. So every way to the bytes checks that after it has taken the latch, and not only
//! when it pins the page. (That the frame still has the page needs no second check. The pin keeps
//! it there, and no session waits for a page's latch without a pin.)
#![allow(unsafe_code)]

mod change;

pub use self::change::PageChange;
use crate::core::frame::{DAMAGED, Frame};
use crate::core::pins::Added;
use crate::core::session::{How, SessionCore};
use crate::error::BufferError;
use crate::ids::{BlockNumber, Lsn, PageId};
use crate::page::words::PageView;
use crate::page::{PageBytes, page_lsn};
use crate::threads::catch_panic;
use millpond_sync::mutant;
use std::fmt;
use std::mem::ManuallyDrop;

/// A pinned page, which stays in memory.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// let page = session.pin(&rel, BlockNumber(0), Wait::Allowed)?;
/// let first = page.read(|page| page.u64(16))?; // Optimistic: the closure may run again.
/// let mut page = page.into_exclusive()?;       // Other sessions may have come in between.
/// assert_eq!(page.u64(16), first);
/// # page.change().cancel();
/// # Ok::<(), BufferError>(())
/// ```
pub struct PinnedPage<'s> {
    session: &'s SessionCore,
    frame: u32,
    page: PageId,
}

impl<'s> PinnedPage<'s> {
    #[inline]
    pub(crate) fn new(session: &'s SessionCore, frame: u32, page: PageId) -> Self {
        Self { session, frame, page }
    }

    #[inline]
    fn descriptor(&self) -> &'s Frame {
        &self.session.pool.frames[self.frame as usize]
    }

    /// Which page it is.
    #[inline]
    #[must_use]
    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// Its block.
    #[inline]
    #[must_use]
    pub fn block(&self) -> BlockNumber {
        self.page.block()
    }

    /// Which of the pool's frames holds it.
    #[inline]
    #[must_use]
    pub fn frame(&self) -> usize {
        self.frame as usize
    }

    /// Reads from the page optimistically, as [`BufferSession::read`](crate::BufferSession::read)
    /// does. The session must not be changing it. Fails only if the page has been damaged since it
    /// was pinned.
    #[inline]
    pub fn read<R>(&self, f: impl FnMut(&PageView<'_>) -> R) -> Result<R, BufferError> {
        self.session.read_pinned(self.frame, self.page, f)
    }

    /// Takes the latch shared; waits for a session that holds it exclusively. Fails only if the
    /// page has been damaged since it was pinned. If this session itself holds it exclusively, it
    /// waits for ever; in debug builds it panics at once.
    #[inline]
    pub fn into_shared(self) -> Result<SharedPage<'s>, BufferError> {
        self.session.latched.is_about_to_latch(self.page, How::Shared);
        self.descriptor().latch().shared();
        let latched = SharedPage::of_pinned(self);
        latched.pin.check_sound()?;
        Ok(latched)
    }

    /// Takes the latch shared if that needs no waiting, and the page has not been damaged.
    #[inline]
    pub fn try_into_shared(self) -> Result<SharedPage<'s>, Self> {
        if !self.descriptor().latch().try_shared() {
            return Err(self);
        }
        let latched = SharedPage::of_pinned(self);
        if latched.pin.is_damaged() { Err(latched.unlatch()) } else { Ok(latched) }
    }

    /// Takes the latch exclusively; waits for the sessions that hold it. Fails only if the page has
    /// been damaged since it was pinned. If this session itself holds it, it waits for ever; in
    /// debug builds it panics at once.
    #[inline]
    pub fn into_exclusive(self) -> Result<ExclusivePage<'s>, BufferError> {
        self.session.latched.is_about_to_latch(self.page, How::Exclusively);
        self.descriptor().latch().exclusive();
        let latched = ExclusivePage::latched(self);
        if !mutant!("pool-exclusive-latch-of-a-damaged-page") {
            latched.pin.check_sound()?;
        }
        Ok(latched)
    }

    /// Takes the latch exclusively if that needs no waiting, and the page has not been damaged.
    #[inline]
    pub fn try_into_exclusive(self) -> Result<ExclusivePage<'s>, Self> {
        if !self.descriptor().latch().try_exclusive() {
            return Err(self);
        }
        let latched = ExclusivePage::latched(self);
        if latched.pin.is_damaged() { Err(latched.unlatch()) } else { Ok(latched) }
    }

    /// Whether a change of it was interrupted. The answer is exact only under the latch, which is
    /// held when the mark is made.
    #[inline]
    fn is_damaged(&self) -> bool {
        debug_assert!(self.descriptor().holds(self.page), "a pinned frame keeps its page");
        self.descriptor().state() & DAMAGED != 0
    }

    /// Marks the page damaged, because a change of it was interrupted. Its version stays odd;
    /// optimistic readers find the reason in the state word.
    #[cold]
    fn damage(&self) {
        self.descriptor().mark_damaged();
        // A log subscriber may panic: the latch must still be given back after this.
        catch_panic("the report of a damaged page", || {
            tracing::error!(page = %self.page, "a change was interrupted: the page is damaged");
        });
    }

    #[inline]
    fn check_sound(&self) -> Result<(), BufferError> {
        if self.is_damaged() { Err(BufferError::Damaged { page: self.page }) } else { Ok(()) }
    }
}

impl Clone for PinnedPage<'_> {
    /// Pins the page once more. No other session notices.
    #[inline]
    fn clone(&self) -> Self {
        let added = self.session.pins.add(self.frame);
        debug_assert!(added == Added::Again, "a pinned page is in the pin table");
        Self { ..*self }
    }
}

impl Drop for PinnedPage<'_> {
    #[inline]
    fn drop(&mut self) {
        self.session.unpin(self.frame);
    }
}

impl fmt::Debug for PinnedPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedPage({})", self.page)
    }
}

/// A page under a shared latch.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// let page = session.pin_shared(&rel, BlockNumber(0), Wait::Allowed)?;
/// assert!(page.bytes().iter().all(|&byte| byte == 0));
/// let page = page.unlatch(); // It stays in memory; other sessions may change it.
/// # drop(page);
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug)]
pub struct SharedPage<'s> {
    /// The page. It is not dropped with the guard, since it is a pin only if `pinned`.
    pin: ManuallyDrop<PinnedPage<'s>>,
    /// Whether the page is also pinned. The latch alone keeps it in memory, too (rule 13).
    pinned: bool,
}

impl<'s> SharedPage<'s> {
    /// The page's latch is held shared on behalf of the new guard, and keeps the page in memory.
    #[inline]
    pub(crate) fn latched(session: &'s SessionCore, frame: u32, page: PageId) -> Self {
        session.latched.note_latched(page, How::Shared);
        let pin = ManuallyDrop::new(PinnedPage::new(session, frame, page));
        Self { pin, pinned: false }
    }

    /// The pinned page's latch is held shared on behalf of the new guard.
    #[inline]
    fn of_pinned(pin: PinnedPage<'s>) -> Self {
        pin.session.latched.note_latched(pin.page, How::Shared);
        Self { pin: ManuallyDrop::new(pin), pinned: true }
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &PageBytes {
        // SAFETY: the shared latch is held for as long as `self`, and a thread that stores holds it
        // exclusively.
        unsafe { self.pin.session.pool.arena.bytes(self.pin.frame) }
    }

    /// Gives back the latch and keeps the page pinned.
    #[inline]
    #[must_use]
    pub fn unlatch(self) -> PinnedPage<'s> {
        // The pin passes from this guard, which is not dropped, to the new one. (A session that has
        // four billion pins of the page panics here. The latch then stays held, as those pins do.)
        let this = ManuallyDrop::new(self);
        let pin = &this.pin;
        pin.session.latched.note_unlatched(pin.page, How::Shared);
        pin.session.pins.unlatch(pin.frame, this.pinned, || pin.descriptor());
        PinnedPage { ..*this.pin }
    }
}

impl Drop for SharedPage<'_> {
    #[inline]
    fn drop(&mut self) {
        self.pin.session.latched.note_unlatched(self.pin.page, How::Shared);
        self.pin.descriptor().latch().unlock_shared();
        if self.pinned {
            self.pin.session.unpin(self.pin.frame);
        }
    }
}

/// A page under an exclusive latch.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// let mut page = session.pin(&rel, BlockNumber(0), Wait::Allowed)?.into_exclusive()?;
/// let mut change = page.change();
/// change.write(16, b"hello");
/// change.publish(Lsn(200));
/// assert_eq!((&page.bytes()[16..21], page.lsn()), (&b"hello"[..], Lsn(200)));
/// let page = page.downgrade(); // No writer gets in between.
/// # drop(page);
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug)]
pub struct ExclusivePage<'s> {
    pin: PinnedPage<'s>,
}

impl<'s> ExclusivePage<'s> {
    /// The page's latch is held exclusively on behalf of the new guard.
    #[inline]
    pub(crate) fn latched(pin: PinnedPage<'s>) -> Self {
        pin.session.latched.note_latched(pin.page, How::Exclusively);
        Self { pin }
    }

    /// Called before the latch is released or downgraded. A forgotten change counts as interrupted.
    #[inline]
    fn ends(&self) {
        if self.pin.descriptor().version().is_changing() && !self.pin.is_damaged() {
            self.pin.damage();
        }
        self.pin.session.latched.note_unlatched(self.pin.page, How::Exclusively);
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &PageBytes {
        // SAFETY: the exclusive latch is held for as long as `self`. This session stores only
        // through a `PageChange`, which borrows `self` by `&mut`. So no other code has `self` while
        // there is one, and it lends these bytes only by `&`.
        unsafe { self.pin.session.pool.arena.bytes(self.pin.frame) }
    }

    /// Begins a change: marks the page dirty, before its log record exists, so that a checkpoint
    /// that starts later finds it.
    #[inline]
    pub fn change(&mut self) -> PageChange<'_> {
        PageChange::begin(self)
    }

    /// Gives back the latch and keeps the pin.
    #[inline]
    #[must_use]
    pub fn unlatch(self) -> PinnedPage<'s> {
        let this = ManuallyDrop::new(self);
        this.ends();
        this.pin.descriptor().latch().unlock_exclusive();
        PinnedPage { ..this.pin }
    }

    /// Keeps the page latched, but only shared; no writer gets in between. If a change of it was
    /// forgotten, the page is damaged, and its bytes have that change half-done.
    #[must_use]
    pub fn downgrade(self) -> SharedPage<'s> {
        let this = ManuallyDrop::new(self);
        this.ends();
        this.pin.descriptor().latch().downgrade();
        SharedPage::of_pinned(PinnedPage { ..this.pin })
    }
}

impl Drop for ExclusivePage<'_> {
    #[inline]
    fn drop(&mut self) {
        self.ends();
        self.pin.descriptor().latch().unlock_exclusive();
    }
}

macro_rules! latched_page {
    ($($guard:ident),*) => {$(
        impl $guard<'_> {
            /// The end of the last record that changed it.
            #[inline]
            #[must_use]
            pub fn lsn(&self) -> Lsn {
                page_lsn(self.bytes())
            }

            /// Its block.
            #[inline]
            #[must_use]
            pub fn block(&self) -> BlockNumber {
                self.pin.block()
            }

            /// Which page it is.
            #[inline]
            #[must_use]
            pub fn page_id(&self) -> PageId {
                self.pin.page
            }
        }
    )*};
}

latched_page!(SharedPage, ExclusivePage);
