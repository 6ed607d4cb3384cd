//! The options of a file store, and its forks' files: listed, created, extended, truncated,
//! removed.
//!
//! **The list** of forks and their lengths comes from the names and lengths of the files. It opens
//! none of them.
//!
//! **Changes** of the same relation exclude each other. Relations may share a lock.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use millpond_sync::sync::MutexGuard;
use millpond_vfs::{OsVfs, Vfs, exists, retry};

use super::fork::{FileError, ForkFiles, MAX_SEGMENTS};
use super::layout::{parse, segment_path};
use super::segment::{Folder, Segment};
use super::{FileStore, IoMethod};
use crate::PAGE_SIZE;
use crate::ids::{Fork, RelFork, RelationId};
use crate::store::StoreError;

const DEFAULT_SEGMENT_BLOCKS: u32 = 131_072;
const DEFAULT_IO_WORKERS: usize = 3;
const DEFAULT_RESERVED_DESCRIPTORS: usize = 64;

/// Options of a [`FileStore`](super::FileStore). Start from the default and change what you need.
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

impl FileStore {
    /// The fork that a file of that name belongs to, if it is a name that the store gives.
    #[must_use]
    pub fn fork_of_file(name: &str) -> Option<RelFork> {
        parse(name).map(|(rel, _)| rel)
    }

    /// Each fork of which there is a file, with its length. Like a read, it counts up to the first
    /// segment that is not full.
    pub(super) fn list_forks(&self) -> Result<Vec<(RelFork, u32)>, StoreError> {
        let segments = self.list_segments().map_err(|error| {
            StoreError::io(format!("list the directory {}", self.folder.path.display()), error)
        })?;
        let length = |segments: &BTreeMap<u32, u32>| {
            let mut total = 0_u32;
            for index in 0.. {
                let blocks =
                    segments.get(&index).copied().unwrap_or(0).min(self.folder.segment_blocks);
                total = total.saturating_add(blocks);
                if blocks < self.folder.segment_blocks {
                    break;
                }
            }
            total
        };
        Ok(segments.iter().map(|(rel, segments)| (*rel, length(segments))).collect())
    }

    /// The number of whole pages in each segment of each fork.
    fn list_segments(&self) -> io::Result<BTreeMap<RelFork, BTreeMap<u32, u32>>> {
        let mut found: BTreeMap<RelFork, BTreeMap<u32, u32>> = BTreeMap::new();
        let Folder { vfs, path, .. } = &*self.folder;
        for name in retry(|| vfs.list(path))? {
            if let Some((rel, segment)) = name.to_str().and_then(parse) {
                let blocks = retry(|| vfs.len(&path.join(&name)))? / PAGE_SIZE as u64;
                let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
                found.entry(rel).or_default().insert(segment, blocks);
            }
        }
        Ok(found)
    }
}

impl FileStore {
    fn begin_change(&self, relation: RelationId) -> Result<MutexGuard<'_, ()>, StoreError> {
        self.unsynced.check_running()?;
        Ok(self.structure[relation.get() as usize % self.structure.len()].lock())
    }

    pub(super) fn create_fork(&self, rel: RelFork) -> Result<(), StoreError> {
        let _alone = self.begin_change(rel.relation)?;
        let create = |fork: &ForkFiles| self.segment_to_grow(fork, 0).map(|_| ());
        self.with_fork(rel, || format!("create {rel}"), create)
    }

    pub(super) fn remove_forks(&self, relation: RelationId) -> Result<(), StoreError> {
        let _alone = self.begin_change(relation)?;
        // The main fork is last: while it is there, the next call finds a removal that was cut
        // short.
        for fork in Fork::ALL.into_iter().rev() {
            self.remove_fork(RelFork { relation, fork })?;
        }
        Ok(())
    }

    pub(super) fn extend_fork(&self, rel: RelFork, end: u32) -> Result<(), StoreError> {
        let what = || format!("extend {rel} to {end} blocks");
        self.resize(
            rel,
            what,
            |fork, old| if old < end { self.grow(fork, old, end) } else { Ok(true) },
        )
    }

    pub(super) fn truncate_fork(&self, rel: RelFork, end: u32) -> Result<(), StoreError> {
        let what = || format!("truncate {rel} to {end} blocks");
        self.resize(rel, what, |fork, old| {
            if old > end {
                self.shrink(fork, end, old)?;
            }
            Ok(true)
        })
    }

    /// Calls `change` with the fork and its length; `false` means that the fork isn't there.
    fn resize(
        &self,
        rel: RelFork,
        what: impl Fn() -> String,
        change: impl Fn(&ForkFiles, u32) -> Result<bool, FileError>,
    ) -> Result<(), StoreError> {
        let _alone = self.begin_change(rel.relation)?;
        let run = |fork: &ForkFiles| Ok(fork.exists()? && change(fork, fork.block_count()?)?);
        if self.with_fork(rel, what, run)? { Ok(()) } else { Err(StoreError::Missing { rel }) }
    }

    /// Opens a segment for growth, creating its file if need be.
    fn segment_to_grow<'f>(
        &self,
        fork: &'f ForkFiles,
        index: u32,
    ) -> Result<Option<&'f Arc<Segment>>, FileError> {
        let Some((segment, created)) = fork.segment(index, true)? else { return Ok(None) };
        if created {
            self.unsynced.add_names();
        }
        Ok(Some(segment))
    }

    fn grow(&self, fork: &ForkFiles, from: u32, to: u32) -> Result<bool, FileError> {
        for (index, within, _, length) in fork.pieces(from, (to - from) as usize) {
            let Some(segment) = self.segment_to_grow(fork, index)? else { return Ok(false) };
            // The fork ended before this segment, so what the segment holds is left over from
            // before a crash.
            let cleared = if within == 0 { segment.shrink(0) } else { Ok(()) };
            let grown = cleared.and_then(|()| segment.grow(within + length as u32));
            self.unsynced.add(segment);
            grown.map_err(|source| FileError::new("extend", segment.path(), source))?;
        }
        Ok(true)
    }

    fn shrink(&self, fork: &ForkFiles, blocks: u32, old: u32) -> Result<(), FileError> {
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

    fn remove_fork(&self, rel: RelFork) -> Result<(), StoreError> {
        if let Some(fork) = self.forks.remove(rel) {
            // Give the space back even while a reader still has the file open.
            if let Ok(Some((segment, _))) = fork.segment(0, false) {
                let _ = segment.shrink(0);
            }
            fork.set_removed();
        }
        let unlinked = self.unlink_fork(rel);
        // A concurrent lookup may have opened a file that has no name now. A new fork must not get
        // that.
        if let Some(late) = self.forks.remove(rel) {
            late.set_removed();
        }
        unlinked
    }

    /// Removes the names of a fork's segments, the last one first. So a removal that was cut short
    /// leaves no gap, and the next one finds what is left.
    fn unlink_fork(&self, rel: RelFork) -> Result<(), StoreError> {
        let path = |index| segment_path(&self.folder.path, rel, index);
        let mut segments = 0;
        while segments <= MAX_SEGMENTS && self.is_there(&path(segments))? {
            segments += 1;
        }
        for path in (0..segments).rev().map(path) {
            let removed = retry(|| self.folder.vfs.remove(&path));
            // A call that fails may have removed the name first.
            self.unsynced.add_names();
            match removed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other
                    .map_err(|error| StoreError::io(format!("remove {}", path.display()), error))?,
            }
        }
        Ok(())
    }

    fn is_there(&self, path: &Path) -> Result<bool, StoreError> {
        exists(&*self.folder.vfs, path)
            .map_err(|error| StoreError::io(format!("look for {}", path.display()), error))
    }
}
