//! One fork: its segments, opened on first use, and transfers that may cross segment borders.
//!
//! The table of open segments is a tree of `OnceLock`s, so finding an open file takes loads only.
//! An open segment stays open as long as the fork object lives. Truncation leaves its file in
//! place, empty.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::directory::segment_path;
use super::reads::Pages;
use super::segment::{Attempt, Folder, Segment, whole_pages};
use crate::ids::RelFork;
use millpond_vfs::retry;

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

    /// Reads a run of pages; `End` if the run goes beyond the end of the fork.
    pub(super) fn read(
        &self,
        first: u32,
        pages: &mut Pages<'_, '_>,
        wait: bool,
    ) -> Result<Attempt, FileError> {
        for (index, within, start, length) in self.pieces(first, pages.count()) {
            let Some((segment, _)) = self.segment(index, false)? else { return Ok(Attempt::End) };
            match pages.part(start..start + length).read_from(segment, within, wait) {
                Ok(Attempt::Done) => {}
                Ok(other) => return Ok(other),
                Err(source) => return Err(FileError::new("read", segment.path(), source)),
            }
        }
        Ok(Attempt::Done)
    }
}
