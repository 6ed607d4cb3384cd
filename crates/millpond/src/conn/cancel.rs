//! Cancelling a statement: on request, by its timeout, or because the server goes down.
//!
//! The engine has one flag per session that makes a running statement stop. Why it was raised is kept here, for the
//! error's sake. A timeout is raised by one thread per database that sleeps until the next deadline.
//!
//! A session that is idle in a transaction for too long has no statement that could stop. Its next one fails, and who
//! serves the session is woken to end it. Either the timeout or the next statement ends the idle time, by an exchange
//! of `idle`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use millpond_engine::session::CancelHandle as EngineCancel;
use millpond_sync::prefetch::prefetch;
use parking_lot::{Condvar, Mutex};

use crate::error::{Result, SqlError, SqlState};

const NONE: u8 = 0;
const REQUEST: u8 = 1;
const TIMEOUT: u8 = 2;
/// These two are for good.
const IDLE: u8 = 3;
const TERMINATE: u8 = 4;

#[derive(Debug)]
struct Shared {
    engine: EngineCancel,
    /// Why; relaxed, because the engine's flag orders it: the reason is stored before the flag is raised.
    reason: AtomicU8,
    /// The running statement, 0 between statements, so that a late timeout hits nobody else.
    statement: AtomicU64,
    /// The statement after which the session is idle in a transaction and is watched; else 0.
    idle: AtomicU64,
    /// Whoever is to hear that the session has been idle for too long.
    waker: Mutex<Option<Waker>>,
}

/// Cancels what a connection is doing, from any thread.
#[derive(Debug, Clone)]
pub struct CancelHandle {
    shared: Arc<Shared>,
}

impl CancelHandle {
    pub(super) fn new(engine: EngineCancel) -> Self {
        let shared = Shared {
            engine,
            reason: AtomicU8::new(NONE),
            statement: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            waker: Mutex::default(),
        };
        CancelHandle { shared: Arc::new(shared) }
    }

    /// The running statement, if any, fails soon with 57014.
    pub fn cancel(&self) {
        if self.shared.statement.load(Ordering::Acquire) != 0 {
            self.raise(REQUEST);
        }
    }

    /// The running statement, if any, fails soon with 57P01, and so does every one after it: the server is going down.
    pub fn terminate(&self) {
        self.raise(TERMINATE);
    }

    /// Has `waker` woken when the session has been idle in a transaction for too long.
    pub(super) fn on_idle_timeout(&self, waker: Waker) {
        *self.shared.waker.lock() = Some(waker);
    }

    /// What to tell the client if the session has been idle in a transaction for too long: the session is to end.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<SqlError> {
        (self.shared.reason.load(Ordering::Acquire) == IDLE).then(|| self.error())
    }

    /// The session is idle in a transaction, after this statement.
    pub(super) fn begin_idle(&self, statement: u64) {
        self.shared.idle.store(statement, Ordering::Release);
    }

    /// The session does something again.
    pub(super) fn end_idle(&self) {
        self.shared.idle.store(0, Ordering::Release);
    }

    fn raise(&self, reason: u8) {
        // Termination is not overruled.
        let _ = self.shared.reason.fetch_max(reason, Ordering::AcqRel);
        self.shared.engine.cancel();
    }

    /// Asks for what every statement writes here.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.shared.statement);
    }

    /// A statement begins: what was asked of its predecessor is forgotten. An error if the session is to end.
    pub(super) fn begin(&self, statement: u64) -> Result<()> {
        if self.shared.reason.load(Ordering::Relaxed) != NONE {
            let kept =
                self.shared.reason.fetch_update(Ordering::AcqRel, Ordering::Acquire, |reason| {
                    (reason < IDLE).then_some(NONE)
                });
            if kept.is_err() {
                // The session has just taken the engine's flag down, as for every statement.
                self.shared.engine.cancel();
                return Err(self.error());
            }
        }
        self.shared.statement.store(statement, Ordering::Release);
        Ok(())
    }

    /// An error if the session is to end.
    #[inline]
    pub(super) fn check_end(&self) -> Result<()> {
        match self.shared.reason.load(Ordering::Relaxed) {
            IDLE | TERMINATE => Err(self.error()),
            _ => Ok(()),
        }
    }

    /// The statement has ended.
    pub(super) fn end(&self) {
        self.shared.statement.store(0, Ordering::Release);
    }

    /// Whether somebody has asked the statement to stop.
    pub(crate) fn is_raised(&self) -> bool {
        self.shared.reason.load(Ordering::Relaxed) != NONE
    }

    /// The error for the reason why.
    pub(crate) fn error(&self) -> SqlError {
        match self.shared.reason.load(Ordering::Acquire) {
            TERMINATE => SqlError::fatal(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            ),
            IDLE => SqlError::fatal(
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                "terminating connection due to idle-in-transaction timeout",
            ),
            TIMEOUT => SqlError::new(
                SqlState::QUERY_CANCELED,
                "canceling statement due to statement timeout",
            ),
            _ => SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request"),
        }
    }
}

/// Raises timeouts. One per database; its thread starts with the first timeout.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    deadlines: BTreeMap<(Instant, u64), Deadline>,
    next: u64,
    running: bool,
}

/// What is not to last longer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Watched {
    /// A statement.
    Statement(u64),
    /// Being idle in a transaction after a statement.
    Idle(u64),
}

#[derive(Debug)]
struct Deadline {
    shared: Weak<Shared>,
    watched: Watched,
}

impl Deadline {
    /// The time has passed.
    fn strike(self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let handle = CancelHandle { shared };
        let Shared { statement, idle, waker, .. } = &*handle.shared;
        match self.watched {
            Watched::Statement(number) => {
                if statement.load(Ordering::Acquire) == number {
                    handle.raise(TIMEOUT);
                }
            }
            Watched::Idle(number) => {
                let exchanged =
                    idle.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Acquire);
                if exchanged.is_ok() {
                    handle.raise(IDLE);
                    let waker = waker.lock().clone();
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                }
            }
        }
    }
}

/// A deadline that is being watched; dropping it ends that.
#[derive(Debug)]
pub(super) struct Watch {
    dog: Arc<Watchdog>,
    key: (Instant, u64),
}

impl Watchdog {
    /// Cancels a statement, or ends a session that is idle in a transaction, when a time has passed.
    pub(super) fn watch(
        self: &Arc<Self>,
        handle: &CancelHandle,
        watched: Watched,
        timeout: Duration,
    ) -> Watch {
        let mut queue = self.queue.lock();
        queue.next += 1;
        let key = (Instant::now() + timeout, queue.next);
        let shared = Arc::downgrade(&handle.shared);
        queue.deadlines.insert(key, Deadline { shared, watched });
        if !queue.running {
            let dog = Arc::downgrade(self);
            let started = std::thread::Builder::new()
                .name("millpond-timeout".to_owned())
                .spawn(move || Self::run(&dog));
            queue.running = started.is_ok();
        }
        drop(queue);
        self.changed.notify_one();
        Watch { dog: Arc::clone(self), key }
    }

    fn run(dog: &Weak<Watchdog>) {
        while let Some(dog) = dog.upgrade() {
            let mut queue = dog.queue.lock();
            let now = Instant::now();
            while let Some(entry) = queue.deadlines.first_entry() {
                if entry.key().0 > now {
                    break;
                }
                entry.remove().strike();
            }
            // Wakes up now and then by itself, to see whether the database is still there.
            let longest = now + Duration::from_secs(1);
            let until =
                queue.deadlines.first_key_value().map_or(longest, |(key, _)| key.0.min(longest));
            dog.changed.wait_until(&mut queue, until);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.dog.queue.lock().deadlines.remove(&self.key);
    }
}
