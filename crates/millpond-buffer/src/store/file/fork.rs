//! One fork: its segments, opened on first use, and transfers that may cross segment borders.
//!
//! The table of open segments is a tree of `OnceLock`s, so finding an open file takes loads only.
//! An open segment stays open as long as the fork object lives. Truncation leaves its file in
//! place, empty.
//!
//! [`Forks`] finds the fork objects of a store by name. A thread that uses a fork takes the shared
//! side of a lock to find it. It also counts a reference, so that the fork isn't closed meanwhile.
//! With one lock and one count for all threads, each miss would write lines that other processors
//! have just written. So each processor has a table of its own, with counts of its own. That takes
//! 5% off a miss (3.38 µs instead of 3.55, two threads).
//!
//! **State.** `all` has each fork object. A processor's table has *shares* of the forks used there.
//! Each share has one reference to its fork, and each user of the fork has one to the share.
//!
//! **Invariants.**
//! * A fork that is not in `all` is in no table, once its removal has ended. The removal takes it
//!   from `all` first, then from the tables. A thread that enters a fork in a table looks in `all`
//!   under that table's lock. So either the removal finds the fork in the table, or the thread did
//!   not find it in `all`.
//! * Locks are taken table first, then `all`; a removal has one of them at a time.
//! * A fork is idle if its shares have no users and only `all` still has it.

use super::layout::segment_path;
use super::segment::{Folder, Segment, whole_pages};
use crate::ids::RelFork;
use crate::threads;
use crossbeam_utils::CachePadded;
use millpond_sync::sync::RwLock;
use millpond_vfs::retry;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

const CHUNK: usize = 256;
/// Enough for 2^32 blocks in the smallest segments that [`super::FileStoreOptions`] allows.
const CHUNKS: usize = 256;

/// The most segments a fork can have.
pub(super) const MAX_SEGMENTS: u32 = (CHUNK * CHUNKS) as u32;

type Slot = OnceLock<Arc<Segment>>;
type Chunk = OnceLock<Box<[Slot]>>;

/// An error of one file, with what was being done to it.
#[derive(Debug)]
pub(super) struct FileError {
    pub(super) verb: &'static str,
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

impl FileError {
    pub(super) fn new(verb: &'static str, path: &Path, source: io::Error) -> Self {
        Self { verb, path: path.to_path_buf(), source }
    }
}

pub(super) struct ForkFiles {
    folder: Arc<Folder>,
    rel: RelFork,
    removed: AtomicBool,
    first: Slot,
    rest: OnceLock<Box<[Chunk]>>,
}

impl ForkFiles {
    pub(super) fn new(folder: Arc<Folder>, rel: RelFork) -> Self {
        Self {
            folder,
            rel,
            removed: AtomicBool::new(false),
            first: Slot::new(),
            rest: OnceLock::new(),
        }
    }

    /// Ensures that no more files are opened through this object: their names may belong to a new
    /// relation.
    pub(super) fn set_removed(&self) {
        self.removed.store(true, Ordering::Release);
        for segment in self.open_segments() {
            segment.set_removed();
        }
    }

    fn open_segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        let chunks = self.rest.get().into_iter().flat_map(|chunks| chunks.iter());
        let rest = chunks.filter_map(OnceLock::get).flat_map(|chunk| chunk.iter());
        std::iter::once(&self.first).chain(rest).filter_map(OnceLock::get)
    }

    /// The segment if its file is open. Allocates no slot for one that isn't.
    fn open_segment(&self, index: u32) -> Option<&Arc<Segment>> {
        let Some(index) = (index as usize).checked_sub(1) else { return self.first.get() };
        let chunk = self.rest.get()?.get(index / CHUNK)?.get()?;
        chunk[index % CHUNK].get()
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        let Some(index) = (index as usize).checked_sub(1) else { return Some(&self.first) };
        if index >= CHUNK * CHUNKS {
            return None;
        }
        let chunks = self.rest.get_or_init(|| (0..CHUNKS).map(|_| OnceLock::new()).collect());
        let chunk = chunks[index / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Slot::new()).collect());
        Some(&chunk[index % CHUNK])
    }

    /// The open segment; `None` if there is no such file and `create` is false. The flag says that
    /// this call may have created the file.
    pub(super) fn segment(
        &self,
        index: u32,
        create: bool,
    ) -> Result<Option<(&Arc<Segment>, bool)>, FileError> {
        let path = || segment_path(&self.folder.path, self.rel, index);
        let Some(slot) = self.slot(index) else {
            return Err(FileError::new("open", &path(), io::ErrorKind::FileTooLarge.into()));
        };
        if let Some(segment) = slot.get() {
            return Ok(Some((segment, false)));
        }
        if self.removed.load(Ordering::Acquire) {
            return Ok(None);
        }
        let path = path();
        match Segment::open(&self.folder, path.clone(), create) {
            Ok(None) => Ok(None),
            // Two openers may meet here: the second file is closed again.
            Ok(Some(opened)) => Ok(Some((slot.get_or_init(|| Arc::new(opened)), create))),
            Err(source) => Err(FileError::new("open", &path, source)),
        }
    }

    /// Whether the fork exists: whether its first segment does.
    pub(super) fn exists(&self) -> Result<bool, FileError> {
        Ok(self.segment(0, false)?.is_some())
    }

    /// The number of whole pages up to the first segment that is not full. Opens no file: a
    /// relation of a terabyte has a thousand segments, and only those in use are worth a
    /// descriptor.
    pub(super) fn block_count(&self) -> Result<u32, FileError> {
        let mut total: u32 = 0;
        for index in 0..MAX_SEGMENTS {
            let Some(blocks) = self.segment_blocks(index)? else { break };
            total = total.saturating_add(blocks.min(self.folder.segment_blocks));
            if blocks < self.folder.segment_blocks {
                break;
            }
        }
        Ok(total)
    }

    /// The number of whole pages of a segment, by its open file or else by its name. `None` if
    /// there is no such file.
    fn segment_blocks(&self, index: u32) -> Result<Option<u32>, FileError> {
        let failed =
            |path: &Path, source: io::Error| FileError::new("read the size of", path, source);
        if let Some(segment) = self.open_segment(index) {
            let blocks = segment.block_count().map_err(|source| failed(segment.path(), source))?;
            return Ok(Some(blocks));
        }
        if self.removed.load(Ordering::Acquire) {
            return Ok(None);
        }
        let path = segment_path(&self.folder.path, self.rel, index);
        match retry(|| self.folder.vfs.len(&path)).and_then(whole_pages) {
            Ok(blocks) => Ok(Some(blocks)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failed(&path, source)),
        }
    }

    /// Splits a run of blocks at segment borders: (segment, block in it, position in the run,
    /// length).
    pub(super) fn pieces(
        &self,
        first: u32,
        count: usize,
    ) -> impl Iterator<Item = (u32, u32, usize, usize)> {
        let per_segment = self.folder.segment_blocks;
        let mut done = 0;
        std::iter::from_fn(move || {
            if done >= count {
                return None;
            }
            let block = u64::from(first) + done as u64;
            let within = (block % u64::from(per_segment)) as u32;
            let length = (count - done).min((per_segment - within) as usize);
            let start = done;
            done += length;
            // Beyond 2^32 blocks there is no segment: its number is out of range, and reading ends
            // there.
            Some(((block / u64::from(per_segment)) as u32, within, start, length))
        })
    }
}

/// The most tables. With more processors than this, several share a table.
const MOST_TABLES: usize = 16;

/// A processor's share of a fork. It has its reference count on a cache line of its own.
pub(super) type ForkShare = CachePadded<Arc<ForkFiles>>;

type Table = CachePadded<RwLock<HashMap<RelFork, Arc<ForkShare>>>>;

pub(super) struct Forks {
    all: RwLock<HashMap<RelFork, Arc<ForkFiles>>>,
    tables: Box<[Table]>,
}

impl Forks {
    pub(super) fn new() -> Self {
        Self::with_tables(threads::count().min(MOST_TABLES))
    }

    fn with_tables(count: usize) -> Self {
        Self { all: RwLock::default(), tables: (0..count).map(|_| Table::default()).collect() }
    }

    /// A fork; if it isn't there, `new` makes it.
    pub(super) fn get(&self, rel: RelFork, new: impl FnOnce() -> ForkFiles) -> Arc<ForkShare> {
        self.get_in(threads::place() % self.tables.len(), rel, new)
    }

    fn get_in(
        &self,
        table: usize,
        rel: RelFork,
        new: impl FnOnce() -> ForkFiles,
    ) -> Arc<ForkShare> {
        let table = &self.tables[table];
        if let Some(share) = table.read().get(&rel) {
            return Arc::clone(share);
        }
        // The lock is held until the share is in the table. A removal meanwhile waits for this
        // lock, and then finds the share.
        let mut table = table.write();
        let share = table.entry(rel).or_insert_with(|| {
            let mut all = self.all.write();
            Arc::new(CachePadded::new(Arc::clone(all.entry(rel).or_insert_with(|| new().into()))))
        });
        Arc::clone(share)
    }

    /// Takes a fork out, if it is there. Its users may go on with it.
    pub(super) fn remove(&self, rel: RelFork) -> Option<Arc<ForkFiles>> {
        let fork = self.all.write().remove(&rel);
        for table in &self.tables {
            table.write().remove(&rel);
        }
        fork
    }

    /// Takes out all forks that are not in use.
    pub(super) fn remove_idle(&self) {
        for table in &self.tables {
            table.write().retain(|_, share| Arc::strong_count(share) > 1);
        }
        self.all.write().retain(|_, fork| Arc::strong_count(fork) > 1);
    }

    #[cfg(all(test, not(miri)))]
    pub(super) fn is_empty(&self) -> bool {
        self.all.read().is_empty() && self.tables.iter().all(|table| table.read().is_empty())
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::ids::RelationId;
    use crate::store::file::layout::Budget;
    use crate::store::file::segment::Folder;
    use std::sync::atomic::{AtomicU32, Ordering};

    const REL: RelFork = RelationId::constant(7).main();

    fn new() -> ForkFiles {
        let folder = Folder {
            vfs: Arc::new(millpond_vfs::OsVfs),
            path: "nowhere".into(),
            segment_blocks: 3,
            direct: false,
            budget: Budget::new(0),
        };
        ForkFiles::new(Arc::new(folder), REL)
    }

    #[test]
    fn all_tables_share_a_fork_until_it_is_removed() {
        let forks = Forks::with_tables(3);
        let shares: Vec<_> = (0..3).map(|table| forks.get_in(table, REL, new)).collect();
        assert!(shares.iter().all(|share| Arc::<ForkFiles>::ptr_eq(share, &shares[0])));
        let again = forks.get_in(2, REL, new);
        assert!(Arc::ptr_eq(&again, &shares[2]));
        let removed = forks.remove(REL).expect("it is there");
        assert!(Arc::<ForkFiles>::ptr_eq(&removed, &shares[0]) && forks.is_empty());
        assert!(forks.remove(REL).is_none());
        assert!(!Arc::<ForkFiles>::ptr_eq(&removed, &forks.get_in(1, REL, new)));
    }

    #[test]
    fn forks_in_use_stay() {
        let forks = Forks::with_tables(2);
        let used = forks.get_in(0, REL, new);
        drop(forks.get_in(1, REL, new));
        forks.remove_idle();
        assert!(Arc::<ForkFiles>::ptr_eq(&used, &forks.get_in(1, REL, new)));
        drop(used);
        forks.remove_idle();
        assert!(forks.is_empty());
    }

    /// A lookup after the end of a removal finds another fork than a lookup from before its
    /// beginning.
    #[test]
    fn a_removed_fork_is_found_no_more() {
        let forks = Forks::with_tables(2);
        let (begun, ended) = (AtomicU32::new(0), AtomicU32::new(0));
        let rounds = 2000;
        std::thread::scope(|scope| {
            for table in 0..2 {
                let (forks, begun, ended) = (&forks, &begun, &ended);
                scope.spawn(move || {
                    let mut last: Option<(Arc<ForkShare>, u32)> = None;
                    while ended.load(Ordering::SeqCst) < rounds {
                        let removed = ended.load(Ordering::SeqCst);
                        let share = forks.get_in(table, REL, new);
                        if let Some((old, begun_then)) = &last
                            && removed > *begun_then
                        {
                            assert!(
                                !Arc::<ForkFiles>::ptr_eq(old, &share),
                                "of before removal {removed}"
                            );
                        }
                        last = Some((share, begun.load(Ordering::SeqCst)));
                    }
                });
            }
            for _ in 0..rounds {
                begun.fetch_add(1, Ordering::SeqCst);
                forks.remove(REL);
                ended.fetch_add(1, Ordering::SeqCst);
                std::thread::yield_now();
            }
        });
    }
}
