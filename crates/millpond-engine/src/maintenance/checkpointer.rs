//! Checkpoints: fuzzy and paced, as in PostgreSQL.
//!
//! A checkpoint moves the point from which recovery would start, while sessions continue:
//!
//! 1. One atomic addition to the log's position begins a new epoch and reserves CHECKPOINT_START.
//!    Its position is the new redo point R. A record behind R carries an image of each page that it
//!    is the first to change.
//! 2. The checkpoint waits until commits whose record may lie before R have set their status. It
//!    also waits for creations and truncations of files in progress (wal rule 16). Then the
//!    transaction manager logs the statuses that it holds in memory. They are behind R, so recovery
//!    finds them.
//! 3. It writes every page that is dirty now. They include the pages changed by a record before R,
//!    unless written since: each was marked dirty before its record existed (wal rule 2).
//! 4. It syncs the files. It logs the table of forks, and makes CHECKPOINT_END durable behind it
//!    (wal rule 17). It writes the control file, which names R.
//! 5. It recycles the log before R.
//!
//! If a step fails, the control file still names the older redo point, and the log behind that
//! still exists. Nothing is lost, and the next attempt begins anew. Only a failed sync is final:
//! the kernel may have forgotten the pages it could not write, and would report nothing at the next
//! sync. So the log stops, and recovery repairs the pages (wal rule 7). The log also stops if the
//! store has stopped by itself, because a write may yet reach a file after newer ones. Then no
//! checkpoint could ever succeed, and the log would only grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millpond_buffer::{
    BackendKind, BufferError, BufferPool, BufferSession, Lsn, StoreError, WriteProgress,
};
use millpond_sync::sync::{Condvar, Mutex};
use millpond_sync::thread::{NamedThread, spawn_named};
use millpond_sync::{clock, mutant};

use super::checkpoint_stats::{Counters, add_ms};
use super::schedule::Schedule;
use crate::config::EngineConfig;
use crate::control::{Control, ControlFile, STATE_BYTES};
use crate::error::{EngineError, EngineResult};
use crate::recovery::Recovering;
use crate::transam::Xid;
use crate::wal::storage::{log_forks, settle_files};
use crate::wal::{Log, Record, RmgrId, WalError, info};

pub use super::checkpoint_stats::CheckpointStats;

/// What a checkpoint asks of the parts whose state is not in pages.
pub trait CheckpointParts: Send {
    /// Returns once each commit whose record may precede the call has set its status.
    fn wait_for_commits(&mut self);

    /// Logs the statuses that are only in memory, on pages of the status relation.
    fn log_statuses(&mut self) -> EngineResult<()>;

    /// Whether the transaction that has created a fork has committed. If not, it may still commit.
    fn has_committed(&mut self, xid: Xid) -> EngineResult<bool>;

    /// What recovery needs apart from pages and later records (next ids). At most [`STATE_BYTES`].
    fn state(&mut self) -> Vec<u8>;
}

/// Why a checkpoint is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is due by time. Spread over a while; skipped if nothing happened.
    Scheduled,
    /// A caller asks for one. Made at once.
    Requested,
    /// The engine has just recovered.
    EndOfRecovery,
    /// The last one: nothing changes any more.
    Shutdown,
    /// There is much log. Spread over a while, too.
    LogGrowth,
}

impl Cause {
    /// Whether no caller waits for it, so that its writes are spread.
    fn is_spread(self) -> bool {
        matches!(self, Self::Scheduled | Self::LogGrowth)
    }
}

/// Makes checkpoints, one at a time, for any caller.
pub struct Checkpoints {
    log: Arc<Log>,
    pool: Arc<BufferPool>,
    schedule: Mutex<Schedule>,
    work: Mutex<Work>,
    /// The number of callers that wait for `work` and want a checkpoint at once. While there are
    /// any, the checkpoint in progress does not pace itself.
    hurry: AtomicUsize,
    redo: AtomicU64,
    counters: Counters,
    signals: Mutex<Signals>,
    signalled: Condvar,
    thread: Mutex<Option<NamedThread<()>>>,
}

struct Work {
    control: ControlFile,
    session: BufferSession,
    parts: Box<dyn CheckpointParts>,
    /// Where the log ended after the last checkpoint.
    last_end: Lsn,
}

#[derive(Default)]
struct Signals {
    /// Where the log ended when it wanted a checkpoint, or [`Lsn::MAX`]: it cannot grow.
    wanted: Option<Lsn>,
    ending: bool,
    /// The time between two checkpoints has been changed.
    tuned: bool,
}

impl Checkpoints {
    /// Changes when checkpoints are made automatically.
    pub(crate) fn tune(&self, config: &EngineConfig) {
        *self.schedule.lock() = Schedule::of(config);
        self.signals.lock().tuned = true;
        self.signalled.notify_all();
    }

    fn timeout(&self) -> Duration {
        self.schedule.lock().timeout
    }

    /// Takes over from recovery.
    pub fn new(
        recovering: Recovering,
        pool: Arc<BufferPool>,
        parts: Box<dyn CheckpointParts>,
        config: &EngineConfig,
    ) -> EngineResult<Arc<Self>> {
        let session = pool.session()?;
        session.set_backend_kind(BackendKind::Checkpointer);
        session.set_io_timing(config.bulk_access.io_timing);
        let (log, control) = recovering.into_parts();
        let redo = AtomicU64::new(control.current().redo.get());
        Ok(Arc::new(Self {
            log,
            pool,
            schedule: Mutex::new(Schedule::of(config)),
            work: Mutex::new(Work { control, session, parts, last_end: Lsn::ZERO }),
            hurry: AtomicUsize::new(0),
            redo,
            counters: Counters::default(),
            signals: Mutex::default(),
            signalled: Condvar::new(),
            thread: Mutex::default(),
        }))
    }

    /// The redo point of the last complete checkpoint.
    pub fn redo_point(&self) -> Lsn {
        Lsn(self.redo.load(Ordering::Relaxed))
    }

    /// What the control file says now.
    pub fn control(&self) -> Control {
        self.work.lock().control.current().clone()
    }

    /// Statistics for the views.
    pub fn stats(&self) -> CheckpointStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CheckpointStats {
            scheduled: load(&self.counters.scheduled),
            requested: load(&self.counters.requested),
            pages_written: load(&self.counters.pages_written),
            write_ms: load(&self.counters.write_ms),
            sync_ms: load(&self.counters.sync_ms),
        }
    }

    /// Makes a checkpoint and returns when it is complete. Hurries a spread one in progress.
    pub fn run(&self, cause: Cause) -> EngineResult<()> {
        let mut work = if cause.is_spread() {
            self.work.lock()
        } else {
            self.hurry.fetch_add(1, Ordering::Relaxed);
            self.signalled.notify_all();
            let work = self.work.lock();
            self.hurry.fetch_sub(1, Ordering::Relaxed);
            work
        };
        if cause.is_spread() && self.log.is_idle_since(work.last_end) {
            return Ok(());
        }
        let begun = clock::now();
        let result = self.checkpoint(&mut work, cause, begun);
        match &result {
            Ok(pages) => {
                tracing::info!(?cause, pages, ms = clock::since(begun).as_millis(), "checkpoint");
                let scheduled = cause == Cause::Scheduled;
                let counter =
                    if scheduled { &self.counters.scheduled } else { &self.counters.requested };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => tracing::error!(?cause, %error, "checkpoint failed"),
        }
        result.map(|_| ())
    }

    fn checkpoint(&self, work: &mut Work, cause: Cause, begun: Instant) -> EngineResult<usize> {
        let stripe = self.log.maintenance_stripe();
        let redo = self.log.begin_checkpoint(stripe, &[cause as u8])?.start;
        // Commits before the redo point may wait for a leader that pauses.
        self.log.hurry(redo);
        work.parts.wait_for_commits();
        settle_files(&self.log, stripe, &self.pool)?;
        work.parts.log_statuses()?;
        let state = work.parts.state();
        if state.len() > STATE_BYTES {
            return Err(EngineError::Internal { what: "too much state for the control file" });
        }
        let pages = self.write_pages(&work.session, cause, begun, redo)?;
        self.sync_pages()?;

        self.log.forks().settle_makers(|xid| work.parts.has_committed(xid))?;
        let payload = log_forks(&self.log, stripe, redo)?.encode();
        let end = Record::new(Xid::INVALID, RmgrId::Log, info::CHECKPOINT_END, &payload);
        let end = self.log.insert(stripe, &end)?.end;
        self.log.flush(end)?;
        if mutant!("wal-forget-before-control-file") {
            self.log.retire(redo, self.trigger_bytes());
        }
        let checkpoint_time = clock::since_1970().as_secs();
        work.control.write(Control {
            clean: cause == Cause::Shutdown,
            redo,
            checkpoint_end: end,
            checkpoint_time,
            state,
            ..work.control.current().clone()
        })?;
        work.last_end = end;
        self.redo.store(redo.get(), Ordering::Relaxed);
        self.log.retire(redo, self.trigger_bytes());
        Ok(pages)
    }

    fn write_pages(
        &self,
        session: &BufferSession,
        cause: Cause,
        begun: Instant,
        redo: Lsn,
    ) -> EngineResult<usize> {
        let written = self.pool.write_dirty(session, |progress| {
            if cause.is_spread() {
                self.pace(progress, begun, redo);
            }
        });
        if let Err(BufferError::Store(StoreError::Stopped { why })) = &written {
            self.log.stop(&format!("no page can be written any more: {why}"));
        }
        let pages = written?;
        self.counters.pages_written.fetch_add(pages as u64, Ordering::Relaxed);
        add_ms(&self.counters.write_ms, begun);
        Ok(pages)
    }

    fn sync_pages(&self) -> EngineResult<()> {
        let begun = clock::now();
        if let Err(error) = self.pool.sync() {
            self.log.stop(&format!("could not sync the data files: {error}"));
            return Err(error.into());
        }
        add_ms(&self.counters.sync_ms, begun);
        Ok(())
    }

    /// Sleeps while the checkpoint is ahead of its schedule, by time and by the log's growth.
    fn pace(&self, progress: WriteProgress, begun: Instant, redo: Lsn) {
        let done = progress.done as f64 / progress.total.max(1) as f64;
        let schedule = *self.schedule.lock();
        loop {
            let grown = self.log.insert_position().get().saturating_sub(redo.get());
            let is_ahead = schedule.is_ahead(done, clock::since(begun), grown);
            let in_hurry = self.hurry.load(Ordering::Relaxed) > 0;
            if in_hurry || !is_ahead || self.log.is_stopped().is_some() {
                return;
            }
            let signals = self.signals.lock();
            if signals.ending {
                return;
            }
            drop(self.signalled.wait_for(signals, Duration::from_millis(100)));
        }
    }

    fn trigger_bytes(&self) -> u64 {
        self.schedule.lock().trigger_bytes
    }

    /// Whether there is enough log before `position` for a checkpoint.
    fn is_much_log(&self, position: Lsn) -> bool {
        position.get().saturating_sub(self.redo_point().get()) >= self.trigger_bytes()
    }

    /// The log has grown to `position`. May ask the thread for a checkpoint; does not wait.
    fn hear_of_growth(&self, position: Lsn) {
        if self.is_much_log(position) {
            let mut signals = self.signals.lock();
            signals.wanted = signals.wanted.max(Some(position));
            self.signalled.notify_all();
        }
    }

    /// Starts the thread that makes the spread checkpoints.
    pub fn start(self: &Arc<Self>) -> EngineResult<()> {
        let for_growth = Arc::downgrade(self);
        self.log.on_growth(move |position| {
            if let Some(this) = for_growth.upgrade() {
                this.hear_of_growth(position);
            }
        });
        let this = Arc::clone(self);
        let thread = spawn_named("millpond-checkpoint", move || this.work_until_end())
            .map_err(|source| WalError::io("could not start the checkpointer's thread", source))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    fn work_until_end(&self) {
        // After a failure, wait this long: not every filled segment is a reason to try again.
        const RETRY: Duration = Duration::from_secs(5);
        let mut next = clock::now() + self.timeout();
        let mut not_before = clock::now();
        let mut wanted;
        loop {
            let cause = {
                let mut signals = self.signals.lock();
                while !signals.ending && signals.wanted.is_none() && clock::now() < next {
                    signals = self.signalled.wait_until(signals, next);
                    if std::mem::take(&mut signals.tuned) {
                        // A longer time takes effect after the next checkpoint.
                        next = next.min(clock::now() + self.timeout());
                    }
                }
                while !signals.ending && clock::now() < not_before {
                    signals = self.signalled.wait_until(signals, not_before);
                }
                if signals.ending {
                    return;
                }
                wanted = signals.wanted.take();
                match wanted {
                    Some(position) if self.is_much_log(position) => Cause::LogGrowth,
                    // A checkpoint that was in progress has met the request.
                    Some(_) if clock::now() < next => continue,
                    _ => Cause::Scheduled,
                }
            };
            match self.run(cause) {
                Ok(()) => next = clock::now() + self.timeout(),
                Err(_) => {
                    not_before = clock::now() + RETRY;
                    next = not_before.max(clock::now() + self.timeout().min(RETRY));
                    let mut signals = self.signals.lock();
                    signals.wanted = signals.wanted.max(wanted);
                }
            }
            if self.log.is_stopped().is_some() {
                return;
            }
        }
    }

    /// Ends the thread. The caller makes the last checkpoint ([`Cause::Shutdown`]) afterwards.
    pub fn stop(&self) {
        self.signals.lock().ending = true;
        self.signalled.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}
