//! Which forks the directory holds, and how long they are, by their files' names and lengths: none is opened.

use std::collections::BTreeMap;
use std::io;

use millpond_vfs::retry;

use super::{FileStore, Folder, names};
use crate::PAGE_SIZE;
use crate::ids::RelFork;
use crate::store::StoreError;

impl FileStore {
    /// Which fork a file of that name belongs to, if the store gives such names.
    #[must_use]
    pub fn fork_of_file(name: &str) -> Option<RelFork> {
        names::parse(name).map(|(rel, _)| rel)
    }

    /// Each fork of which there is a file, with its length as reading finds it: up to the first segment that is not full.
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

    /// Whole pages in each segment of each fork.
    fn list_segments(&self) -> io::Result<BTreeMap<RelFork, BTreeMap<u32, u32>>> {
        let mut found: BTreeMap<RelFork, BTreeMap<u32, u32>> = BTreeMap::new();
        let Folder { vfs, path, .. } = &*self.folder;
        for name in retry(|| vfs.list(path))? {
            if let Some((rel, segment)) = name.to_str().and_then(names::parse) {
                let blocks = retry(|| vfs.len(&path.join(&name)))? / PAGE_SIZE as u64;
                let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
                found.entry(rel).or_default().insert(segment, blocks);
            }
        }
        Ok(found)
    }
}
