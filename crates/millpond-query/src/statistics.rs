//! What the server has counted, as its system views show it.
//!
//! The counters themselves only grow. A reset (`pg_stat_reset_shared`) remembers where they were,
//! and what is shown is what has been added since.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use millpond_buffer::trace::TraceStats;
use millpond_buffer::{FrameInfo, IoByContext, PoolStats};
use millpond_engine::engine::{BackendIo, Engine};
use millpond_engine::lmgr::{LockInfo, LockStats};
use millpond_engine::maintenance::checkpointer::CheckpointStats;
use millpond_engine::proc::SessionInfo;
use millpond_engine::wal::LogStats;
use parking_lot::Mutex;

use crate::error::{Result, SqlError, SqlState};

/// The statistics of one server.
#[derive(Debug)]
pub struct Statistics {
    engine: Arc<Engine>,
    marks: Mutex<Marks>,
    /// The same for sessions, by process id: only of those that have been reset.
    backends: Mutex<HashMap<u32, (i64, IoByContext)>>,
}

/// Where the counters were when they were last reset.
#[derive(Debug, Clone)]
struct Marks {
    io: (i64, PoolStats),
    bgwriter: (i64, PoolStats),
    checkpointer: (i64, CheckpointStats),
    lock: (i64, LockStats),
    wal: (i64, LogStats),
    /// The log's part of `io`, with its time.
    log_io: LogStats,
}

/// Counters now, where they were when they were last reset, and when that was.
#[derive(Debug, Clone)]
pub struct Since<T> {
    /// As they are.
    pub now: T,
    /// As they were at the reset.
    pub then: T,
    /// The reset, in microseconds since 1970; `None` if there was none.
    pub reset_us: Option<i64>,
}

impl<T> Since<T> {
    /// The time of a reset and the counters then, and the counters now.
    fn mark((reset_us, then): (i64, T), now: T) -> Self {
        Self { now, then, reset_us: Some(reset_us) }
    }

    /// What one counter has gained.
    pub fn gain(&self, of: impl Fn(&T) -> u64) -> u64 {
        of(&self.now).saturating_sub(of(&self.then))
    }
}

impl Statistics {
    pub fn new(engine: Arc<Engine>) -> Self {
        // What opening and recovery have done counts, as in PostgreSQL.
        let now = clock_us();
        let marks = Marks {
            io: (now, PoolStats::default()),
            bgwriter: (now, PoolStats::default()),
            checkpointer: (now, CheckpointStats::default()),
            lock: (now, LockStats::default()),
            wal: (now, LogStats::default()),
            log_io: LogStats::default(),
        };
        Self { engine, marks: Mutex::new(marks), backends: Mutex::default() }
    }

    /// What every buffer seems to hold.
    pub fn frames(&self) -> Vec<FrameInfo> {
        self.engine.pool().frame_infos().collect()
    }

    /// How many buffers there are.
    pub fn frame_count(&self) -> usize {
        self.engine.pool().frames()
    }

    /// The pool's counters, for `pg_stat_io` and `millpond_stat_replacement`.
    pub fn io(&self) -> Since<PoolStats> {
        let mark = self.marks.lock().io;
        Since::mark(mark, self.engine.pool().stats())
    }

    /// What each session has read and written, since when it began or was reset, and when that was.
    pub fn backend_io(&self) -> Vec<(BackendIo, Since<IoByContext>)> {
        let now = self.engine.backend_io();
        let marks = self.backends.lock();
        let since = |backend: BackendIo| {
            let mark = marks.get(&backend.process_id);
            let then = mark.map(|mark| mark.1).unwrap_or_default();
            let since = Since { now: backend.io, then, reset_us: mark.map(|mark| mark.0) };
            (backend, since)
        };
        now.into_iter().map(since).collect()
    }

    /// Begins to count a session anew, if it is there.
    pub fn reset_backend(&self, pid: i64) {
        let sessions = self.engine.backend_io();
        let mut marks = self.backends.lock();
        // No view asks for a session that has ended.
        marks.retain(|pid, _| sessions.iter().any(|session| session.process_id == *pid));
        if let Some(session) = sessions.iter().find(|session| i64::from(session.process_id) == pid)
        {
            marks.insert(session.process_id, (clock_us(), session.io));
        }
    }

    /// The pool's counters, for `pg_stat_bgwriter`.
    pub fn bgwriter(&self) -> Since<PoolStats> {
        let mark = self.marks.lock().bgwriter;
        Since::mark(mark, self.engine.pool().stats())
    }

    /// The checkpoints.
    pub fn checkpointer(&self) -> Since<CheckpointStats> {
        let mark = self.marks.lock().checkpointer;
        Since::mark(mark, self.engine.checkpoint_stats())
    }

    /// What the lock manager has counted, for `pg_stat_lock`.
    pub fn locks_counted(&self) -> Since<LockStats> {
        let mark = self.marks.lock().lock;
        Since::mark(mark, self.engine.locks().stats())
    }

    /// All locks, held and wanted.
    pub fn locks(&self) -> Vec<LockInfo> {
        self.engine.locks().list()
    }

    /// All sessions of the engine.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.engine.sessions().watch()
    }

    /// The process ids of the sessions for which a session waits.
    pub fn blocking_pids(&self, pid: i64) -> Vec<u32> {
        let pid = u32::try_from(pid).unwrap_or(0);
        self.engine.locks().blocking_processes(pid)
    }

    /// What has been recorded of accesses to pages, if that is done.
    pub fn trace(&self) -> Option<TraceStats> {
        self.engine.trace_stats()
    }

    /// The log, for `pg_stat_wal`.
    pub fn wal(&self) -> Since<LogStats> {
        let mark = self.marks.lock().wal;
        Since::mark(mark, self.engine.log_stats())
    }

    /// The log, for its rows of `pg_stat_io`.
    pub fn log_io(&self) -> Since<LogStats> {
        let mark = {
            let marks = self.marks.lock();
            (marks.io.0, marks.log_io)
        };
        Since::mark(mark, self.engine.log_stats())
    }

    /// Begins to count anew: one group of statistics by PostgreSQL's name for it, or all.
    pub fn reset(&self, target: Option<&str>) -> Result<()> {
        let now = clock_us();
        let wants = |name: &str| target.is_none_or(|target| target == name);
        if let Some(target) = target
            && !["io", "bgwriter", "checkpointer", "lock", "wal"].contains(&target)
        {
            let error = format!("unrecognized reset target: \"{target}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error).hint(
                "Target must be \"bgwriter\", \"checkpointer\", \"io\", \"lock\", or \"wal\".",
            ));
        }
        let mut marks = self.marks.lock();
        if wants("io") {
            marks.io = (now, self.engine.pool().stats());
            marks.log_io = self.engine.log_stats();
        }
        if wants("bgwriter") {
            marks.bgwriter = (now, self.engine.pool().stats());
        }
        if wants("lock") {
            marks.lock = (now, self.engine.locks().stats());
        }
        if wants("checkpointer") {
            marks.checkpointer = (now, self.engine.checkpoint_stats());
        }
        if wants("wal") {
            marks.wal = (now, self.engine.log_stats());
        }
        Ok(())
    }
}

fn clock_us() -> i64 {
    let since = UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
