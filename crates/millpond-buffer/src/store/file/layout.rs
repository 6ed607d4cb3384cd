//! How a file store uses its directory: its options, its lock, the names of its files, and how many
//! of them it may open.
//!
//! **The lock** is an empty file `lock` that the store locks with `flock`. It ends with the
//! process, however that ends, so a lock file that is left behind means nothing. Without it, each
//! of two stores on one directory would take the other's writes for its own, and neither would sync
//! them.
//!
//! **Names**: `16384`, `16384_fsm`, `16384_fsm.3`. A name is the relation's number in decimal, then
//! a suffix (except for the main fork), then the segment's number (except for the first). The store
//! never takes another file in the directory for a relation.
//!
//! **The budget** ([`Budget`]) bounds how many files the stores of a process may have open. The
//! system limits the descriptors of a process (`RLIMIT_NOFILE`). Some of them are reserved for the
//! rest of the process: sockets, the log, temporary files. The stores together may have the others,
//! but at least a quarter of the limit.
//!
//! The count covers the process, but a store closes only its own files. So the budget is a bound in
//! the long run: a store that opens a file beyond it closes what it can. If the system refuses a
//! descriptor earlier, the store does the same and asks once more.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millpond_sync::atomic::{AtomicBool, Ordering};
use millpond_sync::thread;
use millpond_vfs::{OpenFlags, OsVfs, Vfs, VfsFile, retry};

use super::FileStore;
use crate::PAGE_SIZE;
use crate::ids::{Fork, RelFork, RelationId};

/// How reads ahead and writes behind are done (`io_method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IoMethod {
    /// By io_uring. By workers if the kernel doesn't allow it, or without the feature `io-uring`.
    #[default]
    IoUring,
    /// By threads that read with `preadv` and write with `pwritev`.
    Worker,
    /// By the thread that wants the pages, or wants them written.
    Sync,
}

impl IoMethod {
    /// PostgreSQL's word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Worker => "worker",
            Self::Sync => "sync",
        }
    }
}

const DEFAULT_SEGMENT_BLOCKS: u32 = 131_072;
const DEFAULT_IO_WORKERS: usize = 3;
const DEFAULT_RESERVED_DESCRIPTORS: usize = 64;

/// Options of a [`FileStore`]. Start from the default and change what you need.
///
/// ```
/// # use millpond_buffer::*;
/// # let dir = tempfile::tempdir().expect("a folder");
/// # let dir = dir.path().join("data");
/// let mut options = FileStoreOptions::default();
/// options.io_method = IoMethod::Worker;
/// options.io_workers = 8;
/// let store = FileStore::open_with(&dir, options)?;
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileStoreOptions {
    /// Blocks per segment file. Fixed for the life of the directory; by default 131072 (1 GiB of
    /// pages of 8 KiB).
    pub segment_blocks: u32,
    /// How reads ahead and writes behind are done (`io_method`).
    pub io_method: IoMethod,
    /// The number of threads that read and write, if threads do (`io_workers`).
    pub io_workers: usize,
    /// Whether files bypass the operating system's cache (`debug_io_direct = data`). Every miss
    /// then waits for the device, so the pool should have most of the memory.
    pub direct_io: bool,
    /// The number of the process's descriptors that are left to other uses. When the stores of the
    /// process would use more than the rest, they close files that are not in use.
    pub reserved_descriptors: usize,
    /// The file system; by default the kernel's.
    pub vfs: Arc<dyn Vfs>,
}

impl Default for FileStoreOptions {
    fn default() -> Self {
        Self {
            segment_blocks: DEFAULT_SEGMENT_BLOCKS,
            io_method: IoMethod::default(),
            io_workers: DEFAULT_IO_WORKERS,
            direct_io: false,
            reserved_descriptors: DEFAULT_RESERVED_DESCRIPTORS,
            vfs: Arc::new(OsVfs),
        }
    }
}

/// A store that is being dropped may hold the lock for a moment more, while a read is being
/// finished.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn lock(vfs: &dyn Vfs, directory: &Path) -> io::Result<Arc<dyn VfsFile>> {
    let flags = OpenFlags { no_follow: true, ..OpenFlags::CREATE };
    let file = retry(|| vfs.open(&directory.join("lock"), flags))?;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(PAUSE);
        }
        if retry(|| file.try_lock())? {
            return Ok(file);
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another store has this directory open"))
}

/// The suffix of a fork's files; empty for the main fork.
fn suffix(fork: Fork) -> &'static str {
    match fork {
        Fork::Main => "",
        Fork::Fsm => "_fsm",
    }
}

/// The path of one segment of a fork.
pub(super) fn segment_path(dir: &Path, rel: RelFork, segment: u32) -> PathBuf {
    let number = rel.relation.get();
    let suffix = suffix(rel.fork);
    if segment == 0 {
        dir.join(format!("{number}{suffix}"))
    } else {
        dir.join(format!("{number}{suffix}.{segment}"))
    }
}

/// Reads a name written by [`segment_path`]; `None` for any other name.
pub(super) fn parse(name: &str) -> Option<(RelFork, u32)> {
    let (stem, segment) = match name.split_once('.') {
        Some((stem, number)) => (stem, decimal(number).filter(|&n| n > 0)?),
        None => (name, 0),
    };
    let (number, fork) = match stem.split_once('_') {
        None => (stem, Fork::Main),
        Some((number, "fsm")) => (number, Fork::Fsm),
        Some(_) => return None,
    };
    let relation = RelationId::new(decimal(number)?)?;
    Some((RelFork { relation, fork }, segment))
}

/// A decimal number as `format!` prints it: no sign, no leading zero.
fn decimal(text: &str) -> Option<u32> {
    let canonical =
        text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    if canonical { text.parse().ok() } else { None }
}

/// The number of whole pages in each segment of each fork, by the names and lengths of the files.
/// It opens none of them.
pub(super) fn list_segments(
    vfs: &dyn Vfs,
    path: &Path,
) -> io::Result<BTreeMap<RelFork, BTreeMap<u32, u32>>> {
    let mut found: BTreeMap<RelFork, BTreeMap<u32, u32>> = BTreeMap::new();
    for name in retry(|| vfs.list(path))? {
        if let Some((rel, segment)) = name.to_str().and_then(parse) {
            let blocks = retry(|| vfs.len(&path.join(&name)))? / PAGE_SIZE as u64;
            let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
            found.entry(rel).or_default().insert(segment, blocks);
        }
    }
    Ok(found)
}

impl FileStore {
    /// The fork that a file of that name belongs to, if it is a name that the store gives.
    #[must_use]
    pub fn fork_of_file(name: &str) -> Option<RelFork> {
        parse(name).map(|(rel, _)| rel)
    }
}

/// The number of files that stores have open.
static OPEN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// One open file, for as long as this lives.
#[derive(Debug)]
pub(super) struct Counted(());

impl Counted {
    pub(super) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bound, as one store sees it.
#[derive(Debug)]
pub(super) struct Budget {
    most: usize,
    /// A file was opened beyond the bound.
    exceeded: AtomicBool,
}

impl Budget {
    /// What the process's limit leaves after `reserved`. Raises the limit first as far as the
    /// system allows.
    pub(super) fn new(reserved: usize) -> Self {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        if limit.current != limit.maximum {
            let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
            // If this fails, everything works, with more opening and closing.
            let _ = setrlimit(Resource::Nofile, raised);
        }
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of_limit(usize::try_from(limit).unwrap_or(usize::MAX), reserved)
    }

    pub(super) fn of_limit(limit: usize, reserved: usize) -> Self {
        let most = limit.saturating_sub(reserved).max(limit / 4);
        Self { most, exceeded: AtomicBool::new(false) }
    }

    /// Notes that a file has been opened.
    pub(super) fn note_opened(&self) {
        if OPEN.load(Ordering::Relaxed) > self.most {
            self.exceeded.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a file was opened beyond the bound since this was last asked.
    pub(super) fn was_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed) && self.exceeded.swap(false, Ordering::Relaxed)
    }

    /// If too many files are open, the number of files that may stay open only because they await a
    /// sync. It is a quarter of the bound, so that the next time is far away.
    pub(super) fn to_keep(&self) -> Option<usize> {
        (OPEN.load(Ordering::Relaxed) > self.most / 2).then_some(self.most / 4)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_left_to_the_rest_of_the_process() {
        assert_eq!(Budget::of_limit(1024, 164).most, 860);
        assert_eq!(Budget::of_limit(256, 164).most, 92);
        assert_eq!(Budget::of_limit(100, 164).most, 25);
        let none = Budget::of_limit(0, 0);
        assert!(!none.was_exceeded());
        let _one = Counted::new();
        none.note_opened();
        assert!(none.was_exceeded() && !none.was_exceeded());
        assert_eq!(none.to_keep(), Some(0));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let dir = Path::new("");
        for fork in Fork::ALL {
            for (number, segment) in [(0, 0), (16384, 3), ((1 << 28) - 1, 65535)] {
                let rel = RelationId::constant(number).fork(fork);
                let path = segment_path(dir, rel, segment);
                assert_eq!(parse(path.to_str().unwrap()), Some((rel, segment)));
            }
        }
        for other in
            ["", ".", "16384.0", "016", "+5", "5_foo", "5_fsm_fsm", "5.", "268435456", "1.2.3"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
