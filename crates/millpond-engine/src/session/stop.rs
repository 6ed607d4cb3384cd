//! How a session is stopped: requests from other threads, and the flags that the workers of its
//! parallel scans check.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ctx::Ctx;
use crate::proc::{Interrupt, InterruptHandle};

/// Interrupts a session from any thread.
#[derive(Clone)]
pub struct CancelHandle {
    interrupts: InterruptHandle,
    stop: Arc<AtomicBool>,
}

impl CancelHandle {
    /// Makes the session's running statement fail soon with `Cancelled`.
    pub fn cancel(&self) {
        self.interrupt(Interrupt::Cancel);
    }

    /// Interrupts it for any reason; [`Session::interrupt`](super::Session::interrupt) returns the
    /// reason.
    pub fn interrupt(&self, interrupt: Interrupt) {
        self.stop.store(true, Ordering::Relaxed);
        self.interrupts.interrupt(interrupt);
    }
}

impl std::fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelHandle").finish_non_exhaustive()
    }
}

/// A session's flags for the workers of its parallel scans.
#[derive(Default)]
pub(super) struct Stop {
    /// Set when the session is interrupted.
    interrupted: Arc<AtomicBool>,
    /// Set when the statement ends; a new one for each parallel scan's statement.
    statement_over: RefCell<Option<Arc<AtomicBool>>>,
}

impl Stop {
    /// A handle that interrupts the session with this context.
    pub(super) fn handle(&self, ctx: &Ctx) -> CancelHandle {
        CancelHandle {
            interrupts: ctx.proc().interrupt_handle(),
            stop: Arc::clone(&self.interrupted),
        }
    }

    /// The flags for the running statement's workers: interrupted, and statement over.
    pub(super) fn flags(&self) -> [Arc<AtomicBool>; 2] {
        let over = self.statement_over.borrow_mut().get_or_insert_with(Arc::default).clone();
        [Arc::clone(&self.interrupted), over]
    }

    /// Tells the statement's workers that it is over.
    pub(super) fn end_statement(&self) {
        if let Some(over) = self.statement_over.take() {
            over.store(true, Ordering::Relaxed);
        }
    }

    /// Clears a request to cancel. Requests to end the session stay.
    pub(super) fn clear(&self, ctx: &Ctx) {
        // An interrupting thread sets the flag first, then the request. Without a request there is
        // nothing to clear, or the request is yet to come.
        if ctx.proc().clear_statement_interrupts() && ctx.proc().interrupt().is_none() {
            self.interrupted.store(false, Ordering::Relaxed);
        }
    }
}
