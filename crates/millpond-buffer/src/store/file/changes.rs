//! Changes of a store's files: which files a fork has and how long they are, and what is to be
//! synced.
//!
//! **Changes** of the same relation exclude each other. Relations may share a lock.
//!
//! # What is to be synced
//! [`Unsynced`] has the changes since the last sync, and whether the store has stopped. The store
//! shares it with the threads that write for it in the background.
//!
//! **State.** A list has the files that have been written, each of them once: a file's mark says
//! that it is on the list. A flag says that names have come or gone. One lock guards list, marks
//! and flag.
//!
//! **Protocol.** A writer calls [`Unsynced::add`] *after* its system call has returned. A sync
//! takes the list, with the marks, and only then calls the kernel. So a write that ended before the
//! sync began is on the list that this sync takes, or was on an earlier sync's list. Syncs exclude
//! each other, so the earlier one has ended. The same argument holds for names.
//!
//! **Descriptors.** A file on the list stays open. It is synced before it is closed, by the
//! descriptor that it was written by. Linux may forget a failed write of a page once no process has
//! the file open. So when the store must close files for lack of descriptors, it syncs the oldest
//! on the list ahead of time.
//!
//! **Failure.** The first sync that fails stops the store, and what it took is not put back. A sync
//! that waited for it fails, too.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use millpond_sync::sync::{Mutex, MutexGuard};
use millpond_vfs::{VfsDirectory, exists, retry};

use super::FileStore;
use super::fork::{FileError, ForkFiles, MAX_SEGMENTS};
use super::layout::{list_segments, segment_path};
use super::segment::{Folder, Segment};
use crate::ids::{Fork, RelFork, RelationId};
use crate::store::StoreError;

impl FileStore {
    /// Each fork of which there is a file, with its length. Like a read, it counts up to the first
    /// segment that is not full.
    pub(super) fn list_forks(&self) -> Result<Vec<(RelFork, u32)>, StoreError> {
        let Folder { vfs, path, .. } = &*self.folder;
        let segments = list_segments(&**vfs, path).map_err(|error| {
            StoreError::io(format!("list the directory {}", path.display()), error)
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

#[derive(Default)]
struct Changes {
    files: Vec<Arc<Segment>>,
    names: bool,
}

impl Changes {
    /// Takes all of them.
    fn take(&mut self) -> Self {
        Self { files: self.take_files(0), names: std::mem::take(&mut self.names) }
    }

    /// Takes the oldest files and leaves the given number.
    fn take_files(&mut self, keep: usize) -> Vec<Arc<Segment>> {
        let later = self.files.split_off(self.files.len().saturating_sub(keep));
        let taken = std::mem::replace(&mut self.files, later);
        for segment in &taken {
            segment.set_listed(false);
        }
        taken
    }
}

/// Files and names to be synced.
#[derive(Default)]
pub(super) struct Unsynced {
    changes: Mutex<Changes>,
    /// Held by a sync until all that it took has been synced.
    syncing: Mutex<()>,
    stopped: OnceLock<Arc<str>>,
}

impl Unsynced {
    /// Notes that a write to the file has ended, with success or not: the next sync has to sync it.
    pub(super) fn add(&self, segment: &Arc<Segment>) {
        let mut changes = self.changes.lock();
        if !segment.set_listed(true) {
            changes.files.push(Arc::clone(segment));
        }
    }

    /// Notes that a name has come or gone, or may have: the next sync has to sync the directory.
    pub(super) fn add_names(&self) {
        self.changes.lock().names = true;
    }

    /// Whether names are to be synced, and the number of files.
    #[cfg(all(test, not(miri)))]
    pub(super) fn left(&self) -> (bool, usize) {
        let changes = self.changes.lock();
        (changes.names, changes.files.len())
    }

    /// Syncs everything that had ended when this began: the files, then the names in the directory.
    pub(super) fn sync(&self, directory: &dyn VfsDirectory, path: &Path) -> Result<(), StoreError> {
        let _alone = self.syncing.lock();
        self.check_running()?;
        let changes = self.changes.lock().take();
        for segment in changes.files {
            self.sync_file(&segment)?;
        }
        if changes.names {
            let what = || format!("sync the directory {}", path.display());
            directory.sync().map_err(|error| self.stop(what(), error))?;
        }
        Ok(())
    }

    /// Syncs the files that have been on the list for longest, until the given number is left, and
    /// releases them.
    pub(super) fn sync_oldest(&self, keep: usize) -> Result<(), StoreError> {
        let _alone = self.syncing.lock();
        self.check_running()?;
        let oldest = self.changes.lock().take_files(keep);
        oldest.into_iter().try_for_each(|segment| self.sync_file(&segment))
    }

    fn sync_file(&self, segment: &Segment) -> Result<(), StoreError> {
        if segment.is_removed() {
            return Ok(());
        }
        let what = || format!("sync {}", segment.path().display());
        segment.sync_data().map_err(|error| self.stop(what(), error))
    }

    /// Stops the store for good: how much of the written data the device has is unknown.
    pub(super) fn stop(&self, operation: String, source: io::Error) -> StoreError {
        let why: Arc<str> = format!("could not {operation}: {source}").into();
        // This comes first: writing the line to the log may panic, and even then nothing may be
        // written afterwards.
        let _ = self.stopped.set(Arc::clone(&why));
        tracing::error!(%why, "a sync failed: the store accepts no more writes until a restart");
        StoreError::io(operation, source)
    }

    pub(super) fn check_running(&self) -> Result<(), StoreError> {
        match self.stopped.get() {
            None => Ok(()),
            Some(why) => Err(StoreError::Stopped { why: Arc::clone(why) }),
        }
    }
}

// Miri opens no files.
#[cfg(all(test, not(any(loom, shuttle, miri))))]
#[allow(clippy::unwrap_used)]
mod tests {
    use millpond_vfs::testing::{AskingVfs, Call};
    use millpond_vfs::{OsVfs, Vfs};

    use super::*;
    use crate::store::file::layout::Budget;

    /// An action for a sync of a file.
    type AtSync = dyn Fn() -> io::Result<()> + Send + Sync;

    /// A directory with written files, and the action at their next sync.
    struct World {
        folder: Folder,
        directory: Arc<dyn VfsDirectory>,
        unsynced: Unsynced,
        at_sync: Arc<Mutex<Option<Box<AtSync>>>>,
        _dir: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let at_sync: Arc<Mutex<Option<Box<AtSync>>>> = Arc::default();
            let hook = Arc::clone(&at_sync);
            let vfs = AskingVfs::new(OsVfs, move |call, _| match call {
                Call::SyncData => hook.lock().take().map_or(Ok(()), |act| act()),
                _ => Ok(()),
            });
            let directory = vfs.open_directory(dir.path()).unwrap();
            let path = dir.path().to_owned();
            let budget = Budget::new(0);
            let folder = Folder { vfs, path, segment_blocks: 3, direct: false, budget };
            Self { folder, directory, unsynced: Unsynced::default(), at_sync, _dir: dir }
        }

        fn written(&self, name: &str) -> Arc<Segment> {
            let path = self.folder.path.join(name);
            let segment = Arc::new(Segment::open(&self.folder, path, true).unwrap().unwrap());
            segment.grow(1).unwrap();
            self.unsynced.add(&segment);
            segment
        }

        fn sync(&self) -> Result<(), StoreError> {
            self.unsynced.sync(&*self.directory, &self.folder.path)
        }
    }

    /// What the kernel synced before the write ended need not include all of the write.
    #[test]
    fn a_write_that_ends_while_its_file_is_synced_is_synced_again() {
        let world = Arc::new(World::new());
        let segment = world.written("1");
        let later = Arc::downgrade(&world);
        *world.at_sync.lock() = Some(Box::new(move || {
            later.upgrade().into_iter().for_each(|world| world.unsynced.add(&segment));
            Ok(())
        }));
        world.sync().unwrap();
        assert_eq!(world.unsynced.left(), (false, 1));
        world.sync().unwrap();
        assert_eq!(world.unsynced.left(), (false, 0));
    }

    #[test]
    fn the_oldest_files_are_synced_and_closed() {
        let world = World::new();
        let mut files: Vec<_> = ["1", "2", "3"].map(|name| world.written(name)).into();
        let last = Arc::downgrade(&files.pop().unwrap());
        let first = Arc::downgrade(&files.remove(0));
        world.unsynced.sync_oldest(1).unwrap();
        assert_eq!(world.unsynced.left(), (false, 1));
        assert!(first.upgrade().is_none() && last.upgrade().is_some());
        // It is written again, so it is on the list again.
        world.unsynced.add(&files[0]);
        assert_eq!(world.unsynced.left(), (false, 2));
    }

    #[test]
    fn the_first_sync_that_fails_stops_the_store() {
        let world = World::new();
        let _files = ["1", "2"].map(|name| world.written(name));
        *world.at_sync.lock() = Some(Box::new(|| Err(io::Error::other("made to fail"))));
        assert!(world.sync().unwrap_err().to_string().contains("made to fail"));
        assert!(matches!(world.sync(), Err(StoreError::Stopped { .. })));
        assert!(matches!(world.unsynced.check_running(), Err(StoreError::Stopped { .. })));
    }
}
