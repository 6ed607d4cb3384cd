//! Catches panics of code that the pool calls but does not own.

use std::panic::{AssertUnwindSafe, catch_unwind};

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
