//! What the pool knows of the log: that it can be flushed up to a position.

use crate::ids::Lsn;
use std::sync::Arc;

/// Why the log could not be flushed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the log has stopped: {why}")]
#[non_exhaustive]
pub struct LogFlushError {
    /// What stopped it.
    pub why: Arc<str>,
}

impl LogFlushError {
    /// With that reason.
    #[must_use]
    pub fn new(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into() }
    }
}

/// The log, as the pool sees it. Before a page is written, the pool flushes the log up to the page's
/// LSN.
pub trait LogFlush: Send + Sync + 'static {
    /// Returns once the log is durable up to `lsn`. After the log has stopped it is an error for
    /// *every* position, so that no page is written any more.
    fn flush_to(&self, lsn: Lsn) -> Result<(), LogFlushError>;

    /// How far the log is durable. Only a hint: it may lag behind.
    fn flushed(&self) -> Lsn;
}

/// No log: everything counts as durable. For pools that need none, and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLog;

impl LogFlush for NoLog {
    fn flush_to(&self, _: Lsn) -> Result<(), LogFlushError> {
        Ok(())
    }

    fn flushed(&self) -> Lsn {
        Lsn::MAX
    }
}
