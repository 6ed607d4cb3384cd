//! The settings that a running engine can change.

use std::time::Duration;

use super::EngineConfig;

/// The settings of an engine that [`Engine::tune`](crate::Engine::tune) changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// The longest time between two checkpoints (`checkpoint_timeout`).
    pub checkpoint_timeout: Duration,
    /// About how much log there may be (`max_wal_size`).
    pub max_wal_bytes: u64,
    /// The fraction of the checkpoint interval over which a checkpoint spreads its writes
    /// (`checkpoint_completion_target`).
    pub checkpoint_completion_target: f64,
    /// How soon the log of asynchronous commits is written (`wal_writer_delay`).
    pub wal_writer_delay: Duration,
    /// The number of log bytes after which the log's thread syncs (`wal_writer_flush_after`).
    pub wal_writer_flush_after_bytes: u64,
    /// How tables are vacuumed in the background.
    pub autovacuum: AutovacuumTuning,
}

/// How tables are vacuumed in the background.
#[derive(Clone, Debug, PartialEq)]
pub struct AutovacuumTuning {
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
    /// The settings that a running engine can change.
    pub fn tuning(&self) -> Tuning {
        Tuning {
            checkpoint_timeout: self.checkpoint_timeout,
            max_wal_bytes: self.max_wal_bytes,
            checkpoint_completion_target: self.checkpoint_completion_target,
            wal_writer_delay: self.wal_writer_delay,
            wal_writer_flush_after_bytes: self.wal_writer_flush_after_bytes,
            autovacuum: AutovacuumTuning {
                enabled: self.autovacuum,
                naptime: self.autovacuum_naptime,
                threshold: self.autovacuum_threshold,
                scale_factor: self.autovacuum_scale_factor,
            },
        }
    }
}
