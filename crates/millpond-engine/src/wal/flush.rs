//! Making the log durable: group commit.
//!
//! The leader of the group (group.rs) copies all complete records out of the ring, writes them, and
//! syncs once for all that wait. The log's thread (flusher.rs) leads for tasks that must not block.
//!
//! Writing and syncing have a mutex each. While the leader syncs, the thread that will lead next
//! would only wait. So it writes what is complete meanwhile, and has only the sync left when it
//! leads. A sync covers everything below the syncing thread's target. That thread has written it
//! itself, under the mutex of writing, or has seen that others have. `written` is stored (Release)
//! after the store's write and loaded (Acquire) before the sync. Order of the mutexes: leader,
//! writing. (models/write_ahead.rs runs this on a disk whose syncs take time and fail.)

use std::task::Waker;
use std::time::Duration;

use millpond_buffer::{LogFlush, LogFlushError, Lsn, PageId, RelFork};
use millpond_sync::atomic::Ordering;
use millpond_sync::parking::{self, ParkResult};
use millpond_sync::{clock, mutant};

use super::companions::Companions;
use super::flushing::{Synced, Writing};
use super::log::Log;
use super::stats::Leader;
use crate::error::WalError;

/// The largest write by one call.
const WRITE_BYTES: usize = 1 << 20;

impl Log {
    /// Returns once the log is durable up to `upto`, the end of some record. Ends a leader's pause.
    pub fn flush(&self, upto: Lsn) -> Result<(), WalError> {
        self.flush_as(upto, || self.hurry(upto), |_| ())
    }

    /// Ends a leader's pause, and has none begin until the log is durable up to `upto`. For a
    /// thread that waits for commits that others make durable.
    pub(crate) fn hurry(&self, upto: Lsn) {
        self.flushing.hurried.fetch_max(upto.get(), Ordering::AcqRel);
        parking::unpark_all(self.flushing.pause_key());
    }

    /// [`Log::flush`] for a commit. If the caller becomes the leader, it lets others join first.
    /// It waits for `pause()`: `commit_delay` if at least `commit_siblings` other transactions are
    /// active, and zero otherwise. If that is zero, `Companions` decides how long it waits.
    /// `worked`: the time since the session's last commit was durable, zero for its first one.
    pub fn flush_commit(
        &self,
        upto: Lsn,
        worked: Duration,
        pause: impl Fn() -> Duration,
    ) -> Result<(), WalError> {
        let join = |synced: &mut Synced| {
            synced.companions.worked(worked);
            match pause() {
                Duration::ZERO => self.wait_for_companions(&mut synced.companions),
                pause => self.let_others_join(pause),
            }
        };
        self.flush_as(upto, || (), join)
    }

    fn flush_as(
        &self,
        upto: Lsn,
        announce: impl FnOnce(),
        join: impl Fn(&mut Synced),
    ) -> Result<(), WalError> {
        if self.flushed() >= upto {
            return Ok(());
        }
        let end = self.insert_position();
        if upto > end {
            return Err(WalError::BeyondEnd { wanted: upto, end });
        }
        announce();
        let work = |synced: &mut Synced| {
            join(synced);
            // An error here has stopped the log; `outcome` reports it.
            let _ = self.lead(synced, upto, true, Leader::Backend);
        };
        let tasks_left = || self.flushing.kick();
        let prepare = || self.write_ahead(upto);
        self.flushing.group.wait(upto, &|upto| self.is_settled(upto), &work, &prepare, &tasks_left);
        self.outcome(upto)
    }

    /// Writes what is complete while another thread syncs. For the thread that leads next; no wait.
    fn write_ahead(&self, upto: Lsn) {
        let Some(mut writing) = self.flushing.writing.try_lock() else { return };
        let (complete, _) = self.insertion.complete();
        if complete >= upto && self.check_running().is_ok() {
            // An error here has stopped the log.
            let _ = self.write_out(&mut writing, complete, Leader::Backend);
        }
    }

    /// Wakes `waker` once the log is durable up to `upto`, or has stopped: ask [`Log::outcome`].
    /// The log's thread leads and lets others join for `pause`, or for longer if another task of
    /// the group asks for that.
    pub fn on_commit_flushed(&self, upto: Lsn, pause: Duration, waker: Waker) {
        if self.flushing.group.enlist(upto, pause, waker, |upto| self.is_settled(upto)) {
            self.flushing.kick();
        }
    }

    /// Whether what ends at `upto` is durable. The error is [`WalError::WouldBlock`] if it is not
    /// yet, and another error if it never will be.
    pub fn outcome(&self, upto: Lsn) -> Result<(), WalError> {
        if self.flushed() >= upto {
            return Ok(());
        }
        self.check_running()?;
        Err(WalError::WouldBlock)
    }

    /// The number of syncs so far.
    pub fn syncs(&self) -> u64 {
        self.flushing.counts.syncs()
    }

    /// Has `f` called with the position when the log has grown by about a segment. With
    /// [`Lsn::MAX`], it means that there is no room for another segment.
    pub fn on_growth(&self, f: impl Fn(Lsn) + Send + Sync + 'static) {
        *self.flushing.on_growth.lock() = Some(Box::new(f));
    }

    /// The leader waits for more commits to join its group. It is parked, so two kinds of threads
    /// can end the pause. One needs room in the ring, which only the leader can make. The other
    /// wants the log durable at once ([`Log::flush`]).
    pub(super) fn let_others_join(&self, pause: Duration) {
        if pause.is_zero() {
            return;
        }
        self.flushing.counts.add_pause();
        self.pause(pause, || false);
    }

    /// The leader waits for commits that are likely to come: see [`Companions`]. Tasks of event
    /// loops do not wait for it: the log's thread would have led for them at once.
    fn wait_for_companions(&self, companions: &mut Companions) {
        let group = &self.flushing.group;
        if group.has_tasks() {
            return;
        }
        let (expected, others) = (group.size(), group.waiting());
        let Some(wait) = companions.wait(expected, 1 + others) else { return };
        group.set_pausing(true);
        let has_tasks = || group.has_tasks() && !mutant!("wal-pause-beside-tasks");
        let is_over = self.pause(wait, || has_tasks() || 1 + group.waiting() >= expected);
        group.set_pausing(false);
        // A wait that was cut short does not tell whether a commit would have come.
        let has_come = group.waiting() > others;
        if has_come || is_over || mutant!("wal-cut-short-wait-counts") {
            companions.waited(has_come);
        }
    }

    /// Parks the leader, until it is `enough` or another thread cannot wait. True if the time was
    /// over before.
    fn pause(&self, pause: Duration, enough: impl Fn() -> bool) -> bool {
        let deadline = Some(clock::now() + pause);
        let wanted = || self.flushing.wanted.load(Ordering::Acquire);
        let hurried = || self.flushing.hurried.load(Ordering::Acquire);
        let has_room =
            || mutant!("wal-pause-beside-full-ring") || wanted() <= self.insertion.written().get();
        let is_early = || mutant!("wal-pause-beside-flush") || hurried() <= self.flushed().get();
        let is_running = || mutant!("wal-pause-after-stop") || !self.is_stopping();
        let idle = || has_room() && is_early() && is_running() && !enough();
        loop {
            match parking::park(self.flushing.pause_key(), idle, deadline) {
                ParkResult::Unparked(_) => {}
                ParkResult::TimedOut => return true,
                ParkResult::Invalid => return false,
            }
        }
    }

    /// Writes everything that is complete, at least up to `upto`. Syncs it if `sync`.
    pub(super) fn lead(
        &self,
        synced: &mut Synced,
        upto: Lsn,
        sync: bool,
        leader: Leader,
    ) -> Result<(), WalError> {
        let target = loop {
            let too_early = mutant!("wal-look-for-stop-before-slots");
            if too_early {
                self.check_running()?;
            }
            let (complete, blocker) = self.insertion.complete();
            // Check only now: a hole left by an insert that met the stop counts as complete.
            if !too_early {
                self.check_running()?;
            }
            // A thread that wrote ahead may have left nothing to write.
            let waits_first =
                mutant!("wal-wait-for-slot-before-write") && blocker.is_some() && complete < upto;
            if complete > self.insertion.written() && !waits_first {
                self.write_out(&mut self.flushing.writing.lock(), complete, leader)?;
            }
            match blocker {
                Some((slot, seen)) if complete < upto => {
                    self.insertion.wait_for_slot(slot, seen, || self.is_stopping());
                }
                _ => break complete,
            }
        };
        if sync && target > synced.upto {
            self.sync(synced, target, leader)?;
        }
        Ok(())
    }

    /// Moves bytes from the ring to the store. A failure stops the log.
    fn write_out(&self, writer: &mut Writing, target: Lsn, leader: Leader) -> Result<(), WalError> {
        let segment_bytes = self.store.segment_bytes();
        while writer.written < target {
            let at = writer.written.get();
            let (segment, offset) = (at / segment_bytes, at % segment_bytes);
            let bytes = (target.get() - at).min(segment_bytes - offset).min(WRITE_BYTES as u64);
            writer.buffer.resize(bytes as usize, 0);
            self.insertion.copy_out(writer.written, &mut writer.buffer);
            if !self.segments.allows(Lsn(at + bytes), false) {
                // The reserve is used up, too.
                self.segments.make_room(Lsn(at + bytes)).inspect_err(|error| {
                    self.stop(&error.to_string());
                })?;
            }
            let written = self.store.write(segment, offset, &writer.buffer);
            self.or_stop(written, "write", segment)?;
            self.flushing.counts.add_write(leader, bytes);
            writer.written = Lsn(at + bytes);
            self.insertion.set_written(writer.written);
            if offset + bytes == segment_bytes || self.segments.needs_more(writer.written) {
                self.flushing.kick();
            }
        }
        Ok(())
    }

    fn sync(&self, synced: &mut Synced, target: Lsn, leader: Leader) -> Result<(), WalError> {
        let segment_bytes = self.store.segment_bytes();
        let first = synced.upto.get() / segment_bytes;
        let begun = clock::now();
        for segment in first..=(target.get() - 1) / segment_bytes {
            self.or_stop(self.store.sync(segment), "sync", segment)?;
            self.flushing.counts.add_sync(leader);
        }
        synced.companions.synced(clock::since(begun));
        synced.upto = target;
        self.flushing.flushed.store(target.get(), Ordering::Release);
        Ok(())
    }

    fn or_stop(
        &self,
        result: std::io::Result<()>,
        what: &str,
        segment: u64,
    ) -> Result<(), WalError> {
        if let Err(error) = result {
            if what == "sync" && mutant!("wal-sync-again") {
                return Err(WalError::io("could not sync", error));
            }
            self.stop(&format!("could not {what} log segment {segment:016x}: {error}"));
        }
        self.check_running()
    }

    /// A commit that no session waits for is in the log. The log's thread syncs it soon: with what
    /// gathers, or after the delay. If `flush_after_bytes` is zero, it syncs at once.
    pub fn commit_in_background(&self) {
        if self.flush_after_bytes() == 0 {
            self.flushing.kick();
        }
    }
}

impl LogFlush for Log {
    /// The pool calls this before it writes a page (wal rule 12).
    fn flush_to(&self, lsn: Lsn) -> Result<(), LogFlushError> {
        if let Some(why) = self.is_stopped() {
            return Err(LogFlushError::new(why));
        }
        if mutant!("wal-page-before-log") {
            return Ok(());
        }
        self.flush(lsn).map_err(|error| LogFlushError::new(error.to_string()))
    }

    fn flushed(&self) -> Lsn {
        Log::flushed(self)
    }

    /// `None` during redo, because redo itself makes files as long as they must be.
    fn least_blocks(&self, rel: RelFork) -> Option<u32> {
        if self.recovering.load(Ordering::Acquire) {
            return None;
        }
        self.forks.least_blocks(rel)
    }

    fn may_be_zero(&self, page: PageId) -> bool {
        self.forks.may_be_zero(page)
    }

    /// A true answer is never missed, although `flushed` may lag behind. Before a session wrote a
    /// page, it saw that the log was durable up to the page's LSN. After that it made the frame's
    /// entry absent (Release). This session has found the entry absent (Acquire), so it loads the
    /// value that the writer saw, or a later one.
    fn has_reached(&self, lsn: Lsn) -> bool {
        lsn <= self.flushed()
    }
}
