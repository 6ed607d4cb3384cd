//! Which segments exist, and room for records in them.
//!
//! Segments are made ahead of the records that go there, by the flusher thread. Ordinary records may
//! fill all but the last of them; the last is a reserve for records that end transactions and for
//! checkpoints, so that a full disk is an error of the transaction that met it, and not the end of
//! the log (wal rule 8).

use std::io;
use std::sync::Arc;

use millpond_buffer::Lsn;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::sync::Mutex;

use super::error::WalError;
use super::store::LogStore;

/// How many segments beyond the current one are kept ready.
const AHEAD: u64 = 2;

/// The segments of the log.
pub(crate) struct Segments {
    store: Arc<dyn LogStore>,
    segment_bytes: u64,
    /// Segments below it exist; a record that ends above it cannot be written.
    end: AtomicU64,
    /// The lowest segment, and whoever creates or removes segments.
    first: Mutex<u64>,
}

impl Segments {
    /// Takes over the segments in `store`, of which those from `first` to the one that holds
    /// `position` are log. Whatever lies beyond the first gap after that is removed.
    pub fn open(store: Arc<dyn LogStore>, first: u64, position: Lsn) -> Result<Self, WalError> {
        let segment_bytes = store.segment_bytes();
        let current = position.get() / segment_bytes;
        let failed = |source| WalError::io("could not list the log's segments", source);
        let found = store.segments().map_err(failed)?;
        let mut end = current;
        for segment in found {
            if segment == end {
                end += 1;
            } else if segment < first || segment > end {
                remove(&*store, segment)?;
            }
        }
        let this =
            Self { store, segment_bytes, end: AtomicU64::new(end), first: Mutex::new(first) };
        this.make_up_to(current + AHEAD)?;
        Ok(this)
    }

    /// Whether a record may end at `end`. Ordinary records leave the reserve alone.
    pub fn allows(&self, end: Lsn, ordinary: bool) -> bool {
        let segments = self.end.load(Ordering::Relaxed) - u64::from(ordinary);
        end.get() <= segments * self.segment_bytes
    }

    /// Makes room for an ordinary record that ends at `end`.
    pub fn make_room(&self, end: Lsn) -> Result<(), WalError> {
        self.make_up_to(end.get() / self.segment_bytes + 1)
    }

    /// Whether segments should be made ahead, now that records go to `position`.
    pub fn needs_more(&self, position: Lsn) -> bool {
        self.end.load(Ordering::Relaxed) <= position.get() / self.segment_bytes + AHEAD
    }

    /// Makes segments ahead of `position`.
    pub fn make_ahead(&self, position: Lsn) -> Result<(), WalError> {
        self.make_up_to(position.get() / self.segment_bytes + AHEAD)
    }

    fn make_up_to(&self, last: u64) -> Result<(), WalError> {
        let _creating = self.first.lock();
        loop {
            let end = self.end.load(Ordering::Relaxed);
            if end > last {
                return Ok(());
            }
            self.store.create(end).map_err(|source| match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    WalError::DiskFull(Arc::new(source))
                }
                _ => WalError::io(format!("could not create log segment {end:016x}"), source),
            })?;
            self.end.store(end + 1, Ordering::Release);
        }
    }

    /// Gives up everything before `redo`: as many segments as `ahead_bytes` asks for are kept for
    /// records to come, the rest is removed.
    pub fn retire(&self, redo: Lsn, position: Lsn, ahead_bytes: u64) -> Result<(), WalError> {
        let mut first = self.first.lock();
        let ahead = (ahead_bytes / self.segment_bytes).max(AHEAD);
        while *first < redo.get() / self.segment_bytes {
            let end = self.end.load(Ordering::Relaxed);
            if end <= position.get() / self.segment_bytes + ahead {
                self.store.recycle(*first, end).map_err(|source| {
                    WalError::io(format!("could not recycle log segment {:016x}", *first), source)
                })?;
                self.end.store(end + 1, Ordering::Release);
            } else {
                remove(&*self.store, *first)?;
            }
            *first += 1;
        }
        Ok(())
    }
}

fn remove(store: &dyn LogStore, segment: u64) -> Result<(), WalError> {
    store.remove(segment).map_err(|source| {
        WalError::io(format!("could not remove log segment {segment:016x}"), source)
    })
}
