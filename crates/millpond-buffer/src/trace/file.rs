//! A trace in a file, written by a thread of its own.
//!
//! With a limit, a file that reaches half of it becomes the *older* file, in place of the one
//! before. A new file is begun. So at least the newer half of what the limit allows is kept,
//! however long the recording lasts.

use super::codec::{self, NO_SESSION};
use super::{PageTrace, TraceChunk};
use std::fmt;
use std::io::{self, BufWriter, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use millpond_vfs::{OpenFlags, OsVfs, Vfs, VfsFile, exists, read_up_to_at, retry};

/// The most chunks that wait for the writer: 2.3 MB.
const QUEUE_CHUNKS: usize = 256;

/// What has been recorded so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceStats {
    /// Records that were written.
    pub records: u64,
    /// Of these, the records that the limit on the files' size has removed.
    pub outdated: u64,
    /// Records that could not be kept.
    pub dropped: u64,
    /// Whether writing has failed; then everything later is dropped.
    pub failed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    records: AtomicU64,
    outdated: AtomicU64,
    dropped: AtomicU64,
    /// Of the dropped records, those that no chunk reports.
    lost: AtomicU64,
    failed: AtomicBool,
}

impl Counts {
    pub(super) fn stats(&self) -> TraceStats {
        TraceStats {
            records: self.records.load(Ordering::Relaxed),
            outdated: self.outdated.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

/// A recording of a pool's accesses to a file. It ends when the last session that records, and
/// every other holder, has dropped it. Then everything has been written.
pub struct TraceFile {
    started: Instant,
    counts: Arc<Counts>,
    /// `None` once the recording ends.
    full: Option<SyncSender<Box<TraceChunk>>>,
    /// Chunks to be used again.
    empty: Mutex<Receiver<Box<TraceChunk>>>,
    writer: Option<JoinHandle<()>>,
}

impl TraceFile {
    /// Begins a recording. It replaces an earlier recording in the file. If another file is there,
    /// it leaves that alone and returns an error.
    pub fn create(path: &Path) -> io::Result<Arc<Self>> {
        Self::create_with_limit(path, u64::MAX)
    }

    /// Begins a recording in a file and an older one (the path with `.1` added). Together they have
    /// at most `max_bytes` bytes, or as many as two chunks need. It removes an earlier recording in
    /// the older one.
    pub fn create_with_limit(path: &Path, max_bytes: u64) -> io::Result<Arc<Self>> {
        Self::create_on(Arc::new(OsVfs), path, max_bytes)
    }

    /// The same on a file system that need not be the kernel's.
    pub fn create_on(vfs: Arc<dyn Vfs>, path: &Path, max_bytes: u64) -> io::Result<Arc<Self>> {
        // The place of the file itself, not of a link to it, which may be elsewhere.
        let path = &vfs.resolve(path).unwrap_or_else(|_| path.to_owned());
        // A device can't be renamed, and needs no limit.
        let is_limited = max_bytes < u64::MAX && is_regular_or_missing(&*vfs, path)?;
        let older = older(path);
        let replaces_older = is_limited && exists(&*vfs, &older)?;
        if replaces_older {
            check_replaceable(&*vfs, &older)?;
        }
        check_replaceable(&*vfs, path)?;
        if replaces_older {
            retry(|| vfs.remove(&older))?;
        }
        let (full, chunks) = sync_channel(QUEUE_CHUNKS);
        let (used, empty) = sync_channel(QUEUE_CHUNKS);
        let counts = Arc::new(Counts::default());
        let writer = Writer {
            path: path.to_owned(),
            file: begin(&*vfs, path)?,
            vfs,
            max_file_bytes: if is_limited { max_bytes / 2 } else { u64::MAX },
            file_bytes: codec::HEADER_BYTES as u64,
            records: 0,
            older_records: 0,
            counts: Arc::clone(&counts),
            bytes: Vec::new(),
        };
        let writer = thread::Builder::new()
            .name("millpond-trace".to_owned())
            .spawn(move || writer.run(&chunks, &used))?;
        Ok(Arc::new(Self {
            started: Instant::now(),
            counts,
            full: Some(full),
            empty: Mutex::new(empty),
            writer: Some(writer),
        }))
    }

    /// What has been recorded so far.
    #[must_use]
    pub fn stats(&self) -> TraceStats {
        self.counts.stats()
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }
}

impl PageTrace for TraceFile {
    fn now_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn hand_over(&self, chunk: &mut Box<TraceChunk>) -> bool {
        let Some(full) = &self.full else { return false };
        let fresh = {
            let empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
            empty.try_recv().unwrap_or_else(|_| TraceChunk::new())
        };
        let records = chunk.records().len() as u64;
        match full.try_send(std::mem::replace(chunk, fresh)) {
            Ok(()) => true,
            Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => {
                self.counts.dropped.fetch_add(records, Ordering::Relaxed);
                *chunk = back;
                false
            }
        }
    }

    fn lost(&self, records: u64) {
        self.counts.lost.fetch_add(records, Ordering::Relaxed);
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.full = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the thread that wrote the page trace has panicked");
        }
    }
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceFile").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// The file that keeps for a while what no longer fits.
fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Whether a path has nothing, or an earlier recording.
fn check_replaceable(vfs: &dyn Vfs, path: &Path) -> io::Result<()> {
    let file = retry(|| vfs.open(path, OpenFlags::CREATE))?;
    let mut start = [0; codec::MAGIC.len()];
    let count = read_up_to_at(&*file, &mut start, 0)?;
    if count == 0 || start == codec::MAGIC {
        return Ok(());
    }
    let what = format!("{} exists and is not a page trace", path.display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
}

fn is_regular_or_missing(vfs: &dyn Vfs, path: &Path) -> io::Result<bool> {
    match retry(|| vfs.is_regular(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        found => found,
    }
}

/// A file that is written from its beginning on.
struct Appended {
    file: Arc<dyn VfsFile>,
    end: u64,
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(&[IoSlice::new(bytes)], self.end)?;
        self.end += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins a file.
fn begin(vfs: &dyn Vfs, path: &Path) -> io::Result<BufWriter<Appended>> {
    let flags = OpenFlags { truncate: true, ..OpenFlags::CREATE };
    let file = retry(|| vfs.open(path, flags))?;
    let mut file = Appended { file, end: 0 };
    file.write_all(&codec::header())?;
    Ok(BufWriter::with_capacity(1 << 18, file))
}

/// The thread that writes.
struct Writer {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    file: BufWriter<Appended>,
    /// The largest size of a file.
    max_file_bytes: u64,
    file_bytes: u64,
    /// Records in the file, and in the older one.
    records: u64,
    older_records: u64,
    counts: Arc<Counts>,
    bytes: Vec<u8>,
}

impl Writer {
    fn run(mut self, chunks: &Receiver<Box<TraceChunk>>, used: &SyncSender<Box<TraceChunk>>) {
        while let Some(chunk) = self.next(chunks) {
            self.write(&chunk);
            // If the queue of used chunks is full, this one is freed.
            let _ = used.try_send(chunk);
        }
        let lost = self.counts.lost.load(Ordering::Relaxed);
        if lost > 0 {
            let mut last = TraceChunk::new();
            last.session = NO_SESSION;
            last.dropped = u32::try_from(lost).unwrap_or(u32::MAX);
            self.write(&last);
        }
        self.flush();
        let dropped = self.counts.dropped.load(Ordering::Relaxed);
        let records = self.counts.records.load(Ordering::Relaxed);
        tracing::info!(path = %self.path.display(), records, dropped, "page trace ended");
    }

    /// The next chunk. Before it waits for one, it writes what there is to the file, so that little
    /// is missing after a crash.
    fn next(&mut self, chunks: &Receiver<Box<TraceChunk>>) -> Option<Box<TraceChunk>> {
        if let Ok(chunk) = chunks.try_recv() {
            return Some(chunk);
        }
        self.flush();
        chunks.recv().ok()
    }

    fn write(&mut self, chunk: &TraceChunk) {
        let records = chunk.records().len() as u64;
        if self.counts.failed.load(Ordering::Relaxed) {
            self.counts.dropped.fetch_add(records, Ordering::Relaxed);
            return;
        }
        self.bytes.clear();
        codec::encode(chunk, &mut self.bytes);
        match self.make_room().and_then(|()| self.file.write_all(&self.bytes)) {
            Ok(()) => {
                self.file_bytes += self.bytes.len() as u64;
                self.records += records;
                self.counts.records.fetch_add(records, Ordering::Relaxed);
            }
            Err(error) => {
                self.counts.dropped.fetch_add(records, Ordering::Relaxed);
                self.fail(&error);
            }
        }
    }

    /// Begins another file if the chunk would make this one too large, unless this one has no chunk
    /// yet.
    fn make_room(&mut self) -> io::Result<()> {
        let is_empty = self.file_bytes == codec::HEADER_BYTES as u64;
        if is_empty || self.file_bytes + self.bytes.len() as u64 <= self.max_file_bytes {
            return Ok(());
        }
        self.file.flush()?;
        let older = older(&self.path);
        if let Err(error) = retry(|| self.vfs.rename(&self.path, &older)) {
            // A recording that is too long is better than none.
            let path = self.path.display();
            tracing::warn!(%path, %error, "could not rename the page trace; it now grows without a limit");
            self.max_file_bytes = u64::MAX;
            return Ok(());
        }
        self.counts.outdated.fetch_add(self.older_records, Ordering::Relaxed);
        self.older_records = std::mem::take(&mut self.records);
        self.file = begin(&*self.vfs, &self.path)?;
        self.file_bytes = codec::HEADER_BYTES as u64;
        Ok(())
    }

    fn flush(&mut self) {
        if !self.counts.failed.load(Ordering::Relaxed)
            && let Err(error) = self.file.flush()
        {
            self.fail(&error);
        }
    }

    /// Notes a failure: from now on everything is dropped.
    fn fail(&mut self, error: &io::Error) {
        self.counts.failed.store(true, Ordering::Relaxed);
        tracing::error!(path = %self.path.display(), %error, "writing the page trace failed; recording has stopped");
    }
}
