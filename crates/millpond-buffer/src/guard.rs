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
//! without one.)
#![allow(unsafe_code)]

use crate::error::BufferError;
use crate::frame::{DAMAGED, Frame};
use crate::ids::{BlockNumber, Lsn, PageId};
use crate::latched::How;
use crate::page::{PageBytes, page_lsn};
use crate::page_read::PageRead;
use crate::pins::Added;
use crate::session::BufferSession;
use crate::words::{self, PageView};
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
        SharedPage::of_pinned(self).if_sound()
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
        ExclusivePage::latched(self).if_sound()
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

    #[cold]
    fn damaged(&self) -> BufferError {
        BufferError::Damaged { page: self.page }
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

    /// The guard, unless the page was damaged before it was latched.
    #[inline]
    fn if_sound(self) -> Result<Self, BufferError> {
        if self.pin.is_damaged() { Err(self.pin.damaged()) } else { Ok(self) }
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
        if !self.pinned {
            // Before the latch is given back: who takes frames looks at latches and then at pins.
            self.pin.session.pins.add(self.pin.frame);
        }
        // The pin passes from the one guard, which is not dropped, to the other.
        let this = ManuallyDrop::new(self);
        this.pin.session.note_unlatched(this.pin.page, How::Shared);
        this.pin.descriptor().latch().unlock_shared();
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
        let frame = self.pin.descriptor();
        if frame.version().is_changing() && frame.state() & DAMAGED == 0 {
            damage(frame, self.pin.page);
        }
        self.pin.session.note_unlatched(self.pin.page, How::Exclusively);
    }

    /// The guard, unless the page was damaged before it was latched.
    #[inline]
    fn if_sound(self) -> Result<Self, BufferError> {
        if self.pin.is_damaged() { Err(self.pin.damaged()) } else { Ok(self) }
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &PageBytes {
        // SAFETY: the exclusive latch is held for as long as `self`, and this session stores only
        // through a `PageChange`, which borrows `self` mutably.
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
        let frame = self.pin.descriptor();
        let was_clean = frame.mark_dirty();
        PageChange {
            session: self.pin.session,
            frame: self.pin.frame,
            page: self.pin.page,
            was_clean,
            wrote: false,
            done: false,
        }
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

/// The version stays odd: optimistic readers find out from the state word.
#[cold]
fn damage(frame: &Frame, page: PageId) {
    frame.mark_damaged();
    tracing::error!(%page, "a change was interrupted: the page is damaged");
}

/// A change of a page. Optimistic readers are kept out from the first write to the end.
pub struct PageChange<'p> {
    session: &'p BufferSession,
    frame: u32,
    page: PageId,
    was_clean: bool,
    wrote: bool,
    done: bool,
}

impl PageChange<'_> {
    #[inline]
    fn descriptor(&self) -> &Frame {
        &self.session.pool.frames[self.frame as usize]
    }

    /// The page's bytes, with what has been written so far.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &PageBytes {
        // SAFETY: the change borrows the exclusive guard mutably, so the latch is held, and it stores
        // only by `&mut self`.
        unsafe { self.session.pool.arena.bytes(self.frame) }
    }

    /// Which page it is.
    #[inline]
    #[must_use]
    pub fn page_id(&self) -> PageId {
        self.page
    }

    #[inline]
    fn begin(&mut self) {
        if !self.wrote {
            self.wrote = true;
            let version = self.descriptor().version();
            if version.is_changing() {
                // An earlier change under this latch was interrupted, or forgotten, which comes to the same.
                if self.descriptor().state() & DAMAGED == 0 {
                    damage(self.descriptor(), self.page);
                }
            } else {
                version.write_begin();
            }
        }
    }

    /// Writes bytes at an offset. Whatever would lie beyond the end of the page is left out; in debug builds that is a panic, and
    /// the page damaged. Bytes 0 to 11 are the pool's: the LSN that [`PageChange::publish`] sets, and the checksum of what is
    /// written to the store.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.begin();
        words::store(self.session.pool.words(self.frame), offset, bytes);
    }

    /// Writes the whole page.
    pub fn write_page(&mut self, bytes: &PageBytes) {
        self.begin();
        words::copy_in(self.session.pool.words(self.frame), bytes);
    }

    /// Ends the change and sets the page's LSN: the end of its log record. Before the page is written to the store the log is
    /// flushed that far ([`LogFlush::flush_to`](crate::LogFlush::flush_to)).
    #[inline]
    pub fn publish(mut self, lsn: Lsn) {
        self.write(0, &lsn.0.to_le_bytes());
        self.finish();
    }

    /// Ends a change that no log record describes, such as a hint. The LSN stays, and a crash may lose the change.
    #[inline]
    pub fn publish_unlogged(mut self) {
        self.finish();
    }

    /// Ends a change that has written nothing: a page that was clean is clean again. (If something
    /// was written, the page is damaged, as when the change is dropped.)
    #[inline]
    pub fn cancel(self) {}

    fn finish(&mut self) {
        // A page that this guard has damaged before stays so.
        if self.wrote && self.descriptor().state() & DAMAGED == 0 {
            self.descriptor().version().write_end();
        }
        self.done = true;
    }
}

impl Drop for PageChange<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if self.wrote {
            damage(self.descriptor(), self.page);
        } else if self.was_clean {
            self.descriptor().unmark_dirty();
        }
    }
}

impl fmt::Debug for PageChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageChange({})", self.page)
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
