//! The settings that a log is opened with.

use std::time::Duration;

use millpond_buffer::Lsn;

use super::own_redo::own_redo_of;
use super::page_edit::RedoOf;

/// Sizes and delays of the log.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Bytes of a segment file: a power of two.
    pub segment_bytes: u64,
    /// Bytes of the ring that holds records until they are written; rounded up to a power of two.
    pub buffer_bytes: usize,
    /// The number of sessions that may insert. They are numbered from zero.
    pub max_sessions: usize,
    /// The longest time that a commit that does not wait stays volatile, and the delay before the
    /// mark of an idle log.
    pub writer_delay: Duration,
    /// The log's thread syncs after this many bytes since the last sync, whichever sessions
    /// inserted them. Zero: it syncs whenever it writes, and after every commit that does not wait.
    pub flush_after_bytes: u64,
    /// The resource managers. By default, only the log's own.
    pub redo_of: RedoOf,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            buffer_bytes: 16 << 20,
            max_sessions: 512,
            writer_delay: Duration::from_millis(200),
            flush_after_bytes: 1 << 20,
            redo_of: own_redo_of,
        }
    }
}

/// Where a log begins or continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// Where the next record goes: the end of the existing log.
    pub end: Lsn,
    /// The log was synced up to here, as its records and the control file say. The bytes after it
    /// may be in the kernel's cache only.
    pub durable: Lsn,
    /// The redo point of the last checkpoint. Older segments are not needed.
    pub redo: Lsn,
    /// The number of this start of the engine: larger than that of every existing record.
    pub start_no: u32,
}
