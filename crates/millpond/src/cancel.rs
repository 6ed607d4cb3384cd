//! Cancelling a statement: on request, by its timeout, or because the server goes down.
//!
//! The engine keeps why a session has been asked to stop ([`Cancellation`]). This file turns the
//! reason into the error that the client sees.

use std::task::Waker;

use millpond_engine::session::CancelHandle as EngineCancel;
use millpond_engine::timeout::{Cancellation, StopReason};
use millpond_query::cancel::error;

use millpond_query::error::{Result, SqlError};

pub(crate) use millpond_engine::timeout::{DeadlineGuard, Watched};

/// Cancels what a connection is doing, from any thread.
#[derive(Debug, Clone)]
pub struct CancelHandle {
    session: Cancellation,
}

impl CancelHandle {
    pub(crate) fn new(engine: EngineCancel) -> Self {
        CancelHandle { session: Cancellation::new(engine) }
    }

    /// The running statement, if any, fails soon with 57014.
    pub fn cancel(&self) {
        self.session.cancel();
    }

    /// The running statement, if any, fails soon with 57P01, and so does every one after it: the
    /// server is going down.
    pub fn terminate(&self) {
        self.session.terminate();
    }

    /// What the engine knows of the session's timeouts.
    #[inline]
    pub(crate) fn session(&self) -> &Cancellation {
        &self.session
    }

    /// Has `waker` woken when the session has been idle in a transaction for too long.
    pub(crate) fn on_idle_timeout(&self, waker: Waker) {
        self.session.on_idle_timeout(waker);
    }

    /// What to tell the client if the session has been idle in a transaction for too long: the
    /// session is to end.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<SqlError> {
        (self.session.reason() == Some(StopReason::IdleInTransaction)).then(|| self.error())
    }

    /// A statement begins: what was asked of its predecessor is forgotten. An error if the session
    /// is to end.
    pub(crate) fn begin(&self, statement: u64) -> Result<()> {
        self.session.begin(statement).map_err(error)
    }

    /// An error if the session is to end.
    #[inline]
    pub(crate) fn check_end(&self) -> Result<()> {
        match self.session.reason() {
            Some(reason) if reason.ends_session() => Err(error(reason)),
            _ => Ok(()),
        }
    }

    /// Whether the statement has been asked to stop.
    pub(crate) fn is_raised(&self) -> bool {
        self.session.reason().is_some()
    }

    /// The error for the reason why.
    pub(crate) fn error(&self) -> SqlError {
        error(self.session.reason().unwrap_or(StopReason::Request))
    }
}
