//! One line per session: what a session tells the others, and what they tell it.
//!
//! The array has `max_sessions` lines, fixed at open, so that nobody ever takes a lock to look at it. A
//! [`ProcHandle`] owns a line from [`ProcArray::register`] until it is dropped.
//!
//! A line is two cache-padded parts. The first is written by its session all the time and read by few:
//!
//! | field | meaning |
//! |---|---|
//! | snapshot | a commit number not above any snapshot the session holds; 0: it holds none |
//! | xid | the running transaction's id; with bit 63, a lower bound of the id about to be drawn; 0: none |
//! | in_commit | bit 0: between commit record and status; bit 1: someone waits for its end; rest: a count |
//! | interrupts | requests to stop, set by others (see [`Interrupt`]) |
//!
//! The second is for waiting and for watchers: the lock wait's state, the wait event, the process id, the
//! activity.
//!
//! Invariants and ordering: the protocols that use the fields (horizon, oldest running id, commits
//! and checkpoints) are argued in transam/README.md rules 5 to 8. A line that is not in use reads as zeros.

pub mod activity;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;

use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use millpond_sync::parking;
use millpond_sync::sync::Mutex;
use smallvec::SmallVec;

pub use activity::{Activity, ActivityState, WaitEvent};

use crate::error::{EngineError, EngineResult};
use crate::lmgr::LocalLocks;
use crate::transam::{Csn, SessionNo, Xid};

/// Marks the xid field as a lower bound of the id that is about to be drawn.
const PROVISIONAL: u64 = 1 << 63;

const IN_COMMIT: u64 = 1;
const COMMIT_AWAITED: u64 = 2;
const COMMIT_COUNT: u64 = 4;

/// A request to a session to stop what it is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupt {
    /// A cancel request.
    Cancel,
    /// `statement_timeout`.
    StatementTimeout,
    /// The session shall end: shutdown, or `pg_terminate_backend`.
    Terminate,
    /// `idle_in_transaction_session_timeout` and its kin: the session shall end.
    IdleTimeout,
}

impl Interrupt {
    /// Those that end the session come first.
    const BY_WEIGHT: [Interrupt; 4] = [
        Interrupt::Terminate,
        Interrupt::IdleTimeout,
        Interrupt::StatementTimeout,
        Interrupt::Cancel,
    ];

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The part of a line that its session writes on every transaction.
struct Line {
    snapshot: AtomicU64,
    xid: AtomicU64,
    in_commit: AtomicU64,
    interrupts: AtomicU32,
}

/// The part of a line for waits and watchers.
struct Desk {
    /// State of the session's one lock wait (values are the lock manager's); its address is the key on
    /// which the session parks.
    lock_wait: AtomicU32,
    /// Somebody has a lock on the running transaction's id in the table, because he waits for it.
    xid_awaited: AtomicU32,
    wait_event: AtomicU32,
    process_id: AtomicU32,
    waker: Mutex<Option<Waker>>,
    activity: Mutex<Option<Activity>>,
}

/// The lines of all sessions.
pub struct ProcArray {
    lines: Box<[CachePadded<Line>]>,
    desks: Box<[CachePadded<Desk>]>,
    free: Mutex<FreeLines>,
}

struct FreeLines {
    numbers: Vec<u16>,
    /// How often each line has been given out, to tell its users apart.
    generations: Vec<u64>,
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
            })
        };
        let desk = || {
            CachePadded::new(Desk {
                lock_wait: AtomicU32::new(0),
                xid_awaited: AtomicU32::new(0),
                wait_event: AtomicU32::new(0),
                process_id: AtomicU32::new(0),
                waker: Mutex::new(None),
                activity: Mutex::new(None),
            })
        };
        Arc::new(ProcArray {
            lines: (0..count).map(|_| line()).collect(),
            desks: (0..count).map(|_| desk()).collect(),
            free: Mutex::new(FreeLines {
                numbers: (0..count).rev().collect(),
                generations: vec![0; count as usize],
            }),
        })
    }

    /// How many sessions there can be.
    pub fn capacity(&self) -> usize {
        self.lines.len()
    }

    /// How many sessions there are.
    pub fn in_use(&self) -> usize {
        self.lines.len() - self.free.lock().numbers.len()
    }

    /// Takes a line for a new session. `kind` is what pg_stat_activity calls it.
    pub fn register(self: &Arc<Self>, kind: &'static str) -> EngineResult<ProcHandle> {
        let mut free = self.free.lock();
        let number = free.numbers.pop().ok_or(EngineError::TooManySessions)?;
        free.generations[number as usize] += 1;
        let generation = free.generations[number as usize];
        self.lines[number as usize].interrupts.store(0, Ordering::Relaxed);
        drop(free);
        let no = SessionNo(number);
        let desk = &self.desks[no.index()];
        desk.process_id.store(u32::from(number) + 1, Ordering::Relaxed);
        *desk.activity.lock() = Some(Activity::new(kind));
        Ok(ProcHandle {
            array: self.clone(),
            no,
            generation,
            held: RefCell::default(),
            locks: RefCell::default(),
        })
    }

    /// The smallest commit number that any session publishes; `ceiling` if none is below it.
    ///
    /// `ceiling` must have been loaded from the commit clock before the call (transam rule 5).
    pub(crate) fn oldest_snapshot(&self, ceiling: Csn) -> Csn {
        // Pairs with the fence in `ProcHandle::publish_snapshot`.
        fence(Ordering::SeqCst);
        let published = self.lines.iter().map(|line| line.snapshot.load(Ordering::Acquire));
        Csn(published.filter(|csn| *csn != 0).fold(ceiling.0, u64::min))
    }

    /// The smallest id of a running transaction; `ceiling`, the next id to be drawn as loaded (Acquire) before the
    /// call, if there is none below it.
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

    /// Tells the runner of a transaction that somebody has put a lock on its id into the table.
    pub(crate) fn set_xid_awaited(&self, session: SessionNo) {
        self.desks[session.index()].xid_awaited.store(1, Ordering::Relaxed);
        // Pairs with the fence in `ProcHandle::take_xid_awaited`.
        fence(Ordering::SeqCst);
    }

    /// Waits until every commit whose record may lie before a redo point that was fixed before the call has
    /// also set its transaction's status (transam rule 8).
    pub fn wait_for_commits(&self) {
        fence(Ordering::SeqCst);
        for line in &self.lines {
            let word = &line.in_commit;
            let seen = word.load(Ordering::Acquire);
            if seen & IN_COMMIT == 0 {
                continue;
            }
            let awaited = seen | COMMIT_AWAITED;
            // If the exchange fails, the commit is over or somebody else has set the bit; both show in
            // the loop's condition.
            let _ = word.compare_exchange(seen, awaited, Ordering::Relaxed, Ordering::Relaxed);
            let key = std::ptr::from_ref(word).addr();
            while word.load(Ordering::Acquire) == awaited {
                parking::park(key, || word.load(Ordering::Acquire) == awaited, None);
            }
        }
    }

    /// The process id that stands for a session in messages and views.
    pub fn process_id(&self, session: SessionNo) -> u32 {
        self.desks.get(session.index()).map_or(0, |d| d.process_id.load(Ordering::Relaxed))
    }

    /// The word on which a session parks during a lock wait, and whose value is that wait's state.
    pub(crate) fn lock_wait(&self, session: SessionNo) -> &AtomicU32 {
        &self.desks[session.index()].lock_wait
    }

    /// What all sessions are doing.
    pub fn watch(&self) -> Vec<SessionInfo> {
        let mut infos = Vec::new();
        for (index, (line, desk)) in self.lines.iter().zip(&self.desks).enumerate() {
            let Some(activity) = desk.activity.lock().clone() else { continue };
            let xid = line.xid.load(Ordering::Acquire);
            let snapshot = line.snapshot.load(Ordering::Relaxed);
            let event = desk.wait_event.load(Ordering::Relaxed) as usize;
            infos.push(SessionInfo {
                session: SessionNo(index as u16),
                process_id: desk.process_id.load(Ordering::Relaxed),
                xid: (xid != 0 && xid & PROVISIONAL == 0).then_some(Xid(xid)),
                snapshot: (snapshot != 0).then_some(Csn(snapshot)),
                wait_event: WaitEvent::ALL.get(event).copied().unwrap_or_default(),
                activity,
            });
        }
        infos
    }

    /// Interrupts every session of that process id; returns whether there was one.
    pub fn interrupt_process(&self, process_id: u32, interrupt: Interrupt) -> bool {
        // Under this mutex no line changes its owner.
        let free = self.free.lock();
        let mut found = false;
        for (index, desk) in self.desks.iter().enumerate() {
            if desk.process_id.load(Ordering::Relaxed) == process_id
                && !free.numbers.contains(&(index as u16))
            {
                self.interrupt_line(index, interrupt);
                found = true;
            }
        }
        found
    }

    /// Interrupts every session, as for a shutdown.
    pub fn interrupt_all(&self, interrupt: Interrupt) {
        for index in 0..self.lines.len() {
            self.interrupt_line(index, interrupt);
        }
    }

    fn interrupt_line(&self, index: usize, interrupt: Interrupt) {
        self.lines[index].interrupts.fetch_or(interrupt.bit(), Ordering::SeqCst);
        let desk = &self.desks[index];
        parking::unpark_all(std::ptr::from_ref(&desk.lock_wait).addr());
        let waker = desk.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A session as others see it.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// Its line.
    pub session: SessionNo,
    /// Its process id.
    pub process_id: u32,
    /// Its transaction, once that has changed something.
    pub xid: Option<Xid>,
    /// The oldest snapshot it holds.
    pub snapshot: Option<Csn>,
    /// What it is waiting for.
    pub wait_event: WaitEvent,
    /// The rest.
    pub activity: Activity,
}

/// Lets another thread interrupt one session, and only that one: after the session has ended it does
/// nothing, even if the line has a new owner.
#[derive(Clone)]
pub struct InterruptHandle {
    array: Arc<ProcArray>,
    no: SessionNo,
    generation: u64,
}

impl InterruptHandle {
    /// Asks the session to stop; wakes it if it is parked for a lock.
    pub fn interrupt(&self, interrupt: Interrupt) {
        // The mutex keeps the line with its owner until the request is in.
        let free = self.array.free.lock();
        let index = self.no.index();
        if free.generations[index] == self.generation && !free.numbers.contains(&self.no.0) {
            self.array.interrupt_line(index, interrupt);
        }
    }
}

/// A session's own line. One thread at a time uses it.
pub struct ProcHandle {
    array: Arc<ProcArray>,
    no: SessionNo,
    generation: u64,
    /// Snapshots held: the published number is not above any of them.
    held: RefCell<SmallVec<[Csn; 4]>>,
    /// The session's own record of its locks.
    locks: RefCell<LocalLocks>,
}

impl ProcHandle {
    /// The session's number.
    #[inline]
    pub fn no(&self) -> SessionNo {
        self.no
    }

    /// The array.
    pub fn array(&self) -> &Arc<ProcArray> {
        &self.array
    }

    /// The session's own record of its locks, for the lock manager.
    pub(crate) fn local_locks(&self) -> &RefCell<LocalLocks> {
        &self.locks
    }

    fn line(&self) -> &Line {
        &self.array.lines[self.no.index()]
    }

    fn desk(&self) -> &Desk {
        &self.array.desks[self.no.index()]
    }

    /// Takes a snapshot: publishes a lower bound, then loads the number that counts (transam rule 5).
    ///
    /// `load` loads the commit clock with Acquire.
    pub(crate) fn publish_snapshot(&self, load: impl Fn() -> Csn) -> Csn {
        let mut held = self.held.borrow_mut();
        if held.is_empty() {
            self.line().snapshot.store(load().0, Ordering::Relaxed);
            // Either a horizon's scan that comes later sees the line, or the load below sees everything that
            // the scan's ceiling saw.
            fence(Ordering::SeqCst);
        }
        let csn = load();
        held.push(csn);
        csn
    }

    /// Gives one of the held snapshots back.
    pub(crate) fn withdraw_snapshot(&self, csn: Csn) {
        let mut held = self.held.borrow_mut();
        if let Some(index) = held.iter().position(|h| *h == csn) {
            held.swap_remove(index);
        }
        let oldest = held.iter().min().copied().unwrap_or(Csn::INVALID);
        // Release: what was read under the snapshot is read before vacuum may take it away.
        self.line().snapshot.store(oldest.0, Ordering::Release);
    }

    /// Gives back all snapshots.
    pub(crate) fn withdraw_all_snapshots(&self) {
        self.held.borrow_mut().clear();
        self.line().snapshot.store(0, Ordering::Release);
    }

    /// The oldest snapshot the session holds.
    pub fn oldest_held(&self) -> Option<Csn> {
        self.held.borrow().iter().min().copied()
    }

    /// Announces that an id of at least `floor` is about to be drawn: by a read-modify-write with Release, which
    /// publishes this store to whoever loads a later id (transam rule 6).
    pub(crate) fn announce_xid(&self, floor: Xid) {
        self.line().xid.store(floor.0 | PROVISIONAL, Ordering::Relaxed);
    }

    /// Publishes the running transaction's id, or that there is none.
    pub(crate) fn publish_xid(&self, xid: Option<Xid>) {
        self.line().xid.store(xid.map_or(0, |x| x.0), Ordering::Release);
    }

    /// The running transaction's id, once it has drawn one.
    #[inline]
    pub fn xid(&self) -> Option<Xid> {
        let xid = self.line().xid.load(Ordering::Relaxed);
        (xid != 0 && xid & PROVISIONAL == 0).then_some(Xid(xid))
    }

    /// Marks the time from before the commit record until after the status (transam rule 8).
    pub(crate) fn enter_commit(&self) {
        let word = &self.line().in_commit;
        let idle = word.load(Ordering::Relaxed);
        debug_assert_eq!(idle & IN_COMMIT, 0, "a session commits one transaction at a time");
        word.store(idle | IN_COMMIT, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends the time that [`enter_commit`](Self::enter_commit) began, if it did.
    pub(crate) fn leave_commit(&self) {
        let word = &self.line().in_commit;
        let now = word.load(Ordering::Relaxed);
        if now & IN_COMMIT == 0 {
            return;
        }
        let next = (now & !(IN_COMMIT | COMMIT_AWAITED)).wrapping_add(COMMIT_COUNT);
        if word.swap(next, Ordering::AcqRel) & COMMIT_AWAITED != 0 {
            parking::unpark_all(std::ptr::from_ref(word).addr());
        }
    }

    /// Whether a commit of this session is between its record and its status.
    pub fn is_in_commit(&self) -> bool {
        self.line().in_commit.load(Ordering::Relaxed) & IN_COMMIT != 0
    }

    /// Whether somebody has put a lock on the ended transaction's id into the table; resets the mark.
    ///
    /// To be called after the status was set: either this sees the mark, or the waiter who sets it sees
    /// the status (lmgr rule 6).
    pub(crate) fn take_xid_awaited(&self) -> bool {
        fence(Ordering::SeqCst);
        let mark = &self.desk().xid_awaited;
        // A plain load on the common path: the line stays shared.
        mark.load(Ordering::Relaxed) != 0 && mark.swap(0, Ordering::AcqRel) != 0
    }

    /// Fails if somebody has asked the session to stop. One load of the session's own line.
    #[inline]
    pub fn check_interrupts(&self) -> EngineResult<()> {
        if self.line().interrupts.load(Ordering::Relaxed) == 0 {
            Ok(())
        } else {
            Err(EngineError::Cancelled)
        }
    }

    /// Whether somebody has asked the session to stop (as read by a parked waiter: sequentially consistent).
    pub(crate) fn is_interrupted(&self) -> bool {
        self.line().interrupts.load(Ordering::SeqCst) != 0
    }

    /// The weightiest request to stop.
    pub fn interrupt(&self) -> Option<Interrupt> {
        let bits = self.line().interrupts.load(Ordering::Relaxed);
        Interrupt::BY_WEIGHT.into_iter().find(|i| bits & i.bit() != 0)
    }

    /// Forgets requests to cancel a statement, when the statement is over; those to end the session stay.
    pub fn clear_statement_interrupts(&self) {
        let statement = Interrupt::Cancel.bit() | Interrupt::StatementTimeout.bit();
        let word = &self.line().interrupts;
        if word.load(Ordering::Relaxed) & statement != 0 {
            word.fetch_and(!statement, Ordering::AcqRel);
        }
    }

    /// A handle with which other threads may interrupt this session.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle { array: self.array.clone(), no: self.no, generation: self.generation }
    }

    /// Sets who is woken (once) when the session is interrupted while it waits off its thread.
    pub fn set_waker(&self, waker: Option<Waker>) {
        *self.desk().waker.lock() = waker;
    }

    /// Sets the process id that stands for the session in messages and views.
    pub fn set_process_id(&self, process_id: u32) {
        self.desk().process_id.store(process_id, Ordering::Relaxed);
    }

    /// The process id that stands for the session.
    pub fn process_id(&self) -> u32 {
        self.desk().process_id.load(Ordering::Relaxed)
    }

    /// Changes what watchers see.
    pub fn set_activity(&self, change: impl FnOnce(&mut Activity)) {
        if let Some(activity) = self.desk().activity.lock().as_mut() {
            change(activity);
        }
    }

    /// Says what the session waits for until the result is dropped.
    pub fn waiting(&self, event: WaitEvent) -> Waiting<'_> {
        let word = &self.desk().wait_event;
        let before = word.load(Ordering::Relaxed);
        word.store(event as u32, Ordering::Relaxed);
        Waiting { word, before }
    }
}

impl Drop for ProcHandle {
    fn drop(&mut self) {
        self.withdraw_all_snapshots();
        self.publish_xid(None);
        self.leave_commit();
        let desk = self.desk();
        desk.wait_event.store(0, Ordering::Relaxed);
        desk.lock_wait.store(0, Ordering::Relaxed);
        desk.xid_awaited.store(0, Ordering::Relaxed);
        *desk.waker.lock() = None;
        *desk.activity.lock() = None;
        self.array.free.lock().numbers.push(self.no.0);
    }
}

/// A wait event that is being shown.
pub struct Waiting<'a> {
    word: &'a AtomicU32,
    before: u32,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.word.store(self.before, Ordering::Relaxed);
    }
}
