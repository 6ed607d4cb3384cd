//! The log's own thread (PostgreSQL's WAL writer).
//!
//! It leads for tasks that must not block ([`Log::on_commit_flushed`]). It writes early when the
//! ring fills, and makes segments ahead of time. It flushes what no session waits for, after a
//! delay or when enough has gathered. It marks the end when the log is idle. It sleeps on the flag
//! `work`. The flag is set before the thread is woken, and cleared before it looks for work: no
//! request is lost.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use millpond_buffer::Lsn;
use millpond_sync::atomic::Ordering;
use millpond_sync::thread::spawn_named;
use millpond_sync::{clock, mutant, parking};

use super::config::{LogConfig, LogStart};
use super::log::Log;
use super::record::{HEADER_BYTES, Record, RmgrId, padded};
use super::stats::Leader;
use super::store::LogStore;
use crate::error::WalError;

/// The size of a mark that everything is durable.
const MARK_BYTES: u64 = padded(HEADER_BYTES) as u64;

impl Log {
    /// Opens the log in `store` and continues it. Everything below `start.end` must be valid. It
    /// becomes durable here: no page may depend on log in the kernel's cache only (wal rule 13).
    pub fn open(
        store: Arc<dyn LogStore>,
        config: LogConfig,
        start: LogStart,
    ) -> Result<Arc<Self>, WalError> {
        let log = Self::without_thread(store, config, start)?;
        log.start_flusher()?;
        Ok(log)
    }

    pub(super) fn start_flusher(self: &Arc<Self>) -> Result<(), WalError> {
        let log = Arc::downgrade(self);
        let thread = spawn_named("millpond-log", move || flusher(&log))
            .map_err(|source| WalError::io("could not start the log's thread", source))?;
        *self.flushing.thread.lock() = Some(thread);
        Ok(())
    }

    /// Flushes everything and ends the log's thread. The log cannot be used afterwards.
    pub fn close(&self) -> Result<(), WalError> {
        let result = self.flush(self.insert_position());
        self.stop_quietly();
        result
    }

    /// Ends the log's thread without flushing: for tests that crash.
    pub fn abandon(&self) {
        self.stop("abandoned");
        self.stop_quietly();
    }

    /// Ends the log's thread and nothing else: each committer then writes the log itself.
    #[cfg(feature = "audit")]
    pub(crate) fn end_thread(&self) {
        self.stop_quietly();
    }

    fn stop_quietly(&self) {
        self.flushing.ending.store(true, Ordering::Release);
        self.flushing.kick();
        if let Some(thread) = self.flushing.thread.lock().take() {
            let _ = thread.join();
        }
    }

    /// The log's thread sleeps until it is kicked, or until `until`. Returns whether it was kicked.
    pub(super) fn sleep(&self, until: Option<Instant>) -> bool {
        let nothing = || !self.flushing.work.load(Ordering::Acquire);
        parking::park(self.flushing.work_key(), nothing, until);
        self.flushing.work.swap(false, Ordering::AcqRel)
    }

    /// One turn of the log's thread, after it was kicked or has been `idle` for a while. It also
    /// syncs for no session if that is `due`, or enough has gathered. Returns whether the thread
    /// ends.
    pub(super) fn flusher_turn(&self, idle: bool, due: bool) -> bool {
        if self.flushing.ending.load(Ordering::Acquire) {
            return true;
        }
        if self.is_stopping() {
            self.hand_over();
            return false;
        }
        let awaited = self.flushing.group.awaited_by_tasks();
        if awaited.is_some() || due || self.flush_after_bytes() == 0 {
            let (upto, pause) = awaited.unwrap_or_default();
            self.lead_in_background(upto, true, pause);
        } else if self.has_gathered(self.insert_position(), self.flushed()) {
            self.sync_gathered();
        }
        let wanted = Lsn(self.flushing.wanted.load(Ordering::Acquire));
        if wanted > self.insertion.written() || !self.is_caught_up() {
            self.lead_in_background(wanted, false, Duration::ZERO);
        }
        self.make_segments_ahead();
        if idle && !mutant!("wal-quiet-end-without-mark") {
            self.mark_durable();
        }
        false
    }

    fn is_caught_up(&self) -> bool {
        let written = self.insertion.written().get();
        let behind = self.insert_position().get().saturating_sub(written);
        behind < self.insertion.ring_bytes() / 8
    }

    fn lead_in_background(&self, upto: Lsn, sync: bool, pause: Duration) {
        let mut synced = self.flushing.group.lead();
        if upto > self.flushed() || synced.upto < self.insert_position() {
            self.let_others_join(pause);
            let _ = self.lead(&mut synced, upto, sync, Leader::LogThread);
        }
        drop(synced);
        self.hand_over();
    }

    /// Syncs what is complete, although no session waits for it (wal rule 15).
    fn sync_gathered(&self) {
        let mut synced = self.flushing.group.lead();
        // A thread that led meanwhile may have synced some of it, or all.
        if self.has_gathered(self.insert_position(), synced.upto) {
            let _ = self.lead(&mut synced, Lsn::ZERO, true, Leader::LogThread);
        }
        drop(synced);
        self.hand_over();
    }

    fn make_segments_ahead(&self) {
        let position = self.insert_position();
        if self.segments.needs_more(position) {
            let made = self.segments.make_ahead(position);
            let had_complained = self.flushing.complained.swap(made.is_err(), Ordering::Relaxed);
            if let Err(error) = made
                && !had_complained
            {
                tracing::warn!("could not make a log segment ahead of time: {error}");
            }
        }
        let segment = position.get() / self.store.segment_bytes();
        if self.flushing.grown.swap(segment, Ordering::Relaxed) != segment {
            self.flushing.tell_growth(position);
        }
    }

    /// Whether nothing but the log's own mark has been inserted since `end`.
    pub fn is_idle_since(&self, end: Lsn) -> bool {
        let position = self.insert_position();
        let marked = Lsn(self.flushing.marked.load(Ordering::Relaxed));
        position == end || position == marked && marked.get() == end.get() + MARK_BYTES
    }

    /// Once the log is idle and durable, a last record says so. If the bytes before it are damaged
    /// later, recovery knows that this is no torn tail (wal rule 6).
    fn mark_durable(&self) {
        let end = self.insert_position();
        if self.flushed() < end || self.flushing.marked.load(Ordering::Relaxed) == end.get() {
            return;
        }
        let mark = Record::new(Default::default(), RmgrId::Log, super::info::DURABLE, b"");
        if let Ok(Some(mark)) = self.insert_at_end(self.flusher_stripe(), &mark, end) {
            self.lead_in_background(mark.end, true, Duration::ZERO);
            self.flushing.marked.store(mark.end.get(), Ordering::Relaxed);
        }
    }
}

fn flusher(log: &Weak<Log>) {
    let mut next_sync = clock::now();
    loop {
        let Some(this) = log.upgrade() else { return };
        let delay = this.writer_delay();
        let idle = !this.sleep(Some(clock::now() + delay));
        let due = idle || clock::now() >= next_sync;
        if this.flusher_turn(idle, due) {
            return;
        }
        if due {
            next_sync = clock::now() + delay;
        }
    }
}
