//! Requests to a session to stop. Other threads set them in its line. The session checks them
//! between two steps of its work and while it waits for a lock.
//!
//! Ordering: the requester sets the bit (SeqCst) before it unparks the session. A parking session
//! reads the bit (SeqCst) in the check under the parking queue's lock, so it misses no request. A
//! thread that addresses one session holds the mutex of the free lines, under which no line changes
//! its owner. So a request never reaches the next user of a line.

use std::sync::Arc;

use millpond_sync::atomic::Ordering;
use millpond_sync::parking;

use super::{ProcArray, ProcHandle};
use crate::error::{EngineError, EngineResult};
use crate::ids::SessionNo;

/// A request to a session to stop what it is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupt {
    /// A cancel request.
    Cancel,
    /// End the session: shutdown, or `pg_terminate_backend`.
    Terminate,
}

impl Interrupt {
    /// Requests to end the session come first.
    const BY_WEIGHT: [Interrupt; 2] = [Interrupt::Terminate, Interrupt::Cancel];

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl ProcArray {
    /// Interrupts every session, as for a shutdown.
    pub fn interrupt_all(&self, interrupt: Interrupt) {
        for index in 0..self.lines.len() {
            self.interrupt_line(index, interrupt);
        }
    }

    /// Interrupts a session that the caller keeps from ending.
    pub(crate) fn interrupt_session(&self, no: SessionNo, interrupt: Interrupt) {
        self.interrupt_line(no.index(), interrupt);
    }

    fn interrupt_line(&self, index: usize, interrupt: Interrupt) {
        self.lines[index].interrupts.fetch_or(interrupt.bit(), Ordering::SeqCst);
        let desk = &self.desks[index];
        parking::unpark_all(std::ptr::from_ref(&desk.lock_wait).addr());
    }
}

/// Lets another thread interrupt one session. After that session has ended it does nothing, even if
/// the line has a new owner.
#[derive(Clone)]
pub struct InterruptHandle {
    array: Arc<ProcArray>,
    no: SessionNo,
    generation: u64,
}

impl InterruptHandle {
    /// Asks the session to stop; wakes it if it is parked for a lock.
    pub fn interrupt(&self, interrupt: Interrupt) {
        // Under the mutex the line keeps its owner until the bit is set.
        let free = self.array.free.lock();
        let index = self.no.index();
        if free.generations[index] == self.generation && !free.numbers.contains(&self.no.0) {
            self.array.interrupt_line(index, interrupt);
        }
    }
}

impl ProcHandle {
    /// Fails if the session has been asked to stop. One load of the session's own line.
    #[inline]
    pub fn check_interrupts(&self) -> EngineResult<()> {
        if self.line().interrupts.load(Ordering::Relaxed) == 0 {
            Ok(())
        } else {
            Err(EngineError::Cancelled)
        }
    }

    /// Fails if the session has been asked to end (`Terminate`). One load of the session's own
    /// line.
    #[inline]
    pub fn check_end(&self) -> EngineResult<()> {
        if self.line().interrupts.load(Ordering::Relaxed) & Interrupt::Terminate.bit() == 0 {
            Ok(())
        } else {
            Err(EngineError::ShuttingDown)
        }
    }

    /// Whether the session has been asked to stop. For a waiter that is about to park: a
    /// sequentially consistent load.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.line().interrupts.load(Ordering::SeqCst) != 0
    }

    /// The request that takes precedence.
    pub fn interrupt(&self) -> Option<Interrupt> {
        let bits = self.line().interrupts.load(Ordering::Relaxed);
        Interrupt::BY_WEIGHT.into_iter().find(|i| bits & i.bit() != 0)
    }

    /// Clears requests to cancel a statement, when the statement is over. Requests to end the
    /// session stay. Returns whether there were any.
    pub fn clear_statement_interrupts(&self) -> bool {
        let statement = Interrupt::Cancel.bit();
        let word = &self.line().interrupts;
        word.load(Ordering::Relaxed) & statement != 0
            && word.fetch_and(!statement, Ordering::AcqRel) & statement != 0
    }

    /// A handle with which other threads may interrupt this session.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle { array: self.array.clone(), no: self.no, generation: self.generation }
    }
}
