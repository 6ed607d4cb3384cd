//! How an engine is set up.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::IoMethod;
use millpond_buffer::policy::ReplacementPolicy;
use millpond_vfs::{OsVfs, Vfs};

use crate::bulk::BulkAccess;

/// The settings of an engine. Start from [`EngineConfig::new`] and change what you need.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineConfig {
    /// The data directory. Created when it is not there.
    pub path: PathBuf,
    /// The file system that has the directory: the kernel's unless told otherwise.
    pub vfs: Arc<dyn Vfs>,
    /// Pages in the buffer pool (`shared_buffers`).
    pub buffers: usize,
    /// Pages that it can be made to have later (`max_shared_buffers`), if that is more.
    pub max_buffers: usize,
    /// Which pages leave the buffer pool (`replacement_policy`).
    pub replacement_policy: ReplacementPolicy,
    /// A file in which accesses to pages are recorded (`trace_pages`).
    pub trace_pages: Option<PathBuf>,
    /// How large it may become, with the older one beside it (`trace_pages_max_size`).
    pub trace_pages_max_bytes: u64,
    /// How bulk work uses the buffer pool, unless a session says otherwise.
    pub bulk_access: BulkAccess,
    /// How pages are read ahead and written behind (`io_method`).
    pub io_method: IoMethod,
    /// How many threads do so, if threads do (`io_workers`).
    pub io_workers: usize,
    /// How many joined writes a checkpoint or the reclaimer may have under way (`io_max_concurrency`).
    pub io_max_concurrency: usize,
    /// Whether the files of relations pass the system's cache by (`debug_io_direct = data`).
    pub direct_io: bool,
    /// Client sessions at a time (`max_connections`); the engine adds what its own workers need.
    pub max_connections: usize,
    /// Threads that scan for sessions at a time (`max_parallel_workers`).
    pub max_parallel_workers: usize,
    /// A checkpoint at least so often (`checkpoint_timeout`).
    pub checkpoint_timeout: Duration,
    /// A checkpoint after so many bytes of log at most (`max_wal_size`).
    pub max_wal_bytes: u64,
    /// The part of the time between checkpoints over which one is spread
    /// (`checkpoint_completion_target`).
    pub checkpoint_completion_target: f64,
    /// Bytes of a file of the log (`wal_segment_size`); a power of two. Fixed for the life of the directory.
    pub wal_segment_bytes: u64,
    /// Bytes of log kept in memory (`wal_buffers`); a power of two.
    pub wal_buffer_bytes: usize,
    /// How soon the log of commits that don't wait is written (`wal_writer_delay`).
    pub wal_writer_delay: Duration,
    /// After how many bytes of log since the last sync the next comes, though nobody waits for it (`wal_writer_flush_after`).
    pub wal_writer_flush_after_bytes: u64,
    /// How long a lock wait lasts before looking for a deadlock (`deadlock_timeout`).
    pub deadlock_timeout: Duration,
    /// Whether tables are vacuumed in the background (`autovacuum`).
    pub autovacuum: bool,
    /// How often to look for tables to vacuum (`autovacuum_naptime`).
    pub autovacuum_naptime: Duration,
    /// Dead rows that a table may have before it is vacuumed (`autovacuum_vacuum_threshold`) ...
    pub autovacuum_threshold: u32,
    /// ... plus this fraction of its rows (`autovacuum_vacuum_scale_factor`).
    pub autovacuum_scale_factor: f64,
}

impl EngineConfig {
    /// PostgreSQL's defaults for a data directory.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            vfs: Arc::new(OsVfs),
            buffers: 16_384,
            max_buffers: 0,
            replacement_policy: ReplacementPolicy::default(),
            trace_pages: None,
            trace_pages_max_bytes: 1 << 30,
            bulk_access: BulkAccess::default(),
            io_method: IoMethod::default(),
            io_workers: 3,
            io_max_concurrency: 16,
            direct_io: false,
            max_connections: 100,
            max_parallel_workers: 8,
            checkpoint_timeout: Duration::from_secs(300),
            max_wal_bytes: 1 << 30,
            checkpoint_completion_target: 0.9,
            wal_segment_bytes: 16 << 20,
            wal_buffer_bytes: 16 << 20,
            wal_writer_delay: Duration::from_millis(200),
            wal_writer_flush_after_bytes: 1 << 20,
            deadlock_timeout: Duration::from_secs(1),
            autovacuum: true,
            autovacuum_naptime: Duration::from_secs(60),
            autovacuum_threshold: 50,
            autovacuum_scale_factor: 0.2,
        }
    }
}
