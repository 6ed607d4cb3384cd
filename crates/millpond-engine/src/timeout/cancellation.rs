//! Why a session has been asked to stop ([`Cancellation`]).
//!
//! The engine has one flag per session that makes a running statement stop. The reason for it is
//! kept here, for the error's sake.
//!
//! A session that is idle in a transaction for too long has no statement that could stop. Its next
//! one fails, and the thread that serves the session is woken to end it. Either the timeout or the
//! next statement ends the idle time, by an exchange of `idle`.
//!
//! Ordering: the reason is stored before the engine's flag is raised, and that flag orders it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::Waker;

use millpond_sync::prefetch::prefetch;
use millpond_sync::sync::Mutex;

use crate::session::CancelHandle;

/// Why a session has been asked to stop. A later reason overrules an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum StopReason {
    /// A request to cancel the running statement.
    Request = 1,
    /// The statement has lasted longer than `statement_timeout`.
    StatementTimeout = 2,
    /// The session was idle in a transaction for `idle_in_transaction_session_timeout`. It ends.
    IdleInTransaction = 3,
    /// The session ends: shutdown, or `pg_terminate_backend`.
    Terminate = 4,
}

const NONE: u8 = 0;

impl StopReason {
    const ALL: [Self; 4] =
        [Self::Request, Self::StatementTimeout, Self::IdleInTransaction, Self::Terminate];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == number)
    }

    /// Whether it ends the session, not only a statement.
    #[must_use]
    pub fn ends_session(self) -> bool {
        self >= Self::IdleInTransaction
    }
}

pub(super) struct Shared {
    engine: CancelHandle,
    /// Number of the [`StopReason`], or [`NONE`].
    reason: AtomicU8,
    /// The running statement. 0 between statements, so that a late timeout stops no other one.
    pub(super) statement: AtomicU64,
    /// The statement after which the session is idle in a transaction and is watched; else 0.
    pub(super) idle: AtomicU64,
    /// Woken when the session is to end.
    waker: Mutex<Option<Waker>>,
}

/// Stops what a session is doing, from any thread, and keeps the reason.
#[derive(Clone)]
pub struct Cancellation {
    pub(super) shared: Arc<Shared>,
}

impl Cancellation {
    /// The state of the session that `engine` interrupts.
    #[must_use]
    pub fn new(engine: CancelHandle) -> Self {
        let shared = Shared {
            engine,
            reason: AtomicU8::new(NONE),
            statement: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            waker: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Cancels the running statement, if any.
    pub fn cancel(&self) {
        if self.shared.statement.load(Ordering::Acquire) != 0 {
            self.raise(StopReason::Request);
        }
    }

    /// Ends the session: the running statement stops, and no other one begins. A session without
    /// one is woken.
    pub fn terminate(&self) {
        self.raise(StopReason::Terminate);
        self.wake();
    }

    /// Has `waker` woken when the session is to end without having a statement that could stop.
    pub fn on_end(&self, waker: Waker) {
        *self.shared.waker.lock() = Some(waker);
    }

    pub(super) fn wake(&self) {
        // Not under the lock: a waker may do anything.
        let waker = self.shared.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The session is idle in a transaction, after this statement.
    pub fn begin_idle(&self, statement: u64) {
        self.shared.idle.store(statement, Ordering::Release);
    }

    /// The session is no longer idle.
    pub fn end_idle(&self) {
        self.shared.idle.store(0, Ordering::Release);
    }

    pub(super) fn raise(&self, reason: StopReason) {
        // Termination is not overruled.
        let _ = self.shared.reason.fetch_max(reason as u8, Ordering::AcqRel);
        self.shared.engine.cancel();
    }

    /// Prefetches the memory that every statement writes here.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&self.shared.statement);
    }

    /// A statement begins, and a reason to stop its predecessor is forgotten. The caller has just
    /// cleared the engine's flag.
    ///
    /// # Errors
    /// The reason for which the session is to end.
    pub fn begin(&self, statement: u64) -> Result<(), StopReason> {
        let reason = &self.shared.reason;
        if reason.load(Ordering::Relaxed) != NONE {
            let kept = reason.fetch_update(Ordering::AcqRel, Ordering::Acquire, |number| {
                StopReason::of(number).is_none_or(|reason| !reason.ends_session()).then_some(NONE)
            });
            if let Err(number) = kept {
                self.shared.engine.cancel();
                return StopReason::of(number).map_or(Ok(()), Err);
            }
        }
        self.shared.statement.store(statement, Ordering::Release);
        Ok(())
    }

    /// The statement has ended.
    pub fn end(&self) {
        self.shared.statement.store(0, Ordering::Release);
    }

    /// Why the session has been asked to stop, if it has.
    #[inline]
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        match self.shared.reason.load(Ordering::Acquire) {
            NONE => None,
            number => StopReason::of(number),
        }
    }
}

impl std::fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cancellation").field("reason", &self.reason()).finish_non_exhaustive()
    }
}
