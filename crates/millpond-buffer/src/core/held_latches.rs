//! The latches that a session holds. Debug builds use them to find a session that would wait for
//! itself.
//!
//! A session that asks for a latch that it holds, or reads a page that it is changing, waits for
//! itself. A release build does not detect that and waits for ever: detection would cost each latch
//! a store. In a debug build a session keeps a list, and panics instead.
//!
//! **State.** The list belongs to one session, so it needs no ordering. A guard adds itself when it
//! has the latch, and removes itself before it gives it back. A forgotten guard stays on the list,
//! as its latch stays held.

#[cfg(debug_assertions)]
use std::cell::RefCell;

use crate::ids::PageId;

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
