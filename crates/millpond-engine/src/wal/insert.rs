//! Inserting records into the log. insertion.rs has the protocol between the inserters and the
//! threads that write.
//!
//! # Failure
//!
//! An insert that fails has changed nothing, except that after a stop its bytes are a hole in the
//! log. No hole is ever written. The writing thread checks for the stop after it has found the
//! bytes complete. The slot that declared them complete was set after the stop (wal rule 7).

use millpond_buffer::{Lsn, PAGE_SIZE, page_lsn};
use millpond_sync::atomic::Ordering;
use millpond_sync::{mutant, parking};
use smallvec::SmallVec;

use super::insertion::Place;
use super::log::{Log, redo_for};
use super::record::{self, ImageMode, Record, RmgrId};
use super::storage_record::INFO_TRUNCATE;
use crate::error::{EncodeError, WalError};
use crate::ids::SessionNo;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// Its first byte.
    pub start: Lsn,
    /// The first byte after it: flush up to here to make it durable.
    pub end: Lsn,
}

impl Log {
    /// Inserts a record none of whose blocks needs an image. See [`Log::insert_with_pages`].
    pub fn insert(&self, stripe: SessionNo, record: &Record<'_>) -> Result<Inserted, WalError> {
        self.insert_with_pages(stripe, record, &[])
    }

    /// Inserts a record. `pages[i]` is the page of block `i` before the change; its LSN decides
    /// whether the record carries its image. The caller holds the exclusive latches of all these
    /// pages and has marked the pages dirty (wal rule 2). The record is not durable when this
    /// returns. It comes after every record whose insertion had returned before.
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
            // The second comparison tells apart epochs that are 256 checkpoints from each other.
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

    /// Inserts a record at `end` if the log still ends there and all of it has been written. So
    /// this never waits for room in the ring: the caller is the thread that makes the room.
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

    /// Inserts the record that begins a checkpoint. From its position on, the first change of every
    /// page carries an image. Only one checkpoint may be in progress at a time.
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

    /// Copies the encoded record, which has `images` images, to its place.
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

    /// Makes room for a record's segment. Refuses an ordinary record when the disk has none.
    fn make_room(&self, position: Lsn, bytes: usize, ordinary: bool) -> Result<(), WalError> {
        let end = Lsn(position.get() + bytes as u64);
        if !ordinary || self.segments.allows(end, true) {
            return Ok(());
        }
        let made = self.segments.make_room(end);
        if made.is_err() {
            // A checkpoint may free some segments.
            self.flushing.tell_growth(Lsn::MAX);
        }
        made
    }

    /// Whether a record of this length can be inserted without waiting for a device.
    pub fn has_room(&self, bytes: usize) -> bool {
        // Other sessions may take room at the same time; leave some for them.
        let end =
            Lsn(self.insert_position().get() + bytes as u64 + self.insertion.ring_bytes() / 8);
        !self.is_stopping() && self.insertion.has_room(end) && self.segments.allows(end, true)
    }

    /// Asks the log's thread to write up to `upto`, for a thread that waits for room in the ring.
    pub(super) fn ask_to_write(&self, upto: Lsn) {
        self.flushing.wanted.fetch_max(upto.get(), Ordering::AcqRel);
        parking::unpark_all(self.flushing.pause_key());
        self.flushing.kick();
    }

    /// Wakes the log's thread at each further eighth of the ring, or if enough has gathered (wal
    /// rule 15).
    pub(super) fn write_early(&self, start: Lsn, end: Lsn) {
        let part = self.insertion.ring_bytes() / 8;
        if start.get() / part != end.get() / part {
            self.flushing.kick();
        } else if self.has_gathered(end, self.flushed()) && !mutant!("wal-gather-in-silence") {
            self.flushing.nudge();
        }
    }
}

/// Whether a record must leave the reserve alone. Exempt are the records that end transactions and
/// those that a checkpoint writes, including truncations that are still owed.
fn is_ordinary(record: &Record<'_>) -> bool {
    match record.rmgr {
        RmgrId::Transaction | RmgrId::Clog => false,
        RmgrId::Log => record.info == super::info::WRITE,
        RmgrId::Storage => record.info != INFO_TRUNCATE,
        _ => true,
    }
}

type Images<'p> = SmallVec<[Option<&'p [u8; PAGE_SIZE]>; 4]>;

/// The pages whose images the record carries.
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
