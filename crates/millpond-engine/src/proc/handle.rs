//! A session's line in the table of sessions: what it publishes while it works.

use std::cell::RefCell;
use std::sync::Arc;

use millpond_sync::atomic::{AtomicU32, Ordering, fence};
use millpond_sync::prefetch::prefetch;
use millpond_sync::{mutant, parking};
use smallvec::SmallVec;

use super::{
    Activity, ActivityState, COMMIT_AWAITED, COMMIT_COUNT, Desk, IN_COMMIT, Line, PROVISIONAL,
    ProcArray, StatementSlot, WaitEvent,
};
use crate::ids::{Csn, SessionNo, Xid};
use crate::lock::LocalLocks;

/// A session's handle on its line. One thread at a time uses it.
pub struct ProcHandle {
    pub(super) array: Arc<ProcArray>,
    pub(super) no: SessionNo,
    pub(super) generation: u64,
    /// The snapshots held. The published number is not above any of them.
    held: RefCell<SmallVec<[Csn; 4]>>,
    locks: RefCell<LocalLocks>,
}

impl ProcHandle {
    pub(super) fn new(array: Arc<ProcArray>, no: SessionNo, generation: u64) -> Self {
        ProcHandle { array, no, generation, held: RefCell::default(), locks: RefCell::default() }
    }

    /// The session's number.
    #[inline]
    pub fn no(&self) -> SessionNo {
        self.no
    }

    /// The array.
    pub fn array(&self) -> &Arc<ProcArray> {
        &self.array
    }

    /// The session's private record of its locks, for the lock manager.
    pub(crate) fn local_locks(&self) -> &RefCell<LocalLocks> {
        &self.locks
    }

    /// Notes the number of this session in the buffer pool. That number must belong to this session
    /// until the handle is dropped.
    pub(crate) fn set_pool_session(&self, number: usize) {
        let number = u32::try_from(number + 1).unwrap_or(0);
        self.desk().pool_session.store(number, Ordering::Relaxed);
    }

    /// Prefetches the session's lines, ahead of a statement.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(self.line());
        self.statement().prefetch();
    }

    pub(super) fn line(&self) -> &Line {
        &self.array.lines[self.no.index()]
    }

    pub(super) fn desk(&self) -> &Desk {
        &self.array.desks[self.no.index()]
    }

    /// Takes a snapshot: publishes a lower bound, then loads the number that counts (transam rule
    /// 5).
    ///
    /// `load` loads the commit clock with Acquire.
    pub(crate) fn publish_snapshot(&self, load: impl Fn() -> Csn) -> Csn {
        let mut held = self.held.borrow_mut();
        if held.is_empty() {
            self.line().snapshot.store(load().0, Ordering::Relaxed);
            // Either a later scan for the horizon sees this line, or the load below sees everything
            // that the scan's ceiling saw.
            if !mutant!("transam-snapshot-without-fence") {
                fence(Ordering::SeqCst);
            }
        }
        let csn = load();
        held.push(csn);
        csn
    }

    /// Releases one of the held snapshots.
    pub(crate) fn withdraw_snapshot(&self, csn: Csn) {
        let mut held = self.held.borrow_mut();
        if let Some(index) = held.iter().position(|h| *h == csn) {
            held.swap_remove(index);
        }
        let oldest = held.iter().min().copied().unwrap_or(Csn::INVALID);
        // Release: reads under the snapshot happen before vacuum may remove what they read.
        self.line().snapshot.store(oldest.0, Ordering::Release);
    }

    /// Releases all snapshots.
    pub(crate) fn withdraw_all_snapshots(&self) {
        self.held.borrow_mut().clear();
        self.line().snapshot.store(0, Ordering::Release);
    }

    /// Announces that the session is about to draw an id of at least `floor`. The caller draws it
    /// with a read-modify-write with Release. That publishes this store to any thread that loads a
    /// later id (transam rule 6).
    pub(crate) fn announce_xid(&self, floor: Xid) {
        if !mutant!("transam-draw-unannounced") {
            self.line().xid.store(floor.0 | PROVISIONAL, Ordering::Relaxed);
        }
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

    /// Notes that a transaction begins, for observers. Stores to the session's own line.
    #[inline]
    pub(crate) fn enter_transaction(&self) {
        let word = &self.line().transactions;
        word.store((word.load(Ordering::Relaxed) | 1) + 2, Ordering::Relaxed);
    }

    /// Notes that the transaction has ended.
    #[inline]
    pub(crate) fn leave_transaction(&self) {
        let word = &self.line().transactions;
        word.store(word.load(Ordering::Relaxed) & !1, Ordering::Relaxed);
    }

    /// Marks the beginning of the time from before the commit record until after the status
    /// (transam rule 8).
    pub(crate) fn enter_commit(&self) {
        let word = &self.line().in_commit;
        let idle = word.load(Ordering::Relaxed);
        debug_assert_eq!(idle & IN_COMMIT, 0, "a session commits one transaction at a time");
        word.store(idle | IN_COMMIT, Ordering::Relaxed);
        if !mutant!("transam-commit-without-fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Ends the time that [`enter_commit`](Self::enter_commit) began. Without one, does nothing.
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
    #[cfg(test)]
    pub(crate) fn is_in_commit(&self) -> bool {
        self.line().in_commit.load(Ordering::Relaxed) & IN_COMMIT != 0
    }

    /// Whether another session has put a lock on the ended transaction's id into the lock table.
    /// Resets the mark.
    ///
    /// The caller has set the status before. Then either this call sees the mark, or the waiter
    /// that sets the mark sees the status (lmgr rule 6).
    pub(crate) fn take_xid_awaited(&self) -> bool {
        if !mutant!("lock-xid-runner-without-fence") {
            fence(Ordering::SeqCst);
        }
        let mark = &self.desk().xid_awaited;
        // The common path is a plain load, which leaves the cache line shared.
        mark.load(Ordering::Relaxed) != 0 && mark.swap(0, Ordering::AcqRel) != 0
    }

    /// The session's process id.
    pub fn process_id(&self) -> u32 {
        self.desk().process_id.load(Ordering::Relaxed)
    }

    /// Changes what observers see.
    pub fn set_activity(&self, change: impl FnOnce(&mut Activity)) {
        if let Some(activity) = self.desk().activity.lock().as_mut() {
            change(activity);
        }
    }

    fn statement(&self) -> &StatementSlot {
        &self.array.statements[self.no.index()]
    }

    /// Shows observers that a statement has begun; `None` keeps the last text. Times here and below
    /// are microseconds since 2000. Stores to the session's own lines.
    #[inline]
    pub fn show_statement(&self, text: Option<&str>, now: i64) {
        let slot = self.statement();
        if let Some(text) = text {
            slot.set_text(text);
        }
        slot.set_began(now);
        slot.set_state(ActivityState::Active, now);
    }

    /// Shows observers the session's state from now on.
    #[inline]
    pub fn show_state(&self, state: ActivityState, now: i64) {
        self.statement().set_state(state, now);
    }

    /// Shows observers when the transaction began.
    #[inline]
    pub fn show_transaction(&self, now: i64) {
        self.statement().set_transaction_began(now);
    }

    /// Shows the wait event until the result is dropped.
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
        self.leave_transaction();
        let desk = self.desk();
        desk.wait_event.store(0, Ordering::Relaxed);
        desk.lock_wait.store(0, Ordering::Relaxed);
        desk.xid_awaited.store(0, Ordering::Relaxed);
        desk.pool_session.store(0, Ordering::Relaxed);
        *desk.activity.lock() = None;
        self.array.free.lock().numbers.push(self.no.0);
    }
}

/// A wait event that is shown until this is dropped.
pub struct Waiting<'a> {
    word: &'a AtomicU32,
    before: u32,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.word.store(self.before, Ordering::Relaxed);
    }
}
