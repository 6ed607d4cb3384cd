//! The thread that ends what has lasted too long ([`Watchdog`]).
//!
//! Invariant: a deadline strikes under the queue's mutex, and [`DeadlineGuard`] takes that mutex
//! when it is dropped. So after the drop the deadline has struck or never will.
//!
//! Failure: if the thread can't be started, the next `watch` tries again. Until then no timeout
//! strikes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use millpond_sync::clock;
use millpond_sync::sync::{Condvar, Mutex};
use millpond_sync::thread::spawn_named;

use super::cancellation::{Cancellation, Shared, StopReason};

/// The longest sleep of the thread, which then finds out whether it is still needed.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Enforces deadlines. One per database; its thread starts with the first deadline.
#[derive(Default)]
pub struct Watchdog {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    deadlines: BTreeMap<(Instant, u64), Deadline>,
    next: u64,
    is_running: bool,
}

/// What must not last longer than a timeout.
#[derive(Debug, Clone, Copy)]
pub enum Watched {
    /// A statement.
    Statement(u64),
    /// Being idle in a transaction after a statement.
    Idle(u64),
}

struct Deadline {
    shared: Weak<Shared>,
    watched: Watched,
}

impl Deadline {
    /// The time has passed.
    fn strike(self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let session = Cancellation { shared };
        let Shared { statement, idle, .. } = &*session.shared;
        match self.watched {
            Watched::Statement(number) => {
                if statement.load(Ordering::Acquire) == number {
                    session.raise(StopReason::StatementTimeout);
                }
            }
            Watched::Idle(number) => {
                let exchanged =
                    idle.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Acquire);
                if exchanged.is_ok() {
                    session.raise(StopReason::IdleInTransaction);
                    session.wake();
                }
            }
        }
    }
}

/// A deadline that is being watched; dropping it ends that.
pub struct DeadlineGuard {
    dog: Arc<Watchdog>,
    key: (Instant, u64),
}

impl Watchdog {
    /// Stops a statement, or ends a session that is idle in a transaction, when a time has passed.
    pub fn watch(
        self: &Arc<Self>,
        session: &Cancellation,
        watched: Watched,
        timeout: Duration,
    ) -> DeadlineGuard {
        let mut queue = self.queue.lock();
        queue.next += 1;
        let key = (clock::now() + timeout, queue.next);
        let shared = Arc::downgrade(&session.shared);
        queue.deadlines.insert(key, Deadline { shared, watched });
        if !queue.is_running {
            let dog = Arc::downgrade(self);
            let started = spawn_named("millpond-timeout", move || Self::run(&dog));
            queue.is_running = started.is_ok();
        }
        drop(queue);
        self.changed.notify_one();
        DeadlineGuard { dog: Arc::clone(self), key }
    }

    fn run(dog: &Weak<Watchdog>) {
        while let Some(dog) = dog.upgrade() {
            let mut queue = dog.queue.lock();
            let now = clock::now();
            while let Some(entry) = queue.deadlines.first_entry() {
                if entry.key().0 > now {
                    break;
                }
                entry.remove().strike();
            }
            let longest = now + LONGEST_SLEEP;
            let next = queue.deadlines.first_key_value().map(|((at, _), _)| *at);
            drop(dog.changed.wait_until(queue, next.map_or(longest, |at| at.min(longest))));
        }
    }
}

impl Drop for DeadlineGuard {
    fn drop(&mut self) {
        self.dog.queue.lock().deadlines.remove(&self.key);
    }
}

impl std::fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for DeadlineGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeadlineGuard").field("at", &self.key.0).finish_non_exhaustive()
    }
}
