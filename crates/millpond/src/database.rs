//! The database: an engine with the settings that it was opened with, and what its connections
//! share.

use std::path::Path;
use std::sync::Arc;

use millpond_buffer::policy::ReplacementPolicy;
use millpond_buffer::{IoMethod, PAGE_SIZE};
use millpond_engine::engine::{AutovacuumConfig, Engine, EngineConfig};
use millpond_engine::timeout::Watchdog;

use crate::connections::Connections;
use crate::shared_plans::SharedPlans;
use millpond_query::error::Result;
use millpond_query::memory::{QueryMemory, default_limit, machine_bytes};
use millpond_query::plan::external::Accelerator;
use millpond_query::query::{Server, Signal};
use millpond_query::scan_threads::ScanThreads;
use millpond_query::settings::{Configuration, Settings, bulk_access_of};
use millpond_query::statistics::Statistics;
use millpond_types::current_timestamp;

/// An open database.
#[derive(Debug)]
pub struct Database {
    configuration: Configuration,
    engine: Arc<Engine>,
    accelerator: Option<Box<dyn Accelerator>>,
    scan_threads: Arc<ScanThreads>,
    statistics: Arc<Statistics>,
    watchdog: Arc<Watchdog>,
    plans: SharedPlans,
    connections: Connections,
    memory: Arc<QueryMemory>,
    /// In microseconds since 2000.
    start_time: i64,
}

impl Database {
    /// Opens the database in a directory, creates it if it is not there, recovers it if it was not
    /// shut down.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Arc<Database>> {
        Self::open_configured(engine_config(path.as_ref(), &settings), settings)
    }

    fn open_configured(config: EngineConfig, mut settings: Settings) -> Result<Arc<Database>> {
        let (query_memory, query_threads) =
            (query_memory_bytes(&settings), query_threads(&settings));
        settings.found("max_shared_buffers", config.max_buffers.max(config.buffers) as u64);
        settings.found("query_memory_limit", query_memory as u64 / 1024);
        settings.found("max_query_threads", query_threads as u64);
        let engine = Engine::open(config)?;
        let memory = QueryMemory::new(query_memory);
        let statistics = Arc::new(Statistics::new(Arc::clone(&engine)));
        Ok(Arc::new(Database {
            accelerator: accelerator(&settings, query_threads),
            scan_threads: ScanThreads::new(niceness(&settings)),
            configuration: Configuration::new(settings),
            engine,
            statistics,
            watchdog: Arc::new(Watchdog::default()),
            plans: SharedPlans::default(),
            connections: Connections::default(),
            memory,
            start_time: current_timestamp(),
        }))
    }

    /// Its settings as they are now.
    pub fn settings(&self) -> Arc<Settings> {
        self.configuration.current()
    }

    /// Where its settings come from, and what they are.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Reads the configuration files again, as SIGHUP and `pg_reload_conf()` have it: see
    /// [`Configuration`]. `false` if nothing could be applied; the server's log has the reason, and
    /// the view `pg_file_settings`.
    pub fn reload_configuration(&self) -> bool {
        let Some(settings) = self.configuration.reload() else { return false };
        self.engine.tune(&engine_config(&self.engine.config().path, &settings));
        true
    }

    /// The engine below.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Writes a checkpoint and closes the files. Statements that are running fail, and so do all
    /// that come later, with 57P01. Dropping the database without this is safe, too: the next start
    /// recovers from the log.
    pub fn shutdown(&self) -> Result<()> {
        self.connections.close();
        Ok(self.engine.shutdown()?)
    }

    /// What has been counted since the start or the last reset.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }

    pub(crate) fn accelerator(&self) -> Option<&dyn Accelerator> {
        self.accelerator.as_deref()
    }

    pub(crate) fn scan_threads(&self) -> &Arc<ScanThreads> {
        &self.scan_threads
    }

    pub(crate) fn watchdog(&self) -> &Arc<Watchdog> {
        &self.watchdog
    }

    /// Bytes of memory that the queries of all sessions hold, of `query_memory_limit`.
    pub fn query_memory_used(&self) -> usize {
        self.memory.used()
    }

    pub(crate) fn memory(&self) -> &Arc<QueryMemory> {
        &self.memory
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    pub(crate) fn plans(&self) -> &SharedPlans {
        &self.plans
    }
}

impl Server for Database {
    fn configuration(&self) -> &Configuration {
        self.configuration()
    }

    fn reload_configuration(&self) -> bool {
        self.reload_configuration()
    }

    fn statistics(&self) -> &Arc<Statistics> {
        self.statistics()
    }

    fn start_time(&self) -> i64 {
        self.start_time
    }

    fn has_backend(&self, process_id: i32) -> bool {
        self.connections.find(process_id).is_some()
    }

    fn signal(&self, process_id: i32, signal: Signal) -> bool {
        let found = self.connections.find(process_id);
        found.is_some_and(|handle| {
            match signal {
                Signal::Cancel => handle.cancel(),
                Signal::Terminate => handle.terminate(),
            }
            true
        })
    }
}

/// The second executor, whose queries have at most `threads` threads together.
#[cfg(feature = "datafusion")]
fn accelerator(settings: &Settings, threads: usize) -> Option<Box<dyn Accelerator>> {
    Some(Box::new(millpond_datafusion::DataFusion::new(niceness(settings), threads)))
}

/// There is none.
#[cfg(not(feature = "datafusion"))]
fn accelerator(_: &Settings, _: usize) -> Option<Box<dyn Accelerator>> {
    None
}

/// By how many steps the priority of threads is lower that read whole tables.
fn niceness(settings: &Settings) -> i32 {
    i32::try_from(settings.int("query_threads_nice")).unwrap_or(0)
}

/// The memory that the process may have, in pages; 0 if it can't be found out.
fn memory_pages() -> usize {
    usize::try_from(machine_bytes() / PAGE_SIZE as u64).unwrap_or(0)
}

/// How much memory `query_memory_limit` gives to queries.
fn query_memory_bytes(settings: &Settings) -> usize {
    let bytes = match settings.bytes("query_memory_limit") {
        0 => default_limit(machine_bytes(), settings.bytes("shared_buffers")),
        bytes => bytes,
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// How many threads queries have (`max_query_threads`).
fn query_threads(settings: &Settings) -> usize {
    let count = |name: &str| usize::try_from(settings.int(name)).unwrap_or(0);
    match count("max_query_threads") {
        0 => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            (2 * count("max_connections")).max(32 * processors)
        }
        threads => threads,
    }
}

/// The engine's configuration from settings.
fn engine_config(path: &Path, settings: &Settings) -> EngineConfig {
    let count = |name: &str| usize::try_from(settings.int(name)).unwrap_or(0);
    let mut config = EngineConfig::new(path);
    config.buffers = count("shared_buffers");
    config.max_buffers = match count("max_shared_buffers") {
        0 => memory_pages() / 4,
        pages => pages,
    };
    config.replacement_policy = match settings.text("replacement_policy") {
        "clock-sweep" => ReplacementPolicy::ClockSweep,
        _ => ReplacementPolicy::Probation,
    };
    let trace_pages = settings.text("trace_pages");
    config.trace_pages = (!trace_pages.is_empty()).then(|| trace_pages.into());
    config.trace_pages_max_bytes = match settings.bytes("trace_pages_max_size") {
        0 => u64::MAX,
        bytes => bytes,
    };
    config.bulk_access = bulk_access_of(|name| settings.int(name), |name| settings.bool(name));
    config.io_method = match settings.text("io_method") {
        "sync" => IoMethod::Sync,
        "worker" => IoMethod::Worker,
        _ => IoMethod::IoUring,
    };
    config.io_workers = count("io_workers");
    config.io_max_concurrency = match count("io_max_concurrency") {
        0 => config.io_max_concurrency,
        writes => writes,
    };
    config.direct_io = settings.text("debug_io_direct") == "data";
    config.max_connections = count("max_connections");
    config.max_parallel_workers = count("max_parallel_workers");
    config.checkpoint_completion_target = settings.real("checkpoint_completion_target");
    config.wal_writer_delay = settings.duration("wal_writer_delay");
    config.wal_writer_flush_after_bytes = settings.bytes("wal_writer_flush_after");
    config.checkpoint_timeout = settings.duration("checkpoint_timeout");
    config.max_wal_bytes = settings.bytes("max_wal_size");
    let wal_buffers = usize::try_from(settings.bytes("wal_buffers")).unwrap_or(16 << 20);
    config.wal_buffer_bytes = wal_buffers.max(64 << 10).next_power_of_two();
    config.deadlock_timeout = settings.duration("deadlock_timeout");
    config.autovacuum = AutovacuumConfig {
        enabled: settings.bool("autovacuum"),
        naptime: settings.duration("autovacuum_naptime"),
        threshold: u32::try_from(settings.int("autovacuum_vacuum_threshold")).unwrap_or(50),
        scale_factor: settings.real("autovacuum_vacuum_scale_factor"),
    };
    config
}

#[cfg(test)]
mod tests {
    use millpond_sim::vfs::{Rates, SimFs};

    use super::*;

    /// A setting is the transaction's that set it, also where it is the last of a text.
    #[test]
    fn a_set_at_the_end_of_a_text_does_not_outlive_a_commit_that_fails() {
        let disk = SimFs::new(1);
        let settings = Settings::default().with("shared_buffers", "8MB").unwrap();
        let settings = settings.with("io_method", "sync").unwrap();
        let mut config = engine_config(Path::new("/data"), &settings);
        config.vfs = disk.mount();
        let database = Database::open_configured(config, settings).unwrap();
        let mut c = database.connect().unwrap();
        c.batch("create table t (a int); set datestyle = 'German'").unwrap();
        disk.set_rates(Rates { write_error: 1.0, ..Rates::default() });
        c.batch("insert into t values (1); set datestyle = 'SQL'").unwrap_err();
        let shown = c.query("select current_setting('datestyle')", &[]).unwrap();
        assert_eq!(shown.rows, [[crate::Value::Text("German, DMY".to_owned())]]);
    }
}
