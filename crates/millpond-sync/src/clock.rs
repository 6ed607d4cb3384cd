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

/// The time that has passed since `begun`.
#[inline]
#[must_use]
pub fn since(begun: Instant) -> Duration {
    now().saturating_duration_since(begun)
}

/// The time since 1970. Zero if the system's clock shows an earlier time.
#[must_use]
#[inline]
pub fn since_1970() -> Duration {
    #[cfg(not(any(loom, shuttle)))]
    if let Some(time) = scheduler::since_1970() {
        return time;
    }
    UNIX_EPOCH.elapsed().unwrap_or_default()
}
