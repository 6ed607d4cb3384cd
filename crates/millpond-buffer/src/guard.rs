//! Guards: what one holds of a page, and what that allows (rule 5).
//!
//! | guard | the page stays in memory | its bytes |
//! |---|---|---|
//! | [`PinnedPage`] | yes | only through an optimistic closure |
//! | [`SharedPage`] | yes | may be read: nobody changes them |
//! | [`ExclusivePage`] | yes | may be read; nobody else reads or changes them, except optimistically |
//! | [`PageChange`] | yes | may be changed |
//!
//! Dropping a guard gives back what it holds, on every path. A [`PageChange`] that is dropped after
//! something was written but before it was published leaves the page *damaged*: its bytes may be anything
//! between two states, so it is never written and no longer handed out, and recovery mends it. So does one that is forgotten
//! ([`std::mem::forget`]). Another guard that is forgotten keeps what it holds: a pin as long as its session, a latch
//! as long as the pool, and who wants the page then waits for ever.
//!
//! **What was true before a wait is looked at again after it.** Whoever waits for a latch may have waited for somebody
//! who left the page damaged; so every way to the bytes looks after the latch has been taken, and not only
//! when the page is pinned. (That the frame still has the page needs no second look: the pin sees to it, and nobody waits
//! for a page's latch without one.)
#![allow(unsafe_code)]

mod change;

pub use self::change::PageChange;
use crate::contained::contained;
use crate::error::BufferError;
use crate::frame::{DAMAGED, Frame};
use crate::ids::{BlockNumber, Lsn, PageId};
use crate::latched::How;
use crate::page::{PageBytes, page_lsn};
use crate::page_read::PageRead;
use crate::pins::Added;
use crate::session::BufferSession;
use crate::words::PageView;
use millpond_sync::mutant;
use std::cmp::Ordering;
use std::fmt;
use std::mem::ManuallyDrop;

/// A pinned page: it stays in memory.
pub struct PinnedPage<'s> {
    session: &'s BufferSession,
    frame: u32,
    page: PageId,
}

impl<'s> PinnedPage<'s> {
    #[inline]
    pub(crate) fn new(session: &'s BufferSession, frame: u32, page: PageId) -> Self {
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

    /// Reads from it optimistically, as [`BufferSession::read`] does. The session must not be changing
    /// it. Fails only if the page has been damaged since it was pinned.
    #[inline]
    pub fn read<R>(&self, f: impl FnMut(&PageView<'_>) -> R) -> Result<R, BufferError> {
        self.session.read_pinned(self.frame, self.page, f)
    }

    /// Takes the latch shared; waits for whoever holds it exclusively. Fails only if the page has been damaged since it
    /// was pinned. If this session holds it exclusively, it waits for itself: for ever, or in debug builds until it panics, at once.
    #[inline]
    pub fn into_shared(self) -> Result<SharedPage<'s>, BufferError> {
        self.session.is_about_to_latch(self.page, How::Shared);
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

    /// Takes the latch exclusively; waits for whoever holds it. Fails only if the page has been damaged since it
    /// was pinned. If this session holds it already, it waits for itself, as [`PinnedPage::into_shared`] does.
    #[inline]
    pub fn into_exclusive(self) -> Result<ExclusivePage<'s>, BufferError> {
        self.session.is_about_to_latch(self.page, How::Exclusively);
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

    /// Whether a change of it was interrupted. Who asks under the latch learns the truth: the mark is made under it.
    #[inline]
    fn is_damaged(&self) -> bool {
        debug_assert!(self.descriptor().holds(self.page), "a pinned frame keeps its page");
        self.descriptor().state() & DAMAGED != 0
    }

    /// A change of it was interrupted. Its version stays odd: optimistic readers find out from the state word.
    #[cold]
    fn damage(&self) {
        self.descriptor().mark_damaged();
        // Whoever hears of it may panic: the latch is given back after this all the same.
        contained("the report of a damaged page", || {
            tracing::error!(page = %self.page, "a change was interrupted: the page is damaged");
        });
    }

    #[inline]
    fn check_sound(&self) -> Result<(), BufferError> {
        if self.is_damaged() { Err(BufferError::Damaged { page: self.page }) } else { Ok(()) }
    }
}

impl Clone for PinnedPage<'_> {
    /// Pins the page once more, which only this session notices.
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
#[derive(Debug)]
pub struct SharedPage<'s> {
    /// Which page. Not dropped with the guard: it is a pin only if `pinned`.
    pin: ManuallyDrop<PinnedPage<'s>>,
    /// Whether the page is pinned besides. The latch alone keeps it in memory as well (rule 13).
    pinned: bool,
}

impl<'s> SharedPage<'s> {
    /// The page's latch is held shared on behalf of the new guard, and keeps the page in memory.
    #[inline]
    pub(crate) fn latched(session: &'s BufferSession, frame: u32, page: PageId) -> Self {
        session.note_latched(page, How::Shared);
        let pin = ManuallyDrop::new(PinnedPage::new(session, frame, page));
        Self { pin, pinned: false }
    }

    /// The pinned page's latch is held shared on behalf of the new guard.
    #[inline]
    fn of_pinned(pin: PinnedPage<'s>) -> Self {
        pin.session.note_latched(pin.page, How::Shared);
        Self { pin: ManuallyDrop::new(pin), pinned: true }
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &PageBytes {
        // SAFETY: the shared latch is held for as long as `self`, and whoever stores holds it
        // exclusively.
        unsafe { self.pin.session.pool.arena.bytes(self.pin.frame) }
    }

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

    /// Gives back the latch and keeps the page pinned.
    #[inline]
    #[must_use]
    pub fn unlatch(self) -> PinnedPage<'s> {
        // The pin passes from the one guard, which is not dropped, to the other. (A session that
        // has four billion pins of the page panics here, and the latch stays held, as those pins
        // do.)
        let this = ManuallyDrop::new(self);
        let pin = &this.pin;
        pin.session.note_unlatched(pin.page, How::Shared);
        pin.session.pins.unlatch(pin.frame, this.pinned, || pin.descriptor());
        PinnedPage { ..*this.pin }
    }
}

impl Drop for SharedPage<'_> {
    #[inline]
    fn drop(&mut self) {
        self.pin.session.note_unlatched(self.pin.page, How::Shared);
        self.pin.descriptor().latch().unlock_shared();
        if self.pinned {
            self.pin.session.unpin(self.pin.frame);
        }
    }
}

/// A page under an exclusive latch.
#[derive(Debug)]
pub struct ExclusivePage<'s> {
    pin: PinnedPage<'s>,
}

impl<'s> ExclusivePage<'s> {
    /// The page's latch is held exclusively on behalf of the new guard.
    #[inline]
    pub(crate) fn latched(pin: PinnedPage<'s>) -> Self {
        pin.session.note_latched(pin.page, How::Exclusively);
        Self { pin }
    }

    /// The latch is about to be given back, or shared. A change that was forgotten was interrupted.
    #[inline]
    fn ends(&self) {
        if self.pin.descriptor().version().is_changing() && !self.pin.is_damaged() {
            self.pin.damage();
        }
        self.pin.session.note_unlatched(self.pin.page, How::Exclusively);
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &PageBytes {
        // SAFETY: the exclusive latch is held for as long as `self`, and this session stores only
        // through a `PageChange`, by `&mut`: nobody else has `self` while there is one, and it lends these bytes only by `&`.
        unsafe { self.pin.session.pool.arena.bytes(self.pin.frame) }
    }

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

    /// Begins a change: marks the page dirty, before its log record exists, so that a checkpoint that
    /// starts later finds it.
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

    /// Keeps the page latched, but only shared; no writer gets in between. If a change of it was forgotten (the page is damaged
    /// then), its bytes are those of the change as far as that had come.
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

macro_rules! read_through_bytes {
    ($($guard:ident),*) => {$(
        impl PageRead for $guard<'_> {
            #[inline]
            fn u8(&self, offset: usize) -> u8 {
                PageRead::u8(self.bytes(), offset)
            }

            #[inline]
            fn u16(&self, offset: usize) -> u16 {
                PageRead::u16(self.bytes(), offset)
            }

            #[inline]
            fn u32(&self, offset: usize) -> u32 {
                PageRead::u32(self.bytes(), offset)
            }

            #[inline]
            fn u64(&self, offset: usize) -> u64 {
                PageRead::u64(self.bytes(), offset)
            }

            #[inline]
            fn copy(&self, offset: usize, to: &mut [u8]) {
                self.bytes().copy(offset, to);
            }

            #[inline]
            fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Ordering {
                self.bytes().compare(offset, len, other)
            }
        }
    )*};
}

read_through_bytes!(SharedPage, ExclusivePage, PageChange);
