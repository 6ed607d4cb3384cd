//! What a session has latched: known in debug builds, to say so where a session would wait for itself.
//!
//! A session that has a page latched and asks for that latch again, or reads a page that it is just changing, waits for a
//! holder that is asleep: itself. In a release build it does so for ever; looking out for it would cost each latch a store. In a
//! debug build a session keeps a list, and panics instead.
//!
//! **State.** The list is its session's own, so it needs no ordering. A guard adds itself when it has the latch, and takes itself off
//! before it gives it back; one that is forgotten stays on the list, as its latch stays held.

#[cfg(debug_assertions)]
use std::cell::RefCell;

use crate::ids::PageId;
use crate::session::BufferSession;

/// How a page is latched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Shared,
    Exclusively,
}

/// The latches that a session holds.
#[derive(Default)]
pub(crate) struct Latched {
    #[cfg(debug_assertions)]
    pages: RefCell<Vec<(PageId, How)>>,
}

#[cfg(debug_assertions)]
impl BufferSession {
    /// A guard has the latch of a page.
    pub(crate) fn note_latched(&self, page: PageId, how: How) {
        self.latched.pages.borrow_mut().push((page, how));
    }

    /// A guard is about to give it back.
    pub(crate) fn note_unlatched(&self, page: PageId, how: How) {
        let mut pages = self.latched.pages.borrow_mut();
        if let Some(at) = pages.iter().rposition(|latched| *latched == (page, how)) {
            pages.swap_remove(at);
        }
    }

    /// Panics if the session holds what it is about to wait for. (Two shared latches go together, unless somebody claims the page
    /// in between.)
    pub(crate) fn is_about_to_latch(&self, page: PageId, how: How) {
        let pages = self.latched.pages.borrow();
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
        let pages = self.latched.pages.borrow();
        if let Some((page, _)) = pages.iter().find(|(_, held)| *held == How::Exclusively) {
            panic!("the session would wait for itself: it holds {page} latched exclusively");
        }
    }
}

#[cfg(not(debug_assertions))]
impl BufferSession {
    #[inline(always)]
    pub(crate) fn note_latched(&self, _: PageId, _: How) {
        let _ = &self.latched;
    }

    #[inline(always)]
    pub(crate) fn note_unlatched(&self, _: PageId, _: How) {}

    #[inline(always)]
    pub(crate) fn is_about_to_latch(&self, _: PageId, _: How) {}

    #[inline(always)]
    pub(crate) fn must_not_wait_for_itself(&self) {}
}
