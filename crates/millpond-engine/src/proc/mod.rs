//! The table of sessions (PostgreSQL's ProcArray): one line per session, through which sessions
//! tell each other their state.
//!
//! The array has `max_sessions` lines, fixed at open, so that reading it takes no lock. A
//! [`ProcHandle`] owns a line from [`ProcArray::register`] until it is dropped.
//!
//! A line has two cache-padded parts. Its session writes the first one all the time, and few
//! threads read it:
//!
//! | field | meaning |
//! |---|---|
//! | snapshot | a commit number not above any snapshot the session holds; 0: it holds none |
//! | xid | the transaction's id; with bit 63, a lower bound of the id to be drawn; 0: none |
//! | in_commit | bit 0: between commit record and status; bit 1: a thread waits; rest: a count |
//! | interrupts | requests to stop, set by others (see [`Interrupt`]) |
//! | transactions | bit 0: one is running; rest: a count, which names it to observers |
//!
//! The second part is for waits and observers: the state of the lock wait, the wait event, the
//! process id, the activity. The running statement has a part of its own ([`statement`]).
//!
//! Invariants and ordering: transam/README.md rules 5 to 8 argue the protocols that use the fields
//! (horizon, oldest running id, commits and checkpoints). A line that is not in use reads as zeros.

pub mod activity;
mod handle;
mod interrupt;
pub mod statement;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use millpond_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use millpond_sync::sync::Mutex;
use millpond_sync::{CachePadded, audit, mutant, parking};

pub use activity::{Activity, ActivityState, WaitEvent};
pub use handle::{ProcHandle, Waiting};
pub use interrupt::{Interrupt, InterruptHandle};
pub use statement::{MAX_SHOWN_TEXT, StatementInfo};

use statement::StatementSlot;

use crate::error::{EngineError, EngineResult};
use crate::ids::{Csn, SessionNo, Xid};

/// The name of an autovacuum session in pg_stat_activity.
pub(crate) const AUTOVACUUM_WORKER: &str = "autovacuum worker";

/// Marks the xid field as a lower bound of the id that is about to be drawn.
const PROVISIONAL: u64 = 1 << 63;

const IN_COMMIT: u64 = 1;
const COMMIT_AWAITED: u64 = 2;
const COMMIT_COUNT: u64 = 4;

/// The part of a line that its session writes on every transaction.
struct Line {
    snapshot: AtomicU64,
    xid: AtomicU64,
    in_commit: AtomicU64,
    interrupts: AtomicU32,
    /// Bit 0: a transaction is running. Above: how many transactions the line has seen.
    transactions: AtomicU64,
}

/// The part of a line for waits and observers.
struct Desk {
    /// State of the session's lock wait (the lock manager defines the values). Its address is the
    /// key on which the session parks.
    lock_wait: AtomicU32,
    /// Another session waits for the running transaction, with a lock on its id in the lock table.
    xid_awaited: AtomicU32,
    wait_event: AtomicU32,
    process_id: AtomicU32,
    /// The number of its session in the buffer pool, plus one; 0: none is known.
    pool_session: AtomicU32,
    activity: Mutex<Option<Activity>>,
}

/// The lines of all sessions.
pub struct ProcArray {
    lines: Box<[CachePadded<Line>]>,
    desks: Box<[CachePadded<Desk>]>,
    statements: Box<[CachePadded<StatementSlot>]>,
    free: Mutex<FreeLines>,
}

struct FreeLines {
    numbers: Vec<u16>,
    /// How often each line has been assigned, to tell its users apart.
    generations: Vec<u64>,
    /// The process id that was assigned last.
    last_process_id: u32,
}

impl ProcArray {
    /// An array for `max_sessions` sessions (at least one).
    pub fn new(max_sessions: u16) -> Arc<Self> {
        let count = max_sessions.max(1);
        let line = || {
            CachePadded::new(Line {
                snapshot: AtomicU64::new(0),
                xid: AtomicU64::new(0),
                in_commit: AtomicU64::new(0),
                interrupts: AtomicU32::new(0),
                transactions: AtomicU64::new(0),
            })
        };
        let desk = || {
            CachePadded::new(Desk {
                lock_wait: AtomicU32::new(0),
                xid_awaited: AtomicU32::new(0),
                wait_event: AtomicU32::new(0),
                process_id: AtomicU32::new(0),
                pool_session: AtomicU32::new(0),
                activity: Mutex::new(None),
            })
        };
        let lines = || (0..count).map(|_| line()).collect();
        let desks = || (0..count).map(|_| desk()).collect();
        let statements = || (0..count).map(|_| StatementSlot::new()).collect();
        Arc::new(ProcArray {
            lines: audit::session_owned("sessions' lines", lines),
            desks: audit::session_owned("sessions' desks", desks),
            statements: audit::session_owned("sessions' statements", statements),
            free: Mutex::new(FreeLines {
                numbers: (0..count).rev().collect(),
                generations: vec![0; count as usize],
                last_process_id: 0,
            }),
        })
    }

    /// The maximum number of sessions.
    pub fn capacity(&self) -> usize {
        self.lines.len()
    }

    /// The number of sessions.
    pub fn in_use(&self) -> usize {
        self.lines.len() - self.free.lock().numbers.len()
    }

    /// Takes a line for a new session. `kind` is its name in pg_stat_activity.
    pub fn register(self: &Arc<Self>, kind: &'static str) -> EngineResult<ProcHandle> {
        let mut free = self.free.lock();
        let number = free.numbers.pop().ok_or(EngineError::TooManySessions)?;
        free.generations[number as usize] += 1;
        let generation = free.generations[number as usize];
        self.lines[number as usize].interrupts.store(0, Ordering::Relaxed);
        // Positive as a signed number, because clients know it as an `int`.
        free.last_process_id = (free.last_process_id % (i32::MAX as u32)) + 1;
        let process_id = free.last_process_id;
        drop(free);
        let no = SessionNo(number);
        let desk = &self.desks[no.index()];
        desk.process_id.store(process_id, Ordering::Relaxed);
        self.statements[no.index()].clear();
        *desk.activity.lock() = Some(Activity::new(kind));
        Ok(ProcHandle::new(self.clone(), no, generation))
    }

    /// Whether the session is an autovacuum worker.
    pub(crate) fn is_autovacuum(&self, no: SessionNo) -> bool {
        let activity = self.desks[no.index()].activity.lock();
        activity.as_ref().is_some_and(|activity| activity.kind == AUTOVACUUM_WORKER)
    }

    /// The smallest commit number that any session publishes, or `ceiling` if none is below it.
    ///
    /// The caller loads `ceiling` from the commit clock before the call (transam rule 5).
    pub(crate) fn oldest_snapshot(&self, ceiling: Csn) -> Csn {
        // Pairs with the fence in `ProcHandle::publish_snapshot`.
        if !mutant!("transam-horizon-without-fence") {
            fence(Ordering::SeqCst);
        }
        let published = self.lines.iter().map(|line| line.snapshot.load(Ordering::Acquire));
        Csn(published.filter(|csn| *csn != 0).fold(ceiling.0, u64::min))
    }

    /// The smallest id of a running transaction, or `ceiling` if none is below it. The caller loads
    /// `ceiling`, the next id to be drawn, with Acquire before the call.
    pub(crate) fn oldest_xid(&self, ceiling: Xid) -> Xid {
        let published =
            self.lines.iter().map(|line| line.xid.load(Ordering::Acquire) & !PROVISIONAL);
        Xid(published.filter(|xid| *xid != 0).fold(ceiling.0, u64::min))
    }

    /// The session that runs transaction `xid`.
    pub(crate) fn session_of(&self, xid: Xid) -> Option<SessionNo> {
        let running = |line: &CachePadded<Line>| line.xid.load(Ordering::Acquire) == xid.0;
        let index = self.lines.iter().position(running)?;
        u16::try_from(index).ok().map(SessionNo)
    }

    /// The session with this process id.
    pub fn session_of_process(&self, process_id: u32) -> Option<SessionNo> {
        // Under this mutex no line changes its owner.
        let free = self.free.lock();
        let found = |(index, desk): (usize, &CachePadded<Desk>)| {
            let number = u16::try_from(index).ok()?;
            let is_its = desk.process_id.load(Ordering::Relaxed) == process_id;
            (is_its && !free.numbers.contains(&number)).then_some(SessionNo(number))
        };
        self.desks.iter().enumerate().find_map(found)
    }

    /// The buffer pool's sessions that belong to sessions here.
    pub(crate) fn pool_sessions(&self) -> Vec<PoolSession> {
        // Under this mutex no line changes its owner.
        let _free = self.free.lock();
        let known = self.desks.iter().filter_map(|desk| {
            let kind = desk.activity.lock().as_ref()?.kind;
            let number = desk.pool_session.load(Ordering::Relaxed).checked_sub(1)? as usize;
            Some(PoolSession { process_id: desk.process_id.load(Ordering::Relaxed), kind, number })
        });
        known.collect()
    }

    /// Whether at least `count` other sessions run transactions that have changed data and are not
    /// waiting for a lock. Those may commit soon (`commit_siblings`).
    pub(crate) fn has_siblings(&self, session: SessionNo, count: usize) -> bool {
        let lines = self.lines.iter().zip(&self.desks).enumerate();
        let at_work = lines.filter(|(index, (line, desk))| {
            let xid = line.xid.load(Ordering::Relaxed);
            let runs = xid != 0 && xid & PROVISIONAL == 0;
            *index != session.index() && runs && desk.lock_wait.load(Ordering::Relaxed) == 0
        });
        at_work.take(count).count() == count
    }

    /// Tells the session that runs a transaction that a lock on its id is in the lock table.
    pub(crate) fn set_xid_awaited(&self, session: SessionNo) {
        self.desks[session.index()].xid_awaited.store(1, Ordering::Relaxed);
        // Pairs with the fence in `ProcHandle::take_xid_awaited`.
        if !mutant!("lock-xid-waiter-without-fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Waits for commits whose records may lie before a redo point that was fixed before the call.
    /// On return, each of them has also set its transaction's status (transam rule 8).
    pub fn wait_for_commits(&self) {
        fence(Ordering::SeqCst);
        for line in &self.lines {
            let word = &line.in_commit;
            let seen = word.load(Ordering::Acquire);
            if seen & IN_COMMIT == 0 || mutant!("transam-checkpoint-without-wait") {
                continue;
            }
            let awaited = seen | COMMIT_AWAITED;
            // If the exchange fails, the commit is over or another waiter has set the bit. The
            // condition of the loop covers both.
            let _ = word.compare_exchange(seen, awaited, Ordering::Relaxed, Ordering::Relaxed);
            let key = std::ptr::from_ref(word).addr();
            while word.load(Ordering::Acquire) == awaited {
                parking::park(key, || word.load(Ordering::Acquire) == awaited, None);
            }
        }
    }

    /// The process id of a session, for messages and views.
    pub fn process_id(&self, session: SessionNo) -> u32 {
        self.desks.get(session.index()).map_or(0, |d| d.process_id.load(Ordering::Relaxed))
    }

    /// The text of the statement that a session runs, as far as it is shown.
    pub fn query(&self, session: SessionNo) -> String {
        let statement = self.statements.get(session.index());
        statement.and_then(|statement| statement.info().query).unwrap_or_default()
    }

    /// The word on which a session parks during a lock wait. Its value is the state of that wait.
    pub(crate) fn lock_wait(&self, session: SessionNo) -> &AtomicU32 {
        &self.desks[session.index()].lock_wait
    }

    /// The state of all sessions.
    pub fn watch(&self) -> Vec<SessionInfo> {
        let mut infos = Vec::new();
        let lines = self.lines.iter().zip(&self.desks).zip(&self.statements);
        for (index, ((line, desk), statement)) in lines.enumerate() {
            let Some(activity) = desk.activity.lock().clone() else { continue };
            let xid = line.xid.load(Ordering::Acquire);
            let snapshot = line.snapshot.load(Ordering::Relaxed);
            let event = desk.wait_event.load(Ordering::Relaxed) as usize;
            let transactions = line.transactions.load(Ordering::Relaxed);
            infos.push(SessionInfo {
                session: SessionNo(index as u16),
                transaction: transactions >> 1,
                in_transaction: transactions & 1 != 0,
                process_id: desk.process_id.load(Ordering::Relaxed),
                xid: (xid != 0 && xid & PROVISIONAL == 0).then_some(Xid(xid)),
                snapshot: (snapshot != 0).then_some(Csn(snapshot)),
                wait_event: WaitEvent::ALL.get(event).copied().unwrap_or_default(),
                activity,
                statement: statement.info(),
            });
        }
        infos
    }
}

/// The owner of a buffer pool session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolSession {
    /// The process id.
    pub(crate) process_id: u32,
    /// Its name in pg_stat_activity.
    pub(crate) kind: &'static str,
    /// Its number in the pool.
    pub(crate) number: usize,
}

/// A session as others see it.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// Its line.
    pub session: SessionNo,
    /// Its process id.
    pub process_id: u32,
    /// The number of its running transaction, or else of its last one, counted per line.
    pub transaction: u64,
    /// Whether it is in a transaction.
    pub in_transaction: bool,
    /// Its transaction's id, once it has changed data.
    pub xid: Option<Xid>,
    /// The oldest snapshot it holds.
    pub snapshot: Option<Csn>,
    /// What it is waiting for.
    pub wait_event: WaitEvent,
    /// User, application, client and the like.
    pub activity: Activity,
    /// The statement that it runs, or ran last.
    pub statement: StatementInfo,
}
