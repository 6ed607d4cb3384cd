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

    /// Has `waker` woken when the session is to end without having a statement that could stop.
    pub(crate) fn on_end(&self, waker: Waker) {
        self.session.on_end(waker);
    }

    /// What to tell the client if the session is to end: another session asked for it, the server
    /// goes down, or it has been idle in a transaction for too long.
    #[must_use]
    pub fn ended(&self) -> Option<SqlError> {
        self.session.reason().filter(|reason| reason.ends_session()).map(error)
    }

    /// A statement begins: what was asked of its predecessor is forgotten. An error if the session
    /// is to end.
    pub(crate) fn begin(&self, statement: u64) -> Result<()> {
        self.session.begin(statement).map_err(error)
    }

    /// An error if the session is to end.
    #[inline]
    pub(crate) fn check_end(&self) -> Result<()> {
        self.ended().map_or(Ok(()), Err)
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
