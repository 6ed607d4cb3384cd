//! What the pool knows of the log: that it can be flushed up to a position, and that it may know what forks hold.

use crate::ids::{Lsn, PageId, RelFork};
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

    /// How many blocks of a fork have been written to at some time, if the log knows. The store has at least this number,
    /// or the fork is damaged. `None`: the log knows nothing about the fork, so any length is right.
    fn least_blocks(&self, _: RelFork) -> Option<u32> {
        None
    }

    /// Whether a page of zeros may be what belongs there. If not, a page that is read as zeros is damage. The pool asks
    /// about such pages only. Unless told otherwise, any page may be.
    fn may_be_zero(&self, _: PageId) -> bool {
        true
    }

    /// Whether the log is durable up to `lsn`. A page that is read from the store with an LSN
    /// beyond is damage, since the pool writes no page ahead of its log. Unless told otherwise, the
    /// log has got there.
    fn has_reached(&self, _: Lsn) -> bool {
        true
    }
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
