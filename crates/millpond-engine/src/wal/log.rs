//! [`Log`]: what the inserters of records and the threads that make them durable share.
//!
//! Inserting is in insert.rs, making durable in flush.rs and flusher.rs. insertion.rs has the
//! protocol between the two sides.
//!
//! # Shared state
//!
//! *position, slots, ring, written*: see insertion.rs. *redo*: the redo point of the newest
//! checkpoint and its epoch, packed like the position; written once per checkpoint. *flushed*:
//! everything below is durable. *why*: set once, when the log stops.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use millpond_buffer::Lsn;
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::parking;
use millpond_sync::sync::Mutex;
use millpond_sync::sync::RwLock;
use millpond_sync::{audit, mutant};

use super::config::{LogConfig, LogStart};
use super::flushing::Flushing;
use super::forks::Forks;
use super::insertion::{Insertion, Place};
use super::page_edit::RmgrRedo;
use super::record::RmgrId;
use super::segments::Segments;
use super::stats::{self, InsertCounts, LogStats};
use super::store::LogStore;
use crate::error::{RedoError, WalError};
use crate::ids::SessionNo;

/// The smallest ring; a record may take half of it. (Models create a ring for each schedule.)
const MIN_BUFFER_BYTES: usize = if cfg!(any(loom, shuttle)) { 1 << 9 } else { 1 << 16 };

/// Log that is written again at a time.
const REWRITE_BYTES: u64 = 1 << 18;

/// Slots for the log's own thread and for maintenance, after the slots of the sessions.
const SYSTEM_SLOTS: usize = 2;

/// The log of a database.
pub struct Log {
    pub(super) insertion: Insertion,
    pub(super) flushing: Flushing,
    pub(super) segments: Segments,
    pub(super) store: Arc<dyn LogStore>,
    pub(super) config: LogConfig,
    /// The current [`LogConfig::writer_delay`], in microseconds.
    writer_delay_us: AtomicU64,
    /// The current [`LogConfig::flush_after_bytes`].
    flush_after_bytes: AtomicU64,
    pub(super) redo: CachePadded<AtomicU64>,
    /// Redo is in progress: no record may be inserted (wal rule 11).
    pub(super) recovering: AtomicBool,
    /// Buffers for encoding, one cache line each. A buffer's lock makes its slot exclusive.
    pub(super) scratch: Box<[CachePadded<Mutex<Vec<u8>>>]>,
    pub(super) counts: InsertCounts,
    why: OnceLock<Arc<str>>,
    /// Held shared by a session until the file that it makes or cuts is done ([`super::storage`]).
    pub(super) file_changes: RwLock<()>,
    pub(super) forks: Forks,
    pub(super) start_no: u32,
}

/// Writes log again that may be in the system's cache alone. After a failed sync the system may
/// count its pages as written, and a later sync does nothing about them.
fn write_again(store: &dyn LogStore, from: u64, end: u64) -> Result<(), WalError> {
    let segment_bytes = store.segment_bytes();
    let mut at = from;
    while at < end {
        let (segment, offset) = (at / segment_bytes, at % segment_bytes);
        let part = REWRITE_BYTES.min(end - at).min(segment_bytes - offset);
        let mut bytes = vec![0; part as usize];
        let read = store.read(segment, offset, &mut bytes);
        read.and_then(|()| store.write(segment, offset, &bytes)).map_err(|source| {
            WalError::io(format!("could not write log segment {segment:016x} again"), source)
        })?;
        at += part;
    }
    Ok(())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Log {
    /// [`Log::open`] without the log's own thread. The caller runs its turns: for models.
    pub(super) fn without_thread(
        store: Arc<dyn LogStore>,
        config: LogConfig,
        start: LogStart,
    ) -> Result<Arc<Self>, WalError> {
        let segment_bytes = store.segment_bytes();
        let first = start.redo.get() / segment_bytes;
        let segments = Segments::open(Arc::clone(&store), first, start.end)?;
        if !mutant!("wal-tail-not-written-again") {
            write_again(&*store, start.durable.get(), start.end.get())?;
        }
        let unsynced = first..=start.end.get() / segment_bytes;
        for segment in unsynced.filter(|_| !mutant!("wal-tail-not-synced")) {
            store.sync(segment).map_err(|source| {
                WalError::io(format!("could not sync log segment {segment:016x}"), source)
            })?;
        }
        let buffer_bytes = config.buffer_bytes.max(MIN_BUFFER_BYTES).next_power_of_two();
        let config = LogConfig { buffer_bytes, ..config };
        let slots = config.max_sessions + SYSTEM_SLOTS;
        let place = Place { epoch: 0, lsn: start.end };
        Ok(Arc::new(Self {
            insertion: Insertion::new(start.end, config.buffer_bytes, slots),
            flushing: Flushing::new(start.end),
            segments,
            store,
            redo: CachePadded::new(AtomicU64::new(place.pack())),
            recovering: AtomicBool::new(false),
            scratch: audit::session_owned("log scratch", || {
                (0..slots).map(|_| CachePadded::default()).collect()
            }),
            counts: InsertCounts::new(slots),
            why: OnceLock::new(),
            file_changes: RwLock::default(),
            forks: Forks::default(),
            start_no: start.start_no,
            writer_delay_us: AtomicU64::new(micros(config.writer_delay)),
            flush_after_bytes: AtomicU64::new(config.flush_after_bytes),
            config,
        }))
    }

    /// How a resource manager redoes its records.
    #[inline]
    pub fn redo_of(&self, rmgr: RmgrId) -> Result<&'static dyn RmgrRedo, RedoError> {
        (self.config.redo_of)(rmgr)
    }

    /// Changes [`LogConfig::writer_delay`] and [`LogConfig::flush_after_bytes`]. (Relaxed: a reader
    /// of the old values uses them once more.)
    pub(crate) fn tune(&self, writer_delay: Duration, flush_after_bytes: u64) {
        self.writer_delay_us.store(micros(writer_delay), Ordering::Relaxed);
        self.flush_after_bytes.store(flush_after_bytes, Ordering::Relaxed);
    }

    /// The current limit on how long a commit that does not wait may stay volatile.
    pub(super) fn writer_delay(&self) -> Duration {
        Duration::from_micros(self.writer_delay_us.load(Ordering::Relaxed))
    }

    /// The current number of bytes after which the log's thread syncs.
    pub(super) fn flush_after_bytes(&self) -> u64 {
        self.flush_after_bytes.load(Ordering::Relaxed)
    }

    /// Where the next record will start, or a lower bound of it.
    pub fn insert_position(&self) -> Lsn {
        self.insertion.place().lsn
    }

    /// Everything below this position has been written to the log's files.
    pub fn written(&self) -> Lsn {
        self.insertion.written()
    }

    /// The redo point of the newest checkpoint that has begun. A page whose LSN is not above it
    /// gets an image with its next change.
    pub fn redo_point(&self) -> Lsn {
        redo_for(self.insertion.place(), self.redo.load(Ordering::Acquire))
    }

    /// The table of forks.
    pub fn forks(&self) -> &Forks {
        &self.forks
    }

    /// Everything below this position is durable.
    pub fn flushed(&self) -> Lsn {
        self.flushing.flushed()
    }

    /// Statistics since the log was opened.
    pub fn stats(&self) -> LogStats {
        stats::stats(&self.counts, &self.flushing.counts)
    }

    /// The number of this start of the engine, as records carry it.
    pub fn start_no(&self) -> u32 {
        self.start_no
    }

    /// The slot for records of maintenance. One thread at a time may use it.
    pub fn maintenance_stripe(&self) -> SessionNo {
        SessionNo(u16::try_from(self.config.max_sessions).unwrap_or(u16::MAX))
    }

    pub(super) fn flusher_stripe(&self) -> SessionNo {
        SessionNo(self.maintenance_stripe().0.saturating_add(1))
    }

    /// Why the log has stopped, if it has.
    pub fn is_stopped(&self) -> Option<Arc<str>> {
        self.why.get().cloned()
    }

    /// Stops the log for good: it writes and confirms nothing more. The first reason stays.
    pub fn stop(&self, why: &str) {
        let is_first = self.why.set(Arc::from(why)).is_ok();
        self.insertion.wake_all();
        parking::unpark_all(self.flushing.pause_key());
        self.hand_over();
        self.flushing.kick();
        // Last: the tracing subscriber may panic, and the waiting threads must be woken before.
        if is_first {
            tracing::error!("the log has stopped: {why}");
        }
    }

    pub(super) fn is_settled(&self, upto: Lsn) -> bool {
        self.flushed() >= upto || self.is_stopping()
    }

    /// Call it after leading: wakes all waiters that are covered, and one waiter to lead next.
    pub(super) fn hand_over(&self) {
        if self.flushing.group.hand_over(|upto| self.is_settled(upto)) {
            self.flushing.kick();
        }
    }

    /// Whether the log from `flushed` to `end` is to be synced for no session
    /// (`wal_writer_flush_after`).
    pub(super) fn has_gathered(&self, end: Lsn, flushed: Lsn) -> bool {
        let after = self.flush_after_bytes();
        after > 0 && end.get().saturating_sub(flushed.get()) >= after
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.why.get().is_some()
    }

    pub(super) fn check_running(&self) -> Result<(), WalError> {
        match self.why.get() {
            None => Ok(()),
            Some(why) => Err(WalError::Stopped { why: Arc::clone(why) }),
        }
    }

    /// Sets whether redo is in progress, so that no record may be inserted.
    pub(crate) fn set_recovering(&self, recovering: bool) {
        self.recovering.store(recovering, Ordering::Release);
    }

    /// Gives up the log before `redo`. Keeps segments for about `ahead_bytes` of records to come.
    pub fn retire(&self, redo: Lsn, ahead_bytes: u64) {
        self.segments.retire(redo, self.insert_position(), ahead_bytes);
    }
}

/// The redo point that applies at `place`. The checkpoint that began `place`'s epoch may not have
/// published it yet. It is at most `place`, which is used then: every page gets an image.
pub(super) fn redo_for(place: Place, redo_word: u64) -> Lsn {
    let redo = Place::unpack(redo_word);
    if redo.epoch == place.epoch { redo.lsn } else { place.lsn }
}
