//! Which segments exist, and room for records in them.
//!
//! Segments are made ahead of the records that go there, by the flusher thread, and prepared: their
//! names are durable, and they are open. Ordinary records may fill all but the last of those that are
//! prepared; the last is a reserve for records that end transactions and for
//! checkpoints, so that a full disk, or a process without descriptors, is an error of the
//! transaction that met it, and not the end of the log (wal rule 8).

use std::io;
use std::sync::Arc;

use millpond_buffer::Lsn;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::mutant;
use millpond_sync::sync::Mutex;

use super::error::WalError;
use super::store::LogStore;

/// How many segments beyond the current one are kept ready.
const AHEAD: u64 = 2;

/// The segments of the log.
pub(crate) struct Segments {
    store: Arc<dyn LogStore>,
    segment_bytes: u64,
    /// Segments below it are prepared; a record that ends above it cannot be written.
    end: AtomicU64,
    files: Mutex<Files>,
}

/// Which files there are. A thread that creates, renames or removes one has this.
struct Files {
    /// The lowest segment.
    first: u64,
    /// Segments below it exist. The last of them may not be prepared yet.
    made: u64,
    /// Segments before `first` that could not be removed. The next checkpoint tries again.
    left: Vec<u64>,
}

impl Segments {
    /// Takes over the segments in `store`, of which those from `first` to the one that holds
    /// `position` are log. Whatever lies beyond the first gap after that is removed.
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

    /// Gives up everything before `redo`: as many segments as `ahead_bytes` asks for are kept for
    /// records to come, the rest is removed. A file that can't be renamed or removed is only in the
    /// way: the log says so and goes on (wal rule 9).
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

    /// Removes a segment unless it is gone, as after a failed call that had its effect.
    fn remove(&self, segment: u64) -> io::Result<()> {
        match self.store.remove(segment) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}
