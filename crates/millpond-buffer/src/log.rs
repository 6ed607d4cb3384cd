//! The log, as the pool sees it: it can be flushed up to a position, and may know what forks hold.

use crate::ids::{Lsn, PageId, RelFork};
use std::sync::Arc;

/// Why the log could not be flushed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the log has stopped: {why}")]
#[non_exhaustive]
pub struct LogFlushError {
    /// Why the log has stopped.
    pub why: Arc<str>,
}

impl LogFlushError {
    /// An error with that reason.
    #[must_use]
    pub fn new(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into() }
    }
}

/// The log, as the pool sees it. Before a page is written, the pool flushes the log up to the
/// page's LSN.
///
/// ```
/// # use millpond_buffer::*;
/// # use std::sync::Mutex;
/// /// A log that only counts: `end` is what has been appended, `durable` what has been synced.
/// struct Log(Mutex<(Lsn, Result<Lsn, LogFlushError>)>);
///
/// impl LogFlush for Log {
///     fn flush_to(&self, lsn: Lsn) -> Result<(), LogFlushError> {
///         let mut log = self.0.lock().map_err(|_| LogFlushError::new("a thread panicked"))?;
///         let (end, durable) = &mut *log;
///         if durable.clone()? < lsn {
///             // Write and sync the log here. If that fails, keep the error for all later calls.
///             *durable = Ok(*end);
///         }
///         Ok(())
///     }
///
///     fn flushed(&self) -> Lsn {
///         self.0.lock().map_or(Lsn::ZERO, |log| log.1.clone().unwrap_or(Lsn::ZERO))
///     }
/// }
/// # let log = Log(Mutex::new((Lsn(9), Ok(Lsn::ZERO))));
/// # assert!(log.flush_to(Lsn(9)).is_ok() && log.flushed() == Lsn(9));
/// ```
pub trait LogFlush: Send + Sync + 'static {
    /// Returns once the log is durable up to `lsn`. After the log has stopped, it returns an error
    /// for *every* position, so that the pool writes no page any more.
    fn flush_to(&self, lsn: Lsn) -> Result<(), LogFlushError>;

    /// How far the log is durable. Only a hint: it may lag behind.
    fn flushed(&self) -> Lsn;

    /// How many blocks of a fork have been written to at some time, if the log knows. If the store
    /// has fewer, the fork is damaged. `None`: the log knows nothing about the fork, so any length
    /// is valid.
    fn least_blocks(&self, _: RelFork) -> Option<u32> {
        None
    }

    /// Whether a page of zeros is valid as this page. If not, reading it as zeros is damage. The
    /// pool asks only about pages that it read as zeros. The default is `true`.
    fn may_be_zero(&self, _: PageId) -> bool {
        true
    }

    /// Whether the log is durable up to `lsn`. The pool writes no page ahead of its log. So a page
    /// that is read from the store with a later LSN is damaged. The default is `true`.
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
