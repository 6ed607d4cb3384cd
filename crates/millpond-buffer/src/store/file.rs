//! The file store: one file per relation fork, cut into segments, in one directory.
//!
//! # Layout
//! `16384` is the main fork of relation 16384, `16384_fsm` and `16384_vm` are its other forks; the second gigabyte
//! of each is in `16384.1`, `16384_fsm.1` and so on. A fork exists when its first segment does. It ends at the
//! first segment that is not full; what lies in later segments is left over from before a crash and is
//! thrown away when the fork grows that far.
//!
//! # Concurrency
//! Reads and writes of blocks take no lock but the shared side of a small one, of their processor's, to find the fork
//! object (`forks.rs`); from there to the file descriptor there are only loads. Creating, growing, truncating and removing
//! the same fork exclude each other through a mutex, striped by relation.
//!
//! # Durability and failure
//! Each file written since the last sync is on a list once (`segment.rs` has the argument why none is missed). The
//! first failed sync stops the store for good: the kernel may have dropped the pages it couldn't write and
//! reports that only once, so from then on every sync, write and change of size fails. Reads go on.
//! A full device shows when a file grows (or when a write does not find its space) as an error that leaves the
//! fork's size as it was; it may be tried again.
//! A file that is read often has a descriptor for each processor (`near.rs`), as far as the process's limit allows.
//! When descriptors run out, forks that nobody is using are closed and the operation tried once more.

mod background;
mod fork;
mod forks;
mod names;
mod near;
mod segment;
// Miri opens no directory.
#[cfg(all(test, not(miri)))]
mod tests;
mod unsynced;

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond_sync::fill::IoTarget;
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use smallvec::SmallVec;

pub use self::background::IoMethod;
use self::background::{Background, Job, Piece, Pieces};
use self::fork::{FileError, Fork, MAX_SEGMENTS};
use self::forks::{ForkShare, Forks};
use self::near::Spare;
use self::segment::{Attempt, Segment};
use self::unsynced::Unsynced;
use super::{PageBuffer, PageStore, PendingRead, PendingWrite, StoreError, Transfer};
use crate::PAGE_SIZE;
use crate::ids::{self, BlockNumber, RelFork, RelationId};
#[cfg(not(any(miri, copying)))]
use crate::{PageWords, words};

const STRIPES: usize = 32;
const DEFAULT_SEGMENT_BLOCKS: u32 = 131_072;
const DEFAULT_IO_WORKERS: usize = 3;

/// How a [`FileStore`] lays out its files. Start from the default and change what you need.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FileStoreOptions {
    /// Blocks per segment file. Fixed for the life of the directory; 131072 (1 GiB) unless told otherwise.
    pub segment_blocks: u32,
    /// How reads ahead of their use, and writes behind them, are done (`io_method`).
    pub io_method: IoMethod,
    /// How many threads read and write, if threads do (`io_workers`).
    pub io_workers: usize,
    /// Whether files pass the operating system's cache by (`debug_io_direct = data`). Every miss then waits for
    /// the device, so a pool should be most of the memory.
    pub direct_io: bool,
}

impl Default for FileStoreOptions {
    fn default() -> Self {
        Self {
            segment_blocks: DEFAULT_SEGMENT_BLOCKS,
            io_method: IoMethod::default(),
            io_workers: DEFAULT_IO_WORKERS,
            direct_io: false,
        }
    }
}

/// Pages in the files of a directory.
pub struct FileStore {
    dir: Arc<Path>,
    dir_handle: OwnedFd,
    segment_blocks: u32,
    direct: bool,
    /// For descriptors of files that are read often.
    spare: Arc<Spare>,
    background: Background,
    forks: Forks,
    /// Excludes changes of a relation's files against each other.
    structure: Box<[Mutex<()>]>,
    unsynced: Arc<Unsynced>,
    /// Names were added to or removed from the directory since the last sync.
    dir_dirty: AtomicBool,
    /// One sync at a time: a second caller's guarantee includes what the first one took off the list.
    syncing: Mutex<()>,
    /// Cleared when the kernel says that it can't read without waiting.
    nowait: AtomicBool,
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore")
            .field("directory", &self.dir)
            .field("io_method", &self.io_method())
            .finish_non_exhaustive()
    }
}

impl FileStore {
    /// Opens the directory, creating it if need be.
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
        fs::create_dir_all(dir).map_err(failed)?;
        let dir_handle = rustix::fs::open(
            dir,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| failed(errno.into()))?;
        raise_descriptor_limit();
        Ok(Self {
            dir: Arc::from(dir),
            dir_handle,
            segment_blocks: options.segment_blocks,
            direct: options.direct_io,
            spare: Arc::new(Spare::by_limit()),
            background: Background::new(options.io_method, options.io_workers),
            forks: Forks::new(),
            structure: (0..STRIPES).map(|_| Mutex::new(())).collect(),
            unsynced: Arc::default(),
            dir_dirty: AtomicBool::new(true),
            syncing: Mutex::new(()),
            nowait: AtomicBool::new(!options.direct_io),
        })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// How reads ahead of their use are done: as was asked for, or as the kernel lets us.
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
        let find = |fork: &Fork| {
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

    /// Reads blocks from `first`.
    fn read_into(
        &self,
        rel: RelFork,
        first: BlockNumber,
        mut pages: Pages<'_, '_>,
    ) -> Result<(), StoreError> {
        let what = || format!("read block {first} of {rel}");
        match self.with_fork(rel, what, |fork| fork.read(first.0, &mut pages.targets(), true))? {
            Attempt::Done => Ok(()),
            _ => Err(self.beyond_end(rel, first, pages.count())),
        }
    }

    /// The same if that needs no waiting for a device.
    fn try_read_into(
        &self,
        rel: RelFork,
        first: BlockNumber,
        mut pages: Pages<'_, '_>,
    ) -> Result<bool, StoreError> {
        if !self.nowait.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let what = || format!("read block {first} of {rel}");
        match self.with_fork(rel, what, |fork| fork.read(first.0, &mut pages.targets(), false))? {
            Attempt::Done => Ok(true),
            Attempt::WouldWait => Ok(false),
            Attempt::Unsupported => {
                self.nowait.store(false, Ordering::Relaxed);
                Ok(false)
            }
            Attempt::End => Err(self.beyond_end(rel, first, pages.count())),
        }
    }

    /// Reads by way of memory that is aligned for direct I/O.
    fn read_aligned(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        let mut buffer = PageBuffer::new(pages.len());
        self.read(rel, first, &mut buffer.pages_mut())?;
        for (page, read) in pages.iter_mut().zip(buffer.pages()) {
            page.copy_from_slice(read);
        }
        Ok(())
    }

    fn structure(&self, relation: RelationId) -> &Mutex<()> {
        &self.structure[relation.get() as usize % STRIPES]
    }

    fn fork(&self, rel: RelFork) -> Arc<ForkShare> {
        self.forks.get(rel, || {
            let (dir, spare) = (Arc::clone(&self.dir), Arc::clone(&self.spare));
            Fork::new(dir, rel, self.segment_blocks, self.direct, spare)
        })
    }

    /// Runs a file operation; when descriptors have run out, closes idle forks and runs it once more.
    fn with_fork<T>(
        &self,
        rel: RelFork,
        operation: impl Fn() -> String,
        mut run: impl FnMut(&Fork) -> Result<T, FileError>,
    ) -> Result<T, StoreError> {
        let failed = |error: FileError| {
            let what = format!("{}: {} {}", operation(), error.verb, error.path.display());
            StoreError::io(what, error.source)
        };
        match run(&self.fork(rel)) {
            Err(error) if is_out_of_descriptors(&error.source) => {
                self.close_idle();
                run(&self.fork(rel)).map_err(failed)
            }
            other => other.map_err(failed),
        }
    }

    /// Closes the files of all forks that no operation is using. Files still to be synced stay open by the list.
    fn close_idle(&self) {
        self.forks.remove_idle();
    }

    /// Opens a segment for growth, creating its file if need be.
    fn segment_to_grow<'f>(
        &self,
        fork: &'f Fork,
        index: u32,
    ) -> Result<Option<&'f Arc<Segment>>, FileError> {
        let Some((segment, created)) = fork.segment(index, true)? else { return Ok(None) };
        if created {
            self.dir_dirty.store(true, Ordering::Release);
        }
        Ok(Some(segment))
    }

    fn extend_fork(&self, fork: &Fork, from: u32, to: u32) -> Result<bool, FileError> {
        for (index, within, _, length) in fork.pieces(from, (to - from) as usize) {
            let Some(segment) = self.segment_to_grow(fork, index)? else { return Ok(false) };
            // The fork ended before this segment: whatever it holds is left over from before a crash.
            let cleared = if within == 0 { segment.shrink(0) } else { Ok(()) };
            let grown = cleared.and_then(|()| segment.grow(within + length as u32));
            self.unsynced.add(segment);
            grown.map_err(|source| FileError::new("extend", segment.path(), source))?;
        }
        Ok(true)
    }

    fn truncate_fork(&self, fork: &Fork, blocks: u32, old: u32) -> Result<(), FileError> {
        // From the end, so that a crash in between leaves a fork without a hole.
        let pieces: Vec<_> = fork.pieces(blocks, (old - blocks) as usize).collect();
        for (index, within, ..) in pieces.into_iter().rev() {
            let Some((segment, _)) = fork.segment(index, false)? else { continue };
            let shrunk = segment.shrink(within);
            self.unsynced.add(segment);
            shrunk.map_err(|source| FileError::new("truncate", segment.path(), source))?;
        }
        Ok(())
    }

    /// Removes a fork's files. The caller excludes other changes of it.
    fn remove_fork(&self, rel: RelFork) -> Result<(), StoreError> {
        if let Some(fork) = self.forks.remove(rel) {
            // Give the space back even while a reader still has the file open.
            if let Ok(Some((segment, _))) = fork.segment(0, false) {
                let _ = segment.shrink(0);
            }
            fork.set_removed();
        }
        let unlinked = self.unlink_fork(rel);
        // Who has looked at it meanwhile may have opened a file that has no name now; a new fork must not get that.
        if let Some(late) = self.forks.remove(rel) {
            late.set_removed();
        }
        unlinked
    }

    fn unlink_fork(&self, rel: RelFork) -> Result<(), StoreError> {
        for index in 0..=MAX_SEGMENTS {
            let path = names::segment_path(&self.dir, rel, index);
            match fs::remove_file(&path) {
                Ok(()) => self.dir_dirty.store(true, Ordering::Release),
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => {
                    return Err(StoreError::io(format!("remove {}", path.display()), error));
                }
            }
        }
        Ok(())
    }

    fn sync_directory(&self) -> Result<(), StoreError> {
        if self.dir_dirty.swap(false, Ordering::AcqRel) {
            rustix::fs::fsync(&self.dir_handle).map_err(|errno| {
                self.unsynced
                    .stop(format!("sync the directory {}", self.dir.display()), errno.into())
            })?;
        }
        Ok(())
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
        self.unsynced.check_running()?;
        let _alone = self.structure(rel.relation).lock();
        self.with_fork(
            rel,
            || format!("create {rel}"),
            |fork| self.segment_to_grow(fork, 0).map(|_| ()),
        )
    }

    fn remove(&self, relation: RelationId) -> Result<(), StoreError> {
        self.unsynced.check_running()?;
        let _alone = self.structure(relation).lock();
        // The main fork last: while it is there, a removal that was cut short is found again.
        for fork in ids::Fork::ALL.into_iter().rev() {
            self.remove_fork(RelFork { relation, fork })?;
        }
        Ok(())
    }

    fn exists(&self, rel: RelFork) -> Result<bool, StoreError> {
        self.with_fork(rel, || format!("look for {rel}"), Fork::exists)
    }

    fn block_count(&self, rel: RelFork) -> Result<u32, StoreError> {
        self.with_fork(rel, || format!("read the size of {rel}"), Fork::block_count)
    }

    fn extend(&self, rel: RelFork, first: BlockNumber, count: u32) -> Result<(), StoreError> {
        self.unsynced.check_running()?;
        let _alone = self.structure(rel.relation).lock();
        let end = first.0.saturating_add(count);
        let what = || format!("extend {rel} to {end} blocks");
        let done = self.with_fork(rel, what, |fork| {
            if !fork.exists()? {
                return Ok(false);
            }
            let old = fork.block_count()?;
            if old < end { self.extend_fork(fork, old, end) } else { Ok(true) }
        })?;
        if done { Ok(()) } else { Err(StoreError::Missing { rel }) }
    }

    fn truncate(&self, rel: RelFork, block_count: u32) -> Result<(), StoreError> {
        self.unsynced.check_running()?;
        let _alone = self.structure(rel.relation).lock();
        let done = self.with_fork(
            rel,
            || format!("truncate {rel} to {block_count} blocks"),
            |fork| {
                if !fork.exists()? {
                    return Ok(false);
                }
                let old = fork.block_count()?;
                if old > block_count {
                    self.truncate_fork(fork, block_count, old)?;
                }
                Ok(true)
            },
        )?;
        if done { Ok(()) } else { Err(StoreError::Missing { rel }) }
    }

    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        if self.direct && !pages.iter().all(|page| segment::is_aligned(page.as_ptr())) {
            return self.read_aligned(rel, first, pages);
        }
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
        if self.direct && !pages.iter().all(|words| segment::is_aligned(words.as_ptr().cast())) {
            // Not those of a pool.
            let mut buffer = PageBuffer::new(pages.len());
            self.read(rel, first, &mut buffer.pages_mut())?;
            pages.iter().zip(buffer.pages()).for_each(|(words, page)| words::copy_in(words, page));
            return Ok(());
        }
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
        // Of what a kernel does in the background neither knows more than of what it does in a call.
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
        let _alone = self.syncing.lock();
        self.unsynced.check_running()?;
        self.unsynced.sync()?;
        self.sync_directory()
    }

    fn relations(&self) -> Result<Vec<RelationId>, StoreError> {
        let failed =
            |error| StoreError::io(format!("list the directory {}", self.dir.display()), error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            found.extend(name.to_str().and_then(names::parse).map(|(rel, _)| rel.relation));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

/// Where pages go that are read.
enum Pages<'p, 'a> {
    Exclusive(&'p mut [&'a mut [u8; PAGE_SIZE]]),
    /// Others may look at them meanwhile.
    #[cfg(not(any(miri, copying)))]
    Shared(&'p [&'a PageWords]),
}

impl Pages<'_, '_> {
    fn count(&self) -> usize {
        match self {
            Self::Exclusive(pages) => pages.len(),
            #[cfg(not(any(miri, copying)))]
            Self::Shared(pages) => pages.len(),
        }
    }

    /// All of them, to be filled.
    fn targets(&mut self) -> SmallVec<[IoTarget<'_>; 2]> {
        match self {
            Self::Exclusive(pages) => {
                pages.iter_mut().map(|page| IoTarget::exclusive(&mut page[..])).collect()
            }
            #[cfg(not(any(miri, copying)))]
            Self::Shared(pages) => pages.iter().map(|words| IoTarget::shared(&words[..])).collect(),
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
}

/// Asks for as many descriptors as the system allows this process. Without them all still works, more slowly.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let _ =
            setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}
