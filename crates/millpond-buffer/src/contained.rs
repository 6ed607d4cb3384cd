//! Panics of code that is not the pool's own, which go no further than where it is called.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does a part of the work, and reports a panic on its way, which stays here; so does one of whoever is told of it. What the work shares with
/// others must not mind being left half-done.
pub(crate) fn contained<R>(at: &str, work: impl FnOnce() -> R) -> Option<R> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        let tell = || tracing::error!("a panic at {at}");
        let _ = catch_unwind(AssertUnwindSafe(tell));
    }
    done
}
