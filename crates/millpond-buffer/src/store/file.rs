//! The file store: one file per relation fork, cut into segments, in one directory.
//!
//! # Layout
//! `16384` is the main fork of relation 16384. `16384_fsm` is its free space map. The second
//! gigabyte of each is in `16384.1`, `16384_fsm.1` and so on. A fork exists when its first
//! segment does. It ends at the first segment that is not full. Later segments hold data left over
//! from before a crash. The store throws that away when the fork grows that far.
//!
//! # Concurrency
//! Reads and writes of blocks take one small lock of their processor, on its shared side, to find
//! the fork object (`fork.rs`). From there to the file descriptor there are only loads. Creating,
//! growing, truncating and removing the same fork exclude each other through a mutex, striped by
//! relation.
//!
//! # Durability and failure
//! Each file written since the last sync is on a list once (`changes.rs` argues why none is
//! missed). The first failed sync stops the store for good. The kernel may have dropped the pages
//! that it couldn't write, and it reports that only once. So from then on every sync, write and
//! change of size fails. Reads go on.
//!
//! A full device shows as an error when a file grows, or when a write does not find its space. The
//! error leaves the fork's size as it was, and the caller may try again. The files of all stores
//! share a budget of descriptors (`layout.rs`). Beyond it, a store closes forks that are not
//! in use. When descriptors run out nevertheless, the store closes such forks at once and tries the
//! operation once more.

mod background;
mod changes;
mod fork;
mod layout;
mod segment;
mod transfers;
// Miri opens no directory.
#[cfg(all(test, not(miri)))]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{fmt, io};

use millpond_sync::sync::Mutex;
use millpond_vfs::{VfsDirectory, VfsFile, is_out_of_descriptors, retry};

use self::background::Background;
use self::changes::Unsynced;
use self::fork::{FileError, ForkFiles, ForkShare, Forks, MAX_SEGMENTS};
use self::layout::Budget;
pub use self::layout::{FileStoreOptions, IoMethod};
use self::segment::Folder;
use self::transfers::{Job, Pages, Piece, Pieces};
use super::{PageStore, PendingRead, PendingWrite, StoreError, Transfer};
use crate::PAGE_SIZE;
use crate::ids::{BlockNumber, RelFork, RelationId};
#[cfg(not(any(miri, copying)))]
use crate::page::words::PageWords;

/// The number of locks for changes of relations' files.
const STRIPES: usize = 32;

/// Pages in the files of a directory.
///
/// ```
/// # use millpond_buffer::*;
/// # use std::sync::Arc;
/// # let dir = tempfile::tempdir().expect("a folder");
/// # let dir = dir.path().join("data");
/// let store = Arc::new(FileStore::open(&dir)?);
/// let pool = BufferPool::new(PoolConfig::new(64, 16), store, Arc::new(NoLog))?;
/// # Ok::<(), BufferError>(())
/// ```
pub struct FileStore {
    folder: Arc<Folder>,
    directory: Arc<dyn VfsDirectory>,
    _lock: Arc<dyn VfsFile>,
    background: Background,
    forks: Forks,
    /// Excludes changes of a relation's files against each other.
    structure: Box<[Mutex<()>]>,
    unsynced: Arc<Unsynced>,
    /// Cleared when the kernel says that it can't read without waiting.
    nowait: AtomicBool,
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore")
            .field("directory", &self.folder.path)
            .field("io_method", &self.io_method())
            .finish_non_exhaustive()
    }
}

impl FileStore {
    /// Opens the directory, and creates it if need be. It is an error if another store has this
    /// directory open.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(dir, FileStoreOptions::default())
    }

    /// Opens the directory with options.
    pub fn open_with(dir: impl AsRef<Path>, options: FileStoreOptions) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        let failed = |source: io::Error| {
            StoreError::io(format!("open the directory {}", dir.display()), source)
        };
        let smallest = u32::MAX / MAX_SEGMENTS;
        if options.segment_blocks == 0 || (options.segment_blocks < smallest && !cfg!(test)) {
            return Err(failed(io::Error::new(
                io::ErrorKind::InvalidInput,
                "segments are too small",
            )));
        }
        let vfs = options.vfs;
        retry(|| vfs.create_directory(dir)).map_err(failed)?;
        let lock = layout::lock(&*vfs, dir).map_err(failed)?;
        let directory = retry(|| vfs.open_directory(dir)).map_err(failed)?;
        let io_method = match options.io_method {
            // A ring needs descriptors.
            IoMethod::IoUring if !vfs.gives_descriptors() => IoMethod::Worker,
            method => method,
        };
        let unsynced = Arc::<Unsynced>::default();
        // The directory may have unsynced names from before this call.
        unsynced.add_names();
        Ok(Self {
            folder: Arc::new(Folder {
                vfs,
                path: dir.to_owned(),
                segment_blocks: options.segment_blocks,
                direct: options.direct_io,
                budget: Budget::new(options.reserved_descriptors),
            }),
            directory,
            _lock: lock,
            background: Background::new(io_method, options.io_workers),
            forks: Forks::new(),
            structure: (0..STRIPES).map(|_| Mutex::new(())).collect(),
            unsynced,
            nowait: AtomicBool::new(!options.direct_io),
        })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.folder.path
    }

    /// How background reads and writes are done: as requested, or as the kernel allows.
    #[must_use]
    pub fn io_method(&self) -> IoMethod {
        self.background.method()
    }

    /// Finds the files of a transfer.
    fn pieces_of(
        &self,
        transfer: &Transfer,
        rel: RelFork,
        first: BlockNumber,
    ) -> Result<Pieces, StoreError> {
        let find = |fork: &ForkFiles| {
            let mut pieces = Pieces::new();
            for (index, within, _, length) in fork.pieces(first.0, transfer.count()) {
                let Some((segment, _)) = fork.segment(index, false)? else { return Ok(None) };
                pieces.push(Piece { segment: Arc::clone(segment), within, length });
            }
            Ok(Some(pieces))
        };
        let found = self.with_fork(rel, || transfer.what(), find)?;
        found.ok_or_else(|| self.beyond_end(rel, first, transfer.count()))
    }

    fn fork(&self, rel: RelFork) -> Arc<ForkShare> {
        self.forks.get(rel, || ForkFiles::new(Arc::clone(&self.folder), rel))
    }

    /// Runs a file operation. When descriptors have run out, closes files and runs it once more.
    fn with_fork<T>(
        &self,
        rel: RelFork,
        operation: impl Fn() -> String,
        mut run: impl FnMut(&ForkFiles) -> Result<T, FileError>,
    ) -> Result<T, StoreError> {
        let failed = |error: FileError| {
            let what = format!("{}: {} {}", operation(), error.verb, error.path.display());
            StoreError::io(what, error.source)
        };
        // The fork is released before others are closed: it may be idle, too.
        let first = run(&self.fork(rel));
        let done = match first {
            Err(error) if is_out_of_descriptors(&error.source) => {
                self.close_files(Some(0));
                run(&self.fork(rel))
            }
            other => other,
        };
        if self.folder.budget.was_exceeded() {
            self.close_files(self.folder.budget.to_keep());
        }
        done.map_err(failed)
    }

    /// Closes forks that are not in use. With `keep`, it also syncs and closes files that await a
    /// sync, the oldest first, until that number is left.
    fn close_files(&self, keep: Option<usize>) {
        self.forks.remove_idle();
        if let Some(keep) = keep {
            // A failure has stopped the store, and the next write reports that. Reads go on.
            let _ = self.unsynced.sync_oldest(keep);
        }
    }

    /// The error for a transfer that found its file missing or too short.
    fn beyond_end(&self, rel: RelFork, first: BlockNumber, count: usize) -> StoreError {
        match self.with_fork(
            rel,
            || format!("read the size of {rel}"),
            |fork| Ok((fork.exists()?, fork.block_count()?)),
        ) {
            Ok((false, _)) => StoreError::Missing { rel },
            Ok((true, blocks)) => StoreError::BeyondEnd {
                rel,
                first,
                count: u32::try_from(count).unwrap_or(u32::MAX),
                blocks,
            },
            Err(error) => error,
        }
    }
}

impl PageStore for FileStore {
    fn create(&self, rel: RelFork) -> Result<(), StoreError> {
        self.create_fork(rel)
    }

    fn remove(&self, relation: RelationId) -> Result<(), StoreError> {
        self.remove_forks(relation)
    }

    fn exists(&self, rel: RelFork) -> Result<bool, StoreError> {
        self.with_fork(rel, || format!("look for {rel}"), ForkFiles::exists)
    }

    fn block_count(&self, rel: RelFork) -> Result<u32, StoreError> {
        self.with_fork(rel, || format!("read the size of {rel}"), ForkFiles::block_count)
    }

    fn extend(&self, rel: RelFork, first: BlockNumber, count: u32) -> Result<(), StoreError> {
        self.extend_fork(rel, first.0.saturating_add(count))
    }

    fn truncate(&self, rel: RelFork, block_count: u32) -> Result<(), StoreError> {
        self.truncate_fork(rel, block_count)
    }

    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        self.read_into(rel, first, Pages::Exclusive(pages))
    }

    fn try_read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<bool, StoreError> {
        self.try_read_into(rel, first, Pages::Exclusive(pages))
    }

    #[cfg(not(any(miri, copying)))]
    fn read_words(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&PageWords],
    ) -> Result<(), StoreError> {
        self.read_into(rel, first, Pages::Shared(pages))
    }

    #[cfg(not(any(miri, copying)))]
    fn try_read_words(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&PageWords],
    ) -> Result<bool, StoreError> {
        self.try_read_into(rel, first, Pages::Shared(pages))
    }

    fn start_read(&self, mut read: PendingRead) {
        let (rel, first) = (read.rel(), read.first());
        // Miri and ThreadSanitizer don't see what the kernel writes. So the pages go to memory of
        // the read's own, from which they are copied.
        #[cfg(any(miri, copying))]
        drop(read.pages_mut());
        if self.background.wanted() == IoMethod::Sync {
            let result = read.read_from(self);
            return read.finish(result);
        }
        match self.pieces_of(&read.0, rel, first) {
            Ok(pieces) => self.background.submit(Job { transfer: read.0, pieces, unsynced: None }),
            Err(error) => read.finish(Err(error)),
        }
    }

    fn wait_for_read(&self, is_done: &dyn Fn() -> bool, sleep: &mut dyn FnMut()) {
        self.background.wait(is_done, sleep);
    }

    fn reads_in_background(&self) -> bool {
        self.background.wanted() != IoMethod::Sync
    }

    fn write(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&[u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        self.unsynced.check_running()?;
        let what = || format!("write block {first} of {rel}");
        let done = self.with_fork(rel, what, |fork| {
            for (index, within, start, length) in fork.pieces(first.0, pages.len()) {
                let Some((segment, _)) = fork.segment(index, false)? else { return Ok(false) };
                let written = segment.write(within, &pages[start..start + length]);
                self.unsynced.add(segment);
                written.map_err(|source| FileError::new("write", segment.path(), source))?;
            }
            Ok(true)
        })?;
        if done { Ok(()) } else { Err(self.beyond_end(rel, first, pages.len())) }
    }

    fn start_write(&self, write: PendingWrite) {
        let (rel, first) = (write.rel(), write.first());
        if self.background.wanted() == IoMethod::Sync {
            let result = self.write(rel, first, &write.pages());
            return write.finish(result);
        }
        let checked = self.unsynced.check_running();
        match checked.and_then(|()| self.pieces_of(&write.0, rel, first)) {
            Ok(pieces) => {
                let unsynced = Some(Arc::clone(&self.unsynced));
                self.background.submit(Job { transfer: write.0, pieces, unsynced });
            }
            Err(error) => write.finish(Err(error)),
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.unsynced.sync(&*self.directory, &self.folder.path)
    }

    fn relations(&self) -> Result<Vec<RelationId>, StoreError> {
        let Folder { vfs, path, .. } = &*self.folder;
        let names = retry(|| vfs.list(path)).map_err(|error| {
            StoreError::io(format!("list the directory {}", path.display()), error)
        })?;
        let parsed = names.iter().filter_map(|name| layout::parse(name.to_str()?));
        let mut found: Vec<_> = parsed.map(|(rel, _)| rel.relation).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn forks(&self) -> Result<Vec<(RelFork, u32)>, StoreError> {
        self.list_forks()
    }
}
