//! Parking until another thread or a device has done something ([`park`]).
//!
//! Such a wait has no limit, since a device may take long. But it is not silent: after a while
//! [`park`] logs what the thread waits for, and returns. The caller checks again, and parks again.
//!
//! A store that forgets a read or write that it was given ([`std::mem::forget`]) keeps others
//! waiting for ever. The pool can't know that it will never end; the log tells the operator.

use crate::catch_panic::catch_panic;
use millpond_sync::parking::{self, ParkResult};
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
