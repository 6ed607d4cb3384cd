//! Shared by the tests: the lower half of an engine on a simulated disk, and seeds.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millpond_buffer::{
    BufferError, BufferPool, FileStore, FileStoreOptions, IoMethod, Lsn, PoolConfig, Reclaimer,
    Wait,
};
use millpond_engine::maintenance::checkpointer::{Cause, CheckpointParts, Checkpoints};
use millpond_engine::recovery::{Recovering, RedoFiles, RedoParts};
use millpond_engine::transam::{SessionNo, Xid};
use millpond_engine::wal::{Decoded, FileLogStore, Log, LogConfig, Logging, WalError};
use millpond_engine::{EngineConfig, EngineResult};
use millpond_sim::vfs::{Errno, SimFs, VfsFault, When};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// One call fails.
pub const IO_ERROR: VfsFault = VfsFault::Error(Errno::Io, When::Halfway);

/// The power fails during a call.
pub const POWER_LOSS: VfsFault = VfsFault::PowerLoss(When::Halfway);

/// Opens the files of relations and of the log. Pages are written by other threads, too, so that
/// writes are in progress when the power fails.
pub fn stores(
    disk: &SimFs,
    segment_bytes: u64,
) -> EngineResult<(Arc<FileStore>, Arc<FileLogStore>)> {
    let mut options = FileStoreOptions::default();
    options.vfs = disk.mount();
    options.io_method = IoMethod::Worker;
    let pages = FileStore::open_with("/base", options).map_err(BufferError::from)?;
    // This makes the name of the directory above durable, too.
    let log = FileLogStore::open_on(disk.mount(), "/".as_ref(), segment_bytes)
        .map_err(|source| WalError::io("open the log", source))?;
    Ok((Arc::new(pages), Arc::new(log)))
}

/// A system that recovers from a disk and runs until it is abandoned.
pub trait Startable: Sized {
    /// Recovers, and writes the checkpoint at the end of recovery. Sets `log_end` to the end of the
    /// log as soon as that is known, even if a later step fails.
    fn start(disk: &SimFs, log_end: &mut Option<Lsn>) -> EngineResult<Self>;

    /// Drops it as a crash does.
    fn abandon(self);
}

/// The first start, on a disk that does not fail.
pub fn start<M: Startable>(disk: &SimFs) -> M {
    M::start(disk, &mut None).unwrap()
}

/// Starts after a crash. Sometimes the power fails during recovery, too. Returns the end of the log
/// as the first attempt found it: later attempts find records that earlier ones have added.
pub fn recover<M: Startable>(disk: &SimFs, rng: &mut StdRng) -> (M, Lsn) {
    let mut log_end = None;
    for _ in 0..4 {
        if rng.random_bool(0.5) {
            break;
        }
        disk.fail_after(rng.random_range(0..80), POWER_LOSS);
        let mut end = None;
        if let Ok(machine) = M::start(disk, &mut end) {
            machine.abandon();
        }
        log_end = log_end.or(end);
        disk.crash();
    }
    let mut end = None;
    let machine = M::start(disk, &mut end).unwrap();
    (machine, log_end.or(end).unwrap())
}

fn seeds(rounds: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    match number("CRASH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CRASH_ROUNDS").unwrap_or(rounds),
    }
}

/// Runs a test with `rounds` seeds, or with those that the environment asks for.
pub fn for_each_seed(rounds: u64, test: impl Fn(u64, &mut StdRng)) {
    for seed in seeds(rounds) {
        eprintln!("CRASH_SEED={seed}");
        test(seed, &mut StdRng::seed_from_u64(seed));
    }
}

/// A log so small that it wraps often.
pub fn log_config(segment_bytes: u64) -> LogConfig {
    LogConfig {
        segment_bytes,
        buffer_bytes: segment_bytes as usize,
        max_sessions: 4,
        writer_delay: Duration::from_millis(1),
        flush_after_bytes: segment_bytes / 4,
        redo_of: millpond_engine::rmgr::redo_of,
    }
}

/// A thread that keeps frames free as a server's reclaimer does, so that writes are in flight when
/// the power fails. It ends some time after this is dropped: a crash waits for no thread.
pub struct Reclaiming {
    pool: Arc<BufferPool>,
    ending: Arc<AtomicBool>,
}

impl Reclaiming {
    /// For about half of the machines, depending on the number of calls so far.
    pub fn sometimes(disk: &SimFs, pool: &Arc<BufferPool>) -> Option<Self> {
        if disk.calls().is_multiple_of(2) {
            return None;
        }
        let this = Self { pool: Arc::clone(pool), ending: Arc::default() };
        let (pool, ending) = (Arc::clone(pool), Arc::clone(&this.ending));
        std::thread::spawn(move || {
            let reclaim = AssertUnwindSafe(|| reclaim(&pool, &ending));
            // No caller joins this thread, so it reports a failure by an abort.
            catch_unwind(reclaim).unwrap_or_else(|_| std::process::abort())
        });
        Some(this)
    }
}

impl Drop for Reclaiming {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        self.pool.wake_reclaimer();
    }
}

fn reclaim(pool: &Arc<BufferPool>, ending: &AtomicBool) -> Result<(), BufferError> {
    let session = pool.session()?;
    let mut reclaimer = Reclaimer::new(&session);
    while !ending.load(Ordering::SeqCst) {
        reclaimer.wait(|| ending.load(Ordering::SeqCst));
        // The disk may fail: the session that needs a frame gets the error.
        let _ = reclaimer.work();
    }
    Ok(())
}

/// The parts of a database that has no transactions.
struct NoParts;

impl RedoParts for NoParts {
    fn restore(&mut self, _: &[u8]) -> EngineResult<()> {
        Ok(())
    }

    fn redo(&mut self, _: &Decoded<'_>, _: &mut RedoFiles) -> EngineResult<()> {
        Ok(())
    }
}

impl CheckpointParts for NoParts {
    fn wait_for_commits(&mut self) {}

    fn log_statuses(&mut self) -> EngineResult<()> {
        Ok(())
    }

    fn has_committed(&mut self, _: Xid) -> EngineResult<bool> {
        Ok(true)
    }

    fn state(&mut self) -> Vec<u8> {
        b"state".to_vec()
    }
}

pub struct Machine {
    pub log: Arc<Log>,
    pub pool: Arc<BufferPool>,
    pub checkpoints: Arc<Checkpoints>,
    _reclaiming: Option<Reclaiming>,
}

impl Machine {
    /// A machine with so few frames that pages are written and read again all the time.
    pub fn recovered(
        disk: &SimFs,
        segment_bytes: u64,
        frames: usize,
        log_end: &mut Option<Lsn>,
    ) -> EngineResult<Self> {
        let (pages, store) = stores(disk, segment_bytes)?;
        let mut recovering = Recovering::open(store, &*pages, log_config(segment_bytes))?;
        let log = Arc::clone(recovering.log());
        *log_end = Some(log.insert_position());
        let mut config = EngineConfig::new("/data");
        config.max_wal_bytes = 4 * segment_bytes;
        let result = (|| {
            let pool = BufferPool::new(PoolConfig::new(frames, 8), pages, log.clone())?;
            recovering.redo(&pool, &mut NoParts)?;
            let checkpoints =
                Checkpoints::new(recovering, Arc::clone(&pool), Box::new(NoParts), &config)?;
            checkpoints.run(Cause::EndOfRecovery)?;
            let _reclaiming = Reclaiming::sometimes(disk, &pool);
            Ok(Machine { log: log.clone(), pool, checkpoints, _reclaiming })
        })();
        if result.is_err() {
            log.abandon();
        }
        result
    }
}

pub struct One<'a>(pub &'a Log, pub SessionNo);

impl Logging for One<'_> {
    fn log(&self) -> &Log {
        self.0
    }

    fn stripe(&self) -> SessionNo {
        self.1
    }

    fn wait(&self) -> Wait {
        Wait::Allowed
    }
}
