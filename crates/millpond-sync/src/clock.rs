//! Time: the system's, or a simulation's ([`scheduler`]). Under a model checker time stands still.
//! A shuttle model may let it pass (`pass`), which also ends waits whose deadlines it reaches.

use std::time::{Duration, Instant, UNIX_EPOCH};

#[cfg(not(any(loom, shuttle)))]
use crate::scheduler;

/// The time now.
#[inline]
#[must_use]
pub fn now() -> Instant {
    #[cfg(not(any(loom, shuttle)))]
    {
        scheduler::now().unwrap_or_else(Instant::now)
    }
    #[cfg(any(loom, shuttle))]
    {
        model::now()
    }
}

#[cfg(all(shuttle, not(loom)))]
pub use model::pass;

/// The time of a model: always the same, unless the model lets it pass.
#[cfg(any(loom, shuttle))]
mod model {
    use std::sync::OnceLock;
    use std::time::Instant;

    static BEGINNING: OnceLock<Instant> = OnceLock::new();

    #[cfg(loom)]
    pub(super) fn now() -> Instant {
        *BEGINNING.get_or_init(Instant::now)
    }

    #[cfg(not(loom))]
    mod passing {
        use std::sync::atomic::{AtomicU64, Ordering};
        use std::time::{Duration, Instant};

        shuttle::lazy_static! {
            /// What has passed in this execution, in nanoseconds. Looking is no step of the model.
            static ref PASSED: AtomicU64 = AtomicU64::new(0);
        }

        pub(in super::super) fn now() -> Instant {
            let passed = Duration::from_nanos(PASSED.load(Ordering::Relaxed));
            *super::BEGINNING.get_or_init(Instant::now) + passed
        }

        /// Lets time pass in a model. Threads that are parked until an earlier time continue.
        pub fn pass(time: Duration) {
            crate::parking::let_pass(|| {
                PASSED.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
            });
        }
    }

    #[cfg(not(loom))]
    pub(super) use passing::now;
    #[cfg(not(loom))]
    pub use passing::pass;
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
