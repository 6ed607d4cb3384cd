//! The store's directory: its lock, the names of its files, and the forks that they belong to.
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
//! **The list** of forks and their lengths comes from the names and lengths of the files. It opens
//! none of them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millpond_sync::thread;
use millpond_vfs::{OpenFlags, Vfs, VfsFile, retry};

use super::FileStore;
use super::segment::Folder;
use crate::PAGE_SIZE;
use crate::ids::{Fork, RelFork, RelationId};
use crate::store::StoreError;

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
