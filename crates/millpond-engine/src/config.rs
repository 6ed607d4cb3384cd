//! The settings with which an engine is opened. A name in parentheses is the server's setting.
//!
//! A running engine can change some of them ([`Engine::tune`](crate::Engine::tune)), and a few
//! others by calls of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::IoMethod;
use millpond_buffer::policy::ReplacementPolicy;
use millpond_vfs::{OsVfs, Vfs};

use crate::bulk::BulkAccess;
use crate::transam::{DEFAULT_OLD_STATUSES, DEFAULT_RING_SIZE};

/// The settings of an engine. Start from [`EngineConfig::new`] and change what you need.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineConfig {
    /// The data directory. The engine creates it if it does not exist.
    pub path: PathBuf,
    /// The file system of the directory; by default the operating system's.
    pub vfs: Arc<dyn Vfs>,
    /// Pages in the buffer pool (`shared_buffers`).
    pub buffers: usize,
    /// The largest number of pages that a resize may set (`max_shared_buffers`), if it is above
    /// `buffers`.
    pub max_buffers: usize,
    /// The policy that chooses pages for eviction (`replacement_policy`).
    pub replacement_policy: ReplacementPolicy,
    /// A file in which accesses to pages are recorded (`trace_pages`).
    pub trace_pages: Option<PathBuf>,
    /// The largest size of that file together with its predecessor (`trace_pages_max_size`).
    pub trace_pages_max_bytes: u64,
    /// How bulk work uses the buffer pool, unless a session overrides it.
    pub bulk_access: BulkAccess,
    /// How pages are read ahead and written in the background (`io_method`).
    pub io_method: IoMethod,
    /// The number of I/O threads, if threads do this work (`io_workers`).
    pub io_workers: usize,
    /// How many combined writes a checkpoint or the reclaimer may have in flight
    /// (`io_max_concurrency`).
    pub io_max_concurrency: usize,
    /// Whether relation files bypass the kernel's page cache (`debug_io_direct = data`).
    pub direct_io: bool,
    /// The maximum number of client sessions (`max_connections`). The engine adds sessions for its
    /// own workers.
    pub max_connections: usize,
    /// The maximum number of threads that run parallel scans (`max_parallel_workers`).
    pub max_parallel_workers: usize,
    /// The number of the latest transactions whose statuses are in memory, rounded up to a power of
    /// two.
    pub recent_statuses: usize,
    /// The number of older statuses that stay in memory while a snapshot needs them. Others go to a
    /// file.
    pub old_statuses: usize,
    /// The longest time between two checkpoints (`checkpoint_timeout`).
    pub checkpoint_timeout: Duration,
    /// The number of log bytes after which a checkpoint starts at the latest (`max_wal_size`).
    pub max_wal_bytes: u64,
    /// The fraction of the checkpoint interval over which a checkpoint spreads its writes
    /// (`checkpoint_completion_target`).
    pub checkpoint_completion_target: f64,
    /// The size of a log segment in bytes (`wal_segment_size`); a power of two. It is fixed for the
    /// life of the directory.
    pub wal_segment_bytes: u64,
    /// The size of the log buffer in bytes (`wal_buffers`); a power of two.
    pub wal_buffer_bytes: usize,
    /// How soon the log of asynchronous commits is written (`wal_writer_delay`).
    pub wal_writer_delay: Duration,
    /// The number of log bytes since the last sync after which the log's thread syncs, even if no
    /// session waits (`wal_writer_flush_after`).
    pub wal_writer_flush_after_bytes: u64,
    /// How long a session waits for a lock before it looks for a deadlock (`deadlock_timeout`).
    pub deadlock_timeout: Duration,
    /// How tables are vacuumed in the background.
    pub autovacuum: AutovacuumConfig,
}

/// How tables are vacuumed in the background.
#[derive(Clone, Debug, PartialEq)]
pub struct AutovacuumConfig {
    /// Whether it runs (`autovacuum`).
    pub enabled: bool,
    /// How often autovacuum looks for tables to vacuum (`autovacuum_naptime`).
    pub naptime: Duration,
    /// The number of dead rows that triggers a vacuum (`autovacuum_vacuum_threshold`) ...
    pub threshold: u32,
    /// ... plus this fraction of its rows (`autovacuum_vacuum_scale_factor`).
    pub scale_factor: f64,
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
            recent_statuses: DEFAULT_RING_SIZE,
            old_statuses: DEFAULT_OLD_STATUSES,
            checkpoint_timeout: Duration::from_secs(300),
            max_wal_bytes: 1 << 30,
            checkpoint_completion_target: 0.9,
            wal_segment_bytes: 16 << 20,
            wal_buffer_bytes: 16 << 20,
            wal_writer_delay: Duration::from_millis(200),
            wal_writer_flush_after_bytes: 1 << 20,
            deadlock_timeout: Duration::from_secs(1),
            autovacuum: AutovacuumConfig {
                enabled: true,
                naptime: Duration::from_secs(60),
                threshold: 50,
                scale_factor: 0.2,
            },
        }
    }
}
