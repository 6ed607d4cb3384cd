//! Time: the system's, or a simulation's ([`scheduler`]).

use std::time::{Duration, Instant, UNIX_EPOCH};

#[cfg(not(any(loom, shuttle)))]
use crate::scheduler;

/// The time now.
#[inline]
#[must_use]
pub fn now() -> Instant {
    #[cfg(not(any(loom, shuttle)))]
    if let Some(now) = scheduler::now() {
        return now;
    }
    Instant::now()
}

/// How long ago that was.
#[inline]
#[must_use]
pub fn since(begun: Instant) -> Duration {
    now().saturating_duration_since(begun)
}

/// The time since 1970, or none if the system's clock says that it is earlier.
#[must_use]
pub fn since_1970() -> Duration {
    #[cfg(not(any(loom, shuttle)))]
    if let Some(time) = scheduler::since_1970() {
        return time;
    }
    UNIX_EPOCH.elapsed().unwrap_or_default()
}
