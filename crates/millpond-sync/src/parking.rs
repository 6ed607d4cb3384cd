//! Parking: a thread sleeps in the queue of a key until another thread wakes it. A key is an
//! address that the caller owns.
//!
//! By default this is `parking_lot_core`, or the simulation's [`scheduler`]. Under a model checker
//! it is one table, made of the checker's own mutex and condition variable. All three promise:
//!
//! - Each key has a queue, which is served first come, first woken.
//! - `validate` runs under the queue's lock, and so do the filter and the callback of
//!   [`unpark_filter`]. So a wake-up that follows a change of the state can't be lost (rule 1).
//!
//! Closures run under the queue's lock, so they must not park, unpark or block. If one panics, the
//! process aborts, because the queue would stay locked.

use crate::audit;
#[cfg(not(any(loom, shuttle)))]
use crate::scheduler;
use std::time::Instant;

pub use crate::park_outcome::{Filter, ParkResult, Unparked};

/// Waits on `key` until unparked, if `validate` returns `true` under the queue's lock.
pub fn park(key: usize, validate: impl FnOnce() -> bool, deadline: Option<Instant>) -> ParkResult {
    park_with((key, 0), validate, deadline)
}

/// Like [`park`] without a deadline, with a token that wakers' filters see.
pub(crate) fn park_as(key: usize, token: usize, validate: impl FnOnce() -> bool) -> ParkResult {
    park_with((key, token), validate, None)
}

fn park_with(
    (key, token): (usize, usize),
    validate: impl FnOnce() -> bool,
    deadline: Option<Instant>,
) -> ParkResult {
    audit::locked(queue_of(key));
    #[cfg(not(any(loom, shuttle)))]
    let validate = if scheduler::is_active() {
        match scheduler::park((key, token), validate, deadline) {
            Ok(result) => return result,
            Err(closure) => closure,
        }
    } else {
        validate
    };
    imp::park(key, token, || no_unwind(validate), deadline)
}

/// Wakes the thread that has waited longest. Returns whether there was one.
pub fn unpark_one(key: usize) -> bool {
    let mut first = true;
    let filter = |_| if std::mem::take(&mut first) { Filter::Unpark } else { Filter::Stop };
    unpark_filter(key, filter, |_| 0).woken > 0
}

/// Wakes all threads. Returns their number.
pub fn unpark_all(key: usize) -> usize {
    unpark_filter(key, |_| Filter::Unpark, |_| 0).woken
}

/// Wakes the threads that `filter` chooses by their tokens, in the order of their arrival. Then,
/// still under the queue's lock, `callback` may change the state. It returns the token for the
/// woken threads.
pub fn unpark_filter(
    key: usize,
    filter: impl FnMut(usize) -> Filter,
    callback: impl FnOnce(Unparked) -> usize,
) -> Unparked {
    audit::locked(queue_of(key));
    #[cfg(not(any(loom, shuttle)))]
    let (filter, callback) = if scheduler::is_active() {
        match scheduler::unpark_filter(key, filter, callback) {
            Ok(unparked) => return unparked,
            Err(closures) => closures,
        }
    } else {
        (filter, callback)
    };
    let mut filter = filter;
    imp::unpark_filter(key, |token| no_unwind(|| filter(token)), |r| no_unwind(|| callback(r)))
}

/// Changes a model's time, and has parked threads look whether their deadlines have passed.
#[cfg(all(shuttle, not(loom)))]
pub(crate) fn let_pass(change: impl FnOnce()) {
    imp::let_pass(change);
}

/// The address that stands for a key's queue where writes are recorded.
fn queue_of(key: usize) -> usize {
    !key
}

/// Runs `f`; aborts the process if it panics.
fn no_unwind<R>(f: impl FnOnce() -> R) -> R {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::process::abort();
        }
    }
    let bomb = Bomb;
    let result = f();
    std::mem::forget(bomb);
    result
}

#[cfg(not(any(loom, shuttle)))]
mod imp {
    use super::{Filter, ParkResult, Unparked};
    use parking_lot_core::{FilterOp, ParkToken, UnparkToken};
    use std::time::Instant;

    #[allow(unsafe_code)]
    pub(super) fn park(
        key: usize,
        token: usize,
        validate: impl FnOnce() -> bool,
        deadline: Option<Instant>,
    ) -> ParkResult {
        // SAFETY: `validate` doesn't unwind (`no_unwind`), nor do the empty closures. That closures
        // don't park is this module's rule; breaking it deadlocks but is not undefined. If a key
        // does not belong to the caller, the only effect is spurious wake-ups, which every waiter
        // that uses `parking_lot_core` must expect.
        let result = unsafe {
            parking_lot_core::park(key, validate, || {}, |_, _| {}, ParkToken(token), deadline)
        };
        match result {
            parking_lot_core::ParkResult::Unparked(UnparkToken(token)) => {
                ParkResult::Unparked(token)
            }
            parking_lot_core::ParkResult::Invalid => ParkResult::Invalid,
            parking_lot_core::ParkResult::TimedOut => ParkResult::TimedOut,
        }
    }

    #[allow(unsafe_code)]
    pub(super) fn unpark_filter(
        key: usize,
        mut filter: impl FnMut(usize) -> Filter,
        callback: impl FnOnce(Unparked) -> usize,
    ) -> Unparked {
        let mut summary = Unparked { woken: 0, more: false };
        let filter = |ParkToken(token)| match filter(token) {
            Filter::Unpark => FilterOp::Unpark,
            Filter::Stop => FilterOp::Stop,
        };
        let callback = |result: parking_lot_core::UnparkResult| {
            summary = Unparked { woken: result.unparked_threads, more: result.have_more_threads };
            UnparkToken(callback(summary))
        };
        // SAFETY: as for `park`: neither closure unwinds.
        unsafe { parking_lot_core::unpark_filter(key, filter, callback) };
        summary
    }
}

#[cfg(any(loom, shuttle))]
mod imp {
    use super::{Filter, ParkResult, Unparked};
    use crate::sync::{Condvar, Mutex};
    use std::time::Instant;

    struct Waiter {
        key: usize,
        ticket: u64,
        token: usize,
        woken: Option<usize>,
    }

    struct Lot {
        next_ticket: u64,
        waiters: Vec<Waiter>,
    }

    struct Table {
        lot: Mutex<Lot>,
        changed: Condvar,
    }

    impl Table {
        fn new() -> Self {
            let lot = Lot { next_ticket: 0, waiters: Vec::new() };
            Self { lot: Mutex::new(lot), changed: Condvar::new() }
        }
    }

    #[cfg(loom)]
    use loom::lazy_static;
    #[cfg(all(shuttle, not(loom)))]
    use shuttle::lazy_static;

    lazy_static! {
        static ref TABLE: Table = Table::new();
    }

    pub(super) fn park(
        key: usize,
        token: usize,
        validate: impl FnOnce() -> bool,
        deadline: Option<Instant>,
    ) -> ParkResult {
        let mut lot = TABLE.lot.lock();
        if !validate() {
            return ParkResult::Invalid;
        }
        let ticket = lot.next_ticket;
        lot.next_ticket += 1;
        lot.waiters.push(Waiter { key, ticket, token, woken: None });
        loop {
            let at = lot.waiters.iter().position(|waiter| waiter.ticket == ticket);
            let woken = at.and_then(|at| lot.waiters[at].woken);
            if let Some(token) = woken {
                lot.waiters.retain(|waiter| waiter.ticket != ticket);
                return ParkResult::Unparked(token);
            }
            if deadline.is_some_and(|deadline| deadline <= crate::clock::now()) {
                lot.waiters.retain(|waiter| waiter.ticket != ticket);
                return ParkResult::TimedOut;
            }
            lot = TABLE.changed.wait(lot);
        }
    }

    /// Under the lock, so that a thread looks at its deadline before or is notified.
    #[cfg(not(loom))]
    pub(super) fn let_pass(change: impl FnOnce()) {
        let lot = TABLE.lot.lock();
        change();
        drop(lot);
        TABLE.changed.notify_all();
    }

    pub(super) fn unpark_filter(
        key: usize,
        mut filter: impl FnMut(usize) -> Filter,
        callback: impl FnOnce(Unparked) -> usize,
    ) -> Unparked {
        let mut lot = TABLE.lot.lock();
        let mut chosen = Vec::new();
        let mut summary = Unparked { woken: 0, more: false };
        let mut stopped = false;
        for waiter in lot.waiters.iter().filter(|w| w.key == key && w.woken.is_none()) {
            let verdict = if stopped { Filter::Stop } else { filter(waiter.token) };
            match verdict {
                Filter::Unpark => chosen.push(waiter.ticket),
                Filter::Stop => (stopped, summary.more) = (true, true),
            }
        }
        summary.woken = chosen.len();
        let token = callback(summary);
        for waiter in lot.waiters.iter_mut().filter(|w| chosen.contains(&w.ticket)) {
            waiter.woken = Some(token);
        }
        drop(lot);
        TABLE.changed.notify_all();
        summary
    }
}
