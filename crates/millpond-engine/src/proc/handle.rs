//! A session's own line: what it publishes while it works.

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
use crate::lmgr::LocalLocks;
use crate::transam::{Csn, SessionNo, Xid};

/// A session's own line. One thread at a time uses it.
pub struct ProcHandle {
    pub(super) array: Arc<ProcArray>,
    pub(super) no: SessionNo,
    pub(super) generation: u64,
    /// Snapshots held: the published number is not above any of them.
    held: RefCell<SmallVec<[Csn; 4]>>,
    /// The session's own record of its locks.
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

    /// The session's own record of its locks, for the lock manager.
    pub(crate) fn local_locks(&self) -> &RefCell<LocalLocks> {
        &self.locks
    }

    /// Notes the number of the session with the buffer pool that this one works with. It must be its own until this is
    /// dropped.
    pub(crate) fn set_pool_session(&self, number: usize) {
        let number = u32::try_from(number + 1).unwrap_or(0);
        self.desk().pool_session.store(number, Ordering::Relaxed);
    }

    /// Asks for the session's own lines, ahead of a statement.
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

    /// Takes a snapshot: publishes a lower bound, then loads the number that counts (transam rule 5).
    ///
    /// `load` loads the commit clock with Acquire.
    pub(crate) fn publish_snapshot(&self, load: impl Fn() -> Csn) -> Csn {
        let mut held = self.held.borrow_mut();
        if held.is_empty() {
            self.line().snapshot.store(load().0, Ordering::Relaxed);
            // Either a horizon's scan that comes later sees the line, or the load below sees everything that
            // the scan's ceiling saw.
            if !mutant!("transam-snapshot-without-fence") {
                fence(Ordering::SeqCst);
            }
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

    /// Announces that an id of at least `floor` is about to be drawn: by a read-modify-write with Release, which
    /// publishes this store to whoever loads a later id (transam rule 6).
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

    /// Notes that a transaction begins, for watchers. Stores to the session's own line.
    #[inline]
    pub(crate) fn enter_transaction(&self) {
        let word = &self.line().transactions;
        word.store((word.load(Ordering::Relaxed) | 1) + 2, Ordering::Relaxed);
    }

    /// Notes that it has ended.
    #[inline]
    pub(crate) fn leave_transaction(&self) {
        let word = &self.line().transactions;
        word.store(word.load(Ordering::Relaxed) & !1, Ordering::Relaxed);
    }

    /// Marks the time from before the commit record until after the status (transam rule 8).
    pub(crate) fn enter_commit(&self) {
        let word = &self.line().in_commit;
        let idle = word.load(Ordering::Relaxed);
        debug_assert_eq!(idle & IN_COMMIT, 0, "a session commits one transaction at a time");
        word.store(idle | IN_COMMIT, Ordering::Relaxed);
        if !mutant!("transam-commit-without-fence") {
            fence(Ordering::SeqCst);
        }
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
    #[cfg(test)]
    pub(crate) fn is_in_commit(&self) -> bool {
        self.line().in_commit.load(Ordering::Relaxed) & IN_COMMIT != 0
    }

    /// Whether somebody has put a lock on the ended transaction's id into the table; resets the mark.
    ///
    /// To be called after the status was set: either this sees the mark, or the waiter who sets it sees
    /// the status (lmgr rule 6).
    pub(crate) fn take_xid_awaited(&self) -> bool {
        if !mutant!("lock-xid-runner-without-fence") {
            fence(Ordering::SeqCst);
        }
        let mark = &self.desk().xid_awaited;
        // A plain load on the common path: the line stays shared.
        mark.load(Ordering::Relaxed) != 0 && mark.swap(0, Ordering::AcqRel) != 0
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

    fn statement(&self) -> &StatementSlot {
        &self.array.statements[self.no.index()]
    }

    /// Shows watchers that a statement has begun; without a text, one with the same text as the last. Times here and
    /// below are microseconds since 2000. Stores to the session's own lines.
    #[inline]
    pub fn show_statement(&self, text: Option<&str>, now: i64) {
        let slot = self.statement();
        if let Some(text) = text {
            slot.set_text(text);
        }
        slot.set_began(now);
        slot.set_state(ActivityState::Active, now);
    }

    /// Shows watchers what the session does from now on.
    #[inline]
    pub fn show_state(&self, state: ActivityState, now: i64) {
        self.statement().set_state(state, now);
    }

    /// Shows watchers when the transaction has begun.
    #[inline]
    pub fn show_transaction(&self, now: i64) {
        self.statement().set_transaction_began(now);
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
