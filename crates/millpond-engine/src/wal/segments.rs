//! The log's segments: which exist, and which have room for records.
//!
//! The log's thread makes segments ahead of the records that go there. It prepares them: their
//! names are durable, and their files are open. Ordinary records may fill all prepared segments but
//! the last. The last is a reserve for records that end transactions and for checkpoints. So a full
//! disk, or a lack of descriptors, fails only a transaction and does not stop the log (wal rule 8).

use std::io;
use std::sync::Arc;

use millpond_buffer::Lsn;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::mutant;
use millpond_sync::sync::Mutex;

use super::store::LogStore;
use crate::error::WalError;

/// The number of segments beyond the current one that are kept ready.
const AHEAD: u64 = 2;

/// The segments of the log.
pub(crate) struct Segments {
    store: Arc<dyn LogStore>,
    segment_bytes: u64,
    /// Segments below this are prepared. A record that ends above it cannot be written.
    end: AtomicU64,
    files: Mutex<Files>,
}

/// The existing files. A thread that creates, renames or removes one holds its lock.
struct Files {
    /// The lowest segment.
    first: u64,
    /// Segments below this exist. The last of them may not be prepared yet.
    made: u64,
    /// Segments before `first` that could not be removed. The next checkpoint tries again.
    left: Vec<u64>,
}

impl Segments {
    /// Takes over the segments in `store`. Those from `first` to the one that holds `position` are
    /// log. Removes the segments before `first`, and those beyond the first gap after `position`.
    pub fn open(store: Arc<dyn LogStore>, first: u64, position: Lsn) -> Result<Self, WalError> {
        let segment_bytes = store.segment_bytes();
        let current = position.get() / segment_bytes;
        let failed = |source| WalError::io("could not list the log's segments", source);
        let found = store.segments().map_err(failed)?;
        let mut made = current;
        for segment in found {
            if segment == made {
                made += 1;
            } else if segment < first || segment > made {
                store.remove(segment).map_err(|source| {
                    let what = format!("could not remove log segment {segment:016x}");
                    WalError::io(what, source)
                })?;
            }
        }
        let files = Mutex::new(Files { first, made, left: Vec::new() });
        let this = Self { store, segment_bytes, end: AtomicU64::new(current), files };
        this.make_up_to(current + AHEAD)?;
        Ok(this)
    }

    /// Whether a record may end at `end`. Ordinary records leave the reserve alone.
    pub fn allows(&self, end: Lsn, ordinary: bool) -> bool {
        let segments = self.end.load(Ordering::Relaxed)
            - u64::from(ordinary && !mutant!("wal-reserve-for-all"));
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
        let mut files = self.files.lock();
        loop {
            let end = self.end.load(Ordering::Relaxed);
            if end > last {
                return Ok(());
            }
            let (verb, done) = if end < files.made {
                ("prepare", self.store.prepare(end))
            } else {
                ("create", self.store.create(end))
            };
            done.map_err(|source| match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    WalError::DiskFull(Arc::new(source))
                }
                _ => WalError::io(format!("could not {verb} log segment {end:016x}"), source),
            })?;
            files.made = files.made.max(end + 1);
            self.end.store(end + 1, Ordering::Release);
        }
    }

    /// Gives up everything before `redo`. Keeps as many segments for records to come as
    /// `ahead_bytes` asks for, and removes the rest. A file that cannot be renamed or removed only
    /// takes up space: the function logs a warning and goes on (wal rule 9).
    pub fn retire(&self, redo: Lsn, position: Lsn, ahead_bytes: u64) {
        let ahead = (ahead_bytes / self.segment_bytes).max(AHEAD);
        let mut files = self.files.lock();
        files.left.retain(|&segment| self.remove(segment).is_err());
        while files.first < redo.get() / self.segment_bytes {
            let from = files.first;
            files.first += 1;
            if files.made <= position.get() / self.segment_bytes + ahead {
                match self.store.recycle(from, files.made) {
                    Ok(()) => {
                        files.made += 1;
                        continue;
                    }
                    Err(error) => {
                        tracing::warn!("could not recycle log segment {from:016x}: {error}")
                    }
                }
            }
            if let Err(error) = self.remove(from) {
                tracing::warn!("could not remove log segment {from:016x}: {error}");
                files.left.push(from);
            }
        }
    }

    /// Removes a segment. It may be gone already, after a failed call that had its effect.
    fn remove(&self, segment: u64) -> io::Result<()> {
        match self.store.remove(segment) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}
