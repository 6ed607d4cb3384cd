//! Making the log durable: group commit.
//!
//! The leader of the group (group.rs) copies all complete records out of the ring, writes them, and syncs
//! once for everybody who waits. The log's own thread (flusher.rs) leads for those who must not block.
//!
//! Writing and syncing have a mutex each. Who will lead next writes what is complete while the leader syncs, because it
//! would only wait meanwhile: once it leads, the sync is all that is left. Whoever syncs has written what is below his
//! target, under the mutex of writing, or has seen that others have: `written` is stored (Release) after the store's write
//! and loaded (Acquire) before the sync. So his sync covers it. Order of the mutexes: leader, writing.
//! (models/write_ahead.rs runs this on a disk whose syncs take time and fail.)

use std::task::Waker;
use std::time::Duration;

use millpond_buffer::Lsn;
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::parking::{self, ParkResult};
use millpond_sync::sync::Mutex;
use millpond_sync::thread::NamedThread;
use millpond_sync::{clock, mutant};

use super::error::WalError;
use super::group::Group;
use super::log::Log;
use super::stats::{FlushCounts, Leader};

/// The most that is written by one call.
const WRITE_BYTES: usize = 1 << 20;

/// State of flushing.
pub(super) struct Flushing {
    flushed: CachePadded<AtomicU64>,
    pub(super) group: Group<Synced>,
    writing: CachePadded<Mutex<Writing>>,
    /// Up to where the log's thread is asked to write.
    pub(super) wanted: CachePadded<AtomicU64>,
    /// Up to where somebody waits who would not have a leader pause.
    hurried: AtomicU64,
    /// The log's thread has something to do.
    pub(super) work: CachePadded<AtomicBool>,
    pub(super) ending: AtomicBool,
    pub(super) thread: Mutex<Option<NamedThread<()>>>,
    pub(super) counts: FlushCounts,
    /// The end of the last mark, see `mark_durable`.
    pub(super) marked: AtomicU64,
    /// The segment of which `on_growth` was told.
    pub(super) grown: AtomicU64,
    /// The log's thread has complained that it cannot make a segment, and need not do so again.
    pub(super) complained: AtomicBool,
    on_growth: Mutex<Option<OnGrowth>>,
}

type OnGrowth = Box<dyn Fn(Lsn) + Send + Sync>;

/// Up to where the log has been synced, which only the leader does.
pub(super) struct Synced(pub(super) Lsn);

/// What only one who writes uses at a time.
struct Writing {
    written: Lsn,
    buffer: Vec<u8>,
}

impl Flushing {
    pub fn new(start: Lsn) -> Self {
        Self {
            flushed: CachePadded::new(AtomicU64::new(start.get())),
            group: Group::new(Synced(start)),
            writing: CachePadded::new(Mutex::new(Writing { written: start, buffer: Vec::new() })),
            wanted: CachePadded::default(),
            hurried: AtomicU64::new(0),
            work: CachePadded::default(),
            ending: AtomicBool::new(false),
            thread: Mutex::default(),
            counts: FlushCounts::default(),
            marked: AtomicU64::new(start.get()),
            grown: AtomicU64::new(0),
            complained: AtomicBool::new(false),
            on_growth: Mutex::default(),
        }
    }

    pub fn flushed(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::Acquire))
    }

    /// Gives the log's thread something to do, unless it has: for those who ask so often that the flag must not move from
    /// one processor to the next each time. It may have just been taken down without what is asked for now having been seen, so this
    /// is for what is asked for again (wal rule 15).
    pub fn nudge(&self) {
        if !self.work.load(Ordering::Relaxed) {
            self.kick();
        }
    }

    /// Gives the log's thread something to do.
    pub fn kick(&self) {
        if !self.work.swap(true, Ordering::AcqRel) {
            parking::unpark_one(self.work_key());
        }
    }

    /// On which a leader parks that lets others join.
    pub fn pause_key(&self) -> usize {
        std::ptr::from_ref(&*self.wanted).addr()
    }

    pub fn work_key(&self) -> usize {
        std::ptr::from_ref(&*self.work).addr()
    }
}

impl Log {
    /// Returns once the log is durable up to `upto`, the end of some record. Waits for nobody's `commit_delay`.
    pub fn flush(&self, upto: Lsn) -> Result<(), WalError> {
        let hurry = || {
            self.flushing.hurried.fetch_max(upto.get(), Ordering::AcqRel);
            parking::unpark_all(self.flushing.pause_key());
        };
        self.flush_as(upto, hurry, || Duration::ZERO)
    }

    /// [`Log::flush`] for a commit. If the caller turns out to lead the group, `pause` is asked how long to
    /// let others join first (`commit_delay`, if enough others are at work: `commit_siblings`).
    pub fn flush_commit(&self, upto: Lsn, pause: impl Fn() -> Duration) -> Result<(), WalError> {
        self.flush_as(upto, || (), pause)
    }

    fn flush_as(
        &self,
        upto: Lsn,
        announce: impl FnOnce(),
        pause: impl Fn() -> Duration,
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
            self.let_others_join(pause());
            // What fails has stopped the log; `outcome` says so.
            let _ = self.lead(synced, upto, true, Leader::Backend);
        };
        let tasks_left = || self.flushing.kick();
        let prepare = || self.write_ahead(upto);
        self.flushing.group.wait(upto, &|upto| self.is_settled(upto), &work, &prepare, &tasks_left);
        self.outcome(upto)
    }

    /// Writes what is complete while somebody else syncs, for a thread that waits to lead next. Waits for nobody.
    fn write_ahead(&self, upto: Lsn) {
        let Some(mut writing) = self.flushing.writing.try_lock() else { return };
        let (complete, _) = self.insertion.complete();
        if complete >= upto && self.check_running().is_ok() {
            // What fails has stopped the log.
            let _ = self.write_out(&mut writing, complete, Leader::Backend);
        }
    }

    /// Wakes `waker` once the log is durable up to `upto`, or has stopped: ask [`Log::outcome`].
    pub fn on_flushed(&self, upto: Lsn, waker: Waker) {
        self.on_commit_flushed(upto, Duration::ZERO, waker);
    }

    /// [`Log::on_flushed`] for a commit: the log's thread, which leads for it, lets others join for `pause`, or
    /// for longer if somebody else in the group wants that.
    pub fn on_commit_flushed(&self, upto: Lsn, pause: Duration, waker: Waker) {
        if self.flushing.group.enlist(upto, pause, waker, |upto| self.is_settled(upto)) {
            self.flushing.kick();
        }
    }

    /// Whether what ends at `upto` is durable. The error is [`WalError::WouldBlock`] if it is not yet, and another if it
    /// never will be.
    pub fn outcome(&self, upto: Lsn) -> Result<(), WalError> {
        if self.flushed() >= upto {
            return Ok(());
        }
        self.check_running()?;
        Err(WalError::WouldBlock)
    }

    /// How many syncs there have been.
    pub fn syncs(&self) -> u64 {
        self.flushing.counts.syncs()
    }

    /// `f` is called with the position whenever the log has grown by about a segment, and with
    /// [`Lsn::MAX`] when there is no room for another.
    pub fn on_growth(&self, f: impl Fn(Lsn) + Send + Sync + 'static) {
        *self.flushing.on_growth.lock() = Some(Box::new(f));
    }

    /// Tells the checkpointer where the log ends, or [`Lsn::MAX`]: that it must not grow any more.
    pub(super) fn tell_growth(&self, position: Lsn) {
        if let Some(call) = &*self.flushing.on_growth.lock() {
            call(position);
        }
    }

    pub(super) fn is_settled(&self, upto: Lsn) -> bool {
        self.flushed() >= upto || self.is_stopping()
    }

    /// The leader waits for more commits to join its group: parked, so that the pause is ended by who needs room in the
    /// ring, which only the leader can make, and by who would have the log durable at once ([`Log::flush`]).
    pub(super) fn let_others_join(&self, pause: Duration) {
        if pause.is_zero() {
            return;
        }
        self.flushing.counts.add_pause();
        let deadline = Some(clock::now() + pause);
        let wanted = || self.flushing.wanted.load(Ordering::Acquire);
        let hurried = || self.flushing.hurried.load(Ordering::Acquire);
        let idle = || {
            wanted() <= self.insertion.written().get()
                && hurried() <= self.flushed().get()
                && !self.is_stopping()
        };
        while let ParkResult::Unparked(_) = parking::park(self.flushing.pause_key(), idle, deadline)
        {
        }
    }

    /// After leading: wakes whoever is covered, and somebody to lead next.
    pub(super) fn hand_over(&self) {
        if self.flushing.group.hand_over(|upto| self.is_settled(upto)) {
            self.flushing.kick();
        }
    }

    /// Writes everything complete, at least up to `upto`, and syncs it if `sync`.
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
            // Only now: a hole left by an insert that met the stop counts as complete.
            if !too_early {
                self.check_running()?;
            }
            // Who wrote ahead may have left nothing to write.
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
        if sync && target > synced.0 {
            self.sync(synced, target, leader)?;
        }
        Ok(())
    }

    /// Moves bytes from the ring to the store. What fails stops the log.
    fn write_out(&self, writer: &mut Writing, target: Lsn, leader: Leader) -> Result<(), WalError> {
        let segment_bytes = self.store.segment_bytes();
        while writer.written < target {
            let at = writer.written.get();
            let (segment, offset) = (at / segment_bytes, at % segment_bytes);
            let bytes = (target.get() - at).min(segment_bytes - offset).min(WRITE_BYTES as u64);
            writer.buffer.resize(bytes as usize, 0);
            self.insertion.copy_out(writer.written, &mut writer.buffer);
            if !self.segments.allows(Lsn(at + bytes), false) {
                // The reserve is used up as well.
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
        let first = synced.0.get() / segment_bytes;
        for segment in first..=(target.get() - 1) / segment_bytes {
            self.or_stop(self.store.sync(segment), "sync", segment)?;
            self.flushing.counts.add_sync(leader);
        }
        synced.0 = target;
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

    /// Asks the log's thread to write up to `upto`, for somebody who waits for room in the ring.
    pub(super) fn ask_to_write(&self, upto: Lsn) {
        self.flushing.wanted.fetch_max(upto.get(), Ordering::AcqRel);
        parking::unpark_all(self.flushing.pause_key());
        self.flushing.kick();
    }

    /// Has the log's thread start writing each time another eighth of the ring is full, and sync what has gathered
    /// (wal rule 15).
    pub(super) fn write_early(&self, start: Lsn, end: Lsn) {
        let part = self.insertion.ring_bytes() / 8;
        if start.get() / part != end.get() / part {
            self.flushing.kick();
        } else if self.has_gathered(end, self.flushed()) && !mutant!("wal-gather-in-silence") {
            self.flushing.nudge();
        }
    }

    /// Whether what lies between is to be synced though nobody waits for it (`wal_writer_flush_after`).
    pub(super) fn has_gathered(&self, end: Lsn, flushed: Lsn) -> bool {
        let after = self.flush_after_bytes();
        after > 0 && end.get().saturating_sub(flushed.get()) >= after
    }

    /// A commit that nobody waits for is in the log. It is flushed soon: with what gathers, or after the delay; at once where
    /// nothing is to gather.
    pub fn commit_in_background(&self) {
        if self.flush_after_bytes() == 0 {
            self.flushing.kick();
        }
    }
}
