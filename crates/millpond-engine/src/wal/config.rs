//! What a log is opened with.

use std::time::Duration;

use millpond_buffer::Lsn;

/// Sizes and delays of the log.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Bytes of a segment file: a power of two.
    pub segment_bytes: u64,
    /// Bytes of the ring that holds records until they are written; rounded up to a power of two.
    pub buffer_bytes: usize,
    /// How many sessions may insert, numbered from zero.
    pub max_sessions: usize,
    /// How long a commit that does not wait may stay volatile, and how soon after the last record
    /// the log says that it is durable.
    pub writer_delay: Duration,
    /// After how many bytes since the last sync the log's thread syncs, whoever has inserted them. Zero: whenever it
    /// writes, and after every commit that does not wait.
    pub flush_after_bytes: u64,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            buffer_bytes: 16 << 20,
            max_sessions: 512,
            writer_delay: Duration::from_millis(200),
            flush_after_bytes: 1 << 20,
        }
    }
}

/// Where a log begins or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// Where the next record goes: the end of the log that is there.
    pub end: Lsn,
    /// The redo point of the last checkpoint; older segments are not needed.
    pub redo: Lsn,
    /// Which start of the engine this is; larger than that of every record that is there.
    pub start_no: u32,
}
