//! [`Log`]: inserting records.
//!
//! This file has the inserter's side; flush.rs has the side that makes records durable. The protocol
//! between the two is in insertion.rs.
//!
//! # Shared state
//!
//! *position, slots, ring, written*: see insertion.rs. *redo*: the redo point of the newest checkpoint and
//! its epoch, packed like the position; written once per checkpoint. *flushed*: everything below is
//! durable. *why*: set once, when the log stops.
//!
//! # Failure
//!
//! An insert that fails has changed nothing, except that after a stop its bytes are a hole in the log. No
//! hole is ever written: whoever writes checks for the stop after it has found the bytes complete,
//! and the slot that declared them complete was set after the stop (wal rule 7).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use millpond_buffer::{LogFlush, LogFlushError, Lsn, PAGE_SIZE, PageId, RelFork, page_lsn};
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::parking;
use millpond_sync::sync::Mutex;
use millpond_sync::sync::RwLock;
use millpond_sync::{audit, mutant};
use smallvec::SmallVec;

use super::config::{LogConfig, LogStart};
use super::error::WalError;
use super::flush::Flushing;
use super::forks::Forks;
use super::insertion::{Insertion, Place};
use super::record::{self, EncodeError, ImageMode, Record, RmgrId};
use super::segments::Segments;
use super::stats::{self, InsertCounts, LogStats};
use super::store::LogStore;
use crate::transam::SessionNo;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// Its first byte.
    pub start: Lsn,
    /// The first byte after it: flush up to here to make it durable.
    pub end: Lsn,
}

/// The ring is at least so long: a record may take half of it. (Models make one for each schedule.)
const MIN_BUFFER_BYTES: usize = if cfg!(any(loom, shuttle)) { 1 << 9 } else { 1 << 16 };

/// Slots for the log's own thread and for maintenance, after those of the sessions.
const SYSTEM_SLOTS: usize = 2;

/// The log of a database.
pub struct Log {
    pub(super) insertion: Insertion,
    pub(super) flushing: Flushing,
    pub(super) segments: Segments,
    pub(super) store: Arc<dyn LogStore>,
    pub(super) config: LogConfig,
    /// [`LogConfig::writer_delay`] now, in microseconds.
    writer_delay_us: AtomicU64,
    /// [`LogConfig::flush_after_bytes`] now.
    flush_after_bytes: AtomicU64,
    redo: CachePadded<AtomicU64>,
    /// Redo is under way: nothing may be inserted (wal rule 11).
    recovering: AtomicBool,
    /// Room to encode in; locking it makes a session's slot exclusive. On a line of its own.
    scratch: Box<[CachePadded<Mutex<Vec<u8>>>]>,
    counts: InsertCounts,
    why: OnceLock<Arc<str>>,
    /// Held shared by a session that makes or cuts a file, until the file is as the log says ([`super::storage`]).
    pub(super) file_changes: RwLock<()>,
    forks: Forks,
    start_no: u32,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Log {
    /// Goes on with the log in `store`. All that `start.end` covers must be valid; it is synced here, so that no
    /// page can be written on the strength of log that is only in the system's cache (wal rule 13).
    pub fn open(
        store: Arc<dyn LogStore>,
        config: LogConfig,
        start: LogStart,
    ) -> Result<Arc<Self>, WalError> {
        let log = Self::without_thread(store, config, start)?;
        log.start_flusher()?;
        Ok(log)
    }

    /// [`Log::open`] without the log's own thread, whose turns are the caller's then: for models.
    pub(super) fn without_thread(
        store: Arc<dyn LogStore>,
        config: LogConfig,
        start: LogStart,
    ) -> Result<Arc<Self>, WalError> {
        let segment_bytes = store.segment_bytes();
        let first = start.redo.get() / segment_bytes;
        let segments = Segments::open(Arc::clone(&store), first, start.end)?;
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

    /// Changes [`LogConfig::writer_delay`] and [`LogConfig::flush_after_bytes`]. (Relaxed: whoever
    /// reads the old ones works by them once more.)
    pub(crate) fn tune(&self, writer_delay: Duration, flush_after_bytes: u64) {
        self.writer_delay_us.store(micros(writer_delay), Ordering::Relaxed);
        self.flush_after_bytes.store(flush_after_bytes, Ordering::Relaxed);
    }

    /// How long a commit that does not wait may stay volatile, now.
    pub(super) fn writer_delay(&self) -> Duration {
        Duration::from_micros(self.writer_delay_us.load(Ordering::Relaxed))
    }

    /// After how many bytes the log's thread syncs, now.
    pub(super) fn flush_after_bytes(&self) -> u64 {
        self.flush_after_bytes.load(Ordering::Relaxed)
    }

    /// Inserts a record none of whose blocks needs an image. See [`Log::insert_with_pages`].
    pub fn insert(&self, stripe: SessionNo, record: &Record<'_>) -> Result<Inserted, WalError> {
        self.insert_with_pages(stripe, record, &[])
    }

    /// Inserts a record. `pages[i]` is the page of block `i` before the change, whose LSN decides
    /// whether its image goes along; the caller holds all these pages' latches exclusively and has
    /// marked the pages dirty (wal rule 2). The record is not durable when this returns, and it is
    /// ordered after every record whose insertion had returned before.
    ///
    /// After an error nothing was inserted, and the pages must not be changed.
    pub fn insert_with_pages(
        &self,
        stripe: SessionNo,
        record: &Record<'_>,
        pages: &[&[u8; PAGE_SIZE]],
    ) -> Result<Inserted, WalError> {
        let slot = stripe.index();
        let mut scratch = self.scratch[slot].lock();
        loop {
            self.check_running()?;
            if self.recovering.load(Ordering::Relaxed) && !mutant!("wal-insert-during-redo") {
                return Err(WalError::Recovering);
            }
            let place = self.insertion.place();
            let redo_word = self.redo.load(Ordering::Acquire);
            let redo = redo_for(place, redo_word);
            let images = images(record, pages, redo);
            let bytes = record::encode(&mut scratch, record, self.start_no, &images)?;
            self.check_length(bytes)?;
            self.make_room(place.lsn, bytes, is_ordinary(record))?;
            self.insertion.begin(slot, place.lsn);
            let got = self.insertion.reserve(bytes);
            // The second comparison tells epochs apart that are 256 checkpoints from each other.
            let is_current = got.epoch == place.epoch
                && self.redo.load(Ordering::Acquire) == redo_word
                || pages.is_empty();
            if !is_current {
                record::encode_noop(&mut scratch, bytes, self.start_no);
            }
            let carried = if is_current { images.iter().flatten().count() } else { 0 };
            let inserted = self.fill(slot, got.lsn, &mut scratch, carried)?;
            if is_current {
                return Ok(inserted);
            }
        }
    }

    /// Inserts a record at `end` if that is still where the log ends and all of it has been written. So this
    /// never waits for room in the ring, as the thread that makes that room must not.
    pub(super) fn insert_at_end(
        &self,
        stripe: SessionNo,
        record: &Record<'_>,
        end: Lsn,
    ) -> Result<Option<Inserted>, WalError> {
        let slot = stripe.index();
        let mut scratch = self.scratch[slot].lock();
        self.check_running()?;
        let bytes = record::encode(&mut scratch, record, self.start_no, &[])?;
        let place = self.insertion.place();
        let is_quiet = place.lsn == end && self.insertion.written() >= end;
        if !is_quiet || self.recovering.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.make_room(end, bytes, is_ordinary(record))?;
        self.insertion.begin(slot, end);
        if !self.insertion.reserve_at(place, bytes) {
            self.insertion.finish(slot);
            return Ok(None);
        }
        self.fill(slot, end, &mut scratch, 0).map(Some)
    }

    /// Inserts the record that begins a checkpoint: from its position on, the first change of every
    /// page carries an image. Only one checkpoint may be under way at a time.
    pub fn begin_checkpoint(
        &self,
        stripe: SessionNo,
        payload: &[u8],
    ) -> Result<Inserted, WalError> {
        let slot = stripe.index();
        let mut scratch = self.scratch[slot].lock();
        self.check_running()?;
        let record =
            Record::new(Default::default(), RmgrId::Log, super::info::CHECKPOINT_START, payload);
        let bytes = record::encode(&mut scratch, &record, self.start_no, &[])?;
        let bound = self.insertion.place().lsn;
        self.make_room(bound, bytes, false)?;
        self.insertion.begin(slot, bound);
        let got = self.insertion.reserve_and_begin_epoch(bytes);
        let redo = Place { epoch: got.epoch.wrapping_add(1), lsn: got.lsn };
        self.redo.store(redo.pack(), Ordering::Release);
        self.fill(slot, got.lsn, &mut scratch, 0)
    }

    /// Puts the encoded record, with so many images, at its place.
    fn fill(
        &self,
        slot: usize,
        start: Lsn,
        encoded: &mut [u8],
        images: usize,
    ) -> Result<Inserted, WalError> {
        let end = Lsn(start.get() + encoded.len() as u64);
        if !self.insertion.has_room(end) {
            self.counts.add_wait(slot);
        }
        record::seal(encoded, start, self.flushed());
        let has_room = self.insertion.wait_for_room(
            slot,
            start,
            end,
            |upto| self.ask_to_write(upto),
            || self.is_stopping(),
        );
        if has_room {
            self.insertion.copy_in(start, encoded);
        }
        self.insertion.finish(slot);
        if !has_room {
            // A hole, which is never written: see the module's description.
            self.check_running()?;
        }
        self.counts.add_record(slot, encoded.len(), images);
        self.write_early(start, end);
        Ok(Inserted { start, end })
    }

    fn check_length(&self, bytes: usize) -> Result<(), WalError> {
        let limit = self.config.buffer_bytes / 2;
        if bytes > limit {
            return Err(EncodeError::TooLong { bytes, limit }.into());
        }
        Ok(())
    }

    /// Refuses an ordinary record when the disk has no room for its segment.
    fn make_room(&self, position: Lsn, bytes: usize, ordinary: bool) -> Result<(), WalError> {
        let end = Lsn(position.get() + bytes as u64);
        if !ordinary || self.segments.allows(end, true) {
            return Ok(());
        }
        let made = self.segments.make_room(end);
        if made.is_err() {
            // A checkpoint may free some.
            self.tell_growth(Lsn::MAX);
        }
        made
    }

    /// Whether a record of this length can be inserted without waiting for a device.
    pub fn has_room(&self, bytes: usize) -> bool {
        // Others may take room at the same time; leave them some.
        let end =
            Lsn(self.insert_position().get() + bytes as u64 + self.insertion.ring_bytes() / 8);
        !self.is_stopping() && self.insertion.has_room(end) && self.segments.allows(end, true)
    }

    /// Where the next record will start, or later.
    pub fn insert_position(&self) -> Lsn {
        self.insertion.place().lsn
    }

    /// The redo point of the newest checkpoint that has begun: a page whose LSN is not above it gets
    /// an image with its next change.
    pub fn redo_point(&self) -> Lsn {
        redo_for(self.insertion.place(), self.redo.load(Ordering::Acquire))
    }

    /// What it knows of forks.
    pub fn forks(&self) -> &Forks {
        &self.forks
    }

    /// Everything below it is durable.
    pub fn flushed(&self) -> Lsn {
        self.flushing.flushed()
    }

    /// What it has counted since it was opened.
    pub fn stats(&self) -> LogStats {
        stats::stats(&self.counts, &self.flushing.counts)
    }

    /// The number of this start of the engine, as records carry it.
    pub fn start_no(&self) -> u32 {
        self.start_no
    }

    /// The slot for records of maintenance; one thread at a time.
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

    /// Stops the log for good: nothing more is written or confirmed. The first reason stays.
    pub fn stop(&self, why: &str) {
        let is_first = self.why.set(Arc::from(why)).is_ok();
        self.insertion.wake_all();
        parking::unpark_all(self.flushing.pause_key());
        self.hand_over();
        self.flushing.kick();
        // Last: who writes the line to the log of events may panic, and the others must not wait on.
        if is_first {
            tracing::error!("the log has stopped: {why}");
        }
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

    /// Says whether redo is under way, so that nothing may be inserted.
    pub(crate) fn set_recovering(&self, recovering: bool) {
        self.recovering.store(recovering, Ordering::Release);
    }

    /// Gives up log before `redo`; keeps segments for about `ahead_bytes` to come.
    pub fn retire(&self, redo: Lsn, ahead_bytes: u64) {
        self.segments.retire(redo, self.insert_position(), ahead_bytes);
    }
}

/// Whether a record must leave the reserve alone: all but those that end transactions, and those that a checkpoint writes, a truncation
/// that is owed among them.
fn is_ordinary(record: &Record<'_>) -> bool {
    match record.rmgr {
        RmgrId::Transaction | RmgrId::Clog => false,
        RmgrId::Log => record.info == super::info::WRITE,
        RmgrId::Storage => record.info != super::storage::INFO_TRUNCATE,
        _ => true,
    }
}

/// The redo point that counts at `place`. While the checkpoint that began `place`'s epoch has not yet
/// said where, it is at most `place`: then every page gets an image.
fn redo_for(place: Place, redo_word: u64) -> Lsn {
    let redo = Place::unpack(redo_word);
    if redo.epoch == place.epoch { redo.lsn } else { place.lsn }
}

type Images<'p> = SmallVec<[Option<&'p [u8; PAGE_SIZE]>; 4]>;

/// Which pages go along with the record.
fn images<'p>(record: &Record<'_>, pages: &[&'p [u8; PAGE_SIZE]], redo: Lsn) -> Images<'p> {
    let blocks = record.blocks.iter().zip(pages);
    blocks
        .map(|(block, page)| match block.image {
            ImageMode::Never => None,
            ImageMode::Always => Some(*page),
            ImageMode::IfNeeded => (page_lsn(page) <= redo).then_some(*page),
        })
        .collect()
}

impl LogFlush for Log {
    /// What the pool calls before it writes a page (wal rule 12).
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

    /// Redo makes files as long as they must be, so nothing is asked of them meanwhile.
    fn least_blocks(&self, rel: RelFork) -> Option<u32> {
        if self.recovering.load(Ordering::Acquire) {
            return None;
        }
        self.forks.least_blocks(rel)
    }

    fn may_be_zero(&self, page: PageId) -> bool {
        self.forks.may_be_zero(page)
    }

    fn has_reached(&self, lsn: Lsn) -> bool {
        lsn <= self.flushed()
    }
}
