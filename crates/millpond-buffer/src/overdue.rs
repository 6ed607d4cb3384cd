//! Waits for what somebody else has under way. Such a wait has no limit, since a device may take
//! long. But it is not silent: a thread that has waited long says in the log what it waits for, and
//! then looks again.
//!
//! A store that forgets a read or write that it was given ([`std::mem::forget`]) keeps others
//! waiting for ever: nobody can know that it will not end. The log is where an operator finds out.

use crate::contained::contained;
use millpond_sync::parking::{self, ParkResult};
use std::time::Duration;

/// How long a wait is before the log hears of it, and then how long between two reports.
const REPORT_AFTER: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 30_000 });

/// Parks on `key` if `still` holds, until it is unparked. It may come back earlier: the caller
/// looks again.
pub(crate) fn park(key: usize, still: impl FnOnce() -> bool, what: impl FnOnce() -> String) {
    let deadline = millpond_sync::clock::now() + REPORT_AFTER;
    if parking::park(key, still, Some(deadline)) == ParkResult::TimedOut {
        let (seconds, what) = (REPORT_AFTER.as_secs(), what());
        contained("the report of a long wait", || {
            tracing::warn!(seconds, "still waiting for {what}");
        });
    }
}
