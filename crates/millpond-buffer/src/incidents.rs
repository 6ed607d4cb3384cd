//! What the pool survives and reports: long waits, and panics of code that it does not own.
//!
//! [`park`] waits until another thread or a device has done something.
//! Such a wait has no limit, since a device may take long. But it is not silent: after a while
//! [`park`] logs what the thread waits for, and returns. The caller checks again, and parks again.
//!
//! A store that forgets a read or write that it was given ([`std::mem::forget`]) keeps others
//! waiting for ever. The pool can't know that it will never end; the log tells the operator.
//!
//! [`catch_panic`] catches panics of code that the pool calls.

use millpond_sync::parking::{self, ParkResult};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long a wait lasts before the first report, and how long between two reports.
const REPORT_AFTER: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 30_000 });

/// Parks on `key` if `still` holds, until it is unparked or earlier: the caller must check again.
pub(crate) fn park(key: usize, still: impl FnOnce() -> bool, what: impl FnOnce() -> String) {
    let deadline = millpond_sync::clock::now() + REPORT_AFTER;
    if parking::park(key, still, Some(deadline)) == ParkResult::TimedOut {
        let (seconds, what) = (REPORT_AFTER.as_secs(), what());
        catch_panic("the report of a long wait", || {
            tracing::warn!(seconds, "still waiting for {what}");
        });
    }
}

/// Runs `work`. A panic in it is caught and reported, and the result is `None`. A panic of the log
/// subscriber that gets the report is caught, too. Data that `work` shares with others must allow
/// for work left half-done.
pub(crate) fn catch_panic<R>(at: &str, work: impl FnOnce() -> R) -> Option<R> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        let tell = || tracing::error!("caught a panic during {at}");
        let _ = catch_unwind(AssertUnwindSafe(tell));
    }
    done
}
