//! The quarantine: `DATA/quarantine/N/`, where start number `N` moves the files of `DATA/base/` of
//! which the log knows nothing (wal rule 19).
//!
//! It happens after redo, when the files of dropped and uncommitted relations have been removed.
//! Only the log's table of forks decides (wal rule 17). The catalog names none of these files: else
//! the start has been refused by now (wal rule 20). A file whose name is not that of a fork stays
//! where it is.
//!
//! No crash leaves such a file: the record of a creation is durable before the file is there. (The
//! log does not know the file of commit numbers either. But each start removes it earlier.) So a
//! person has put the file there, or the part of the log that named it is lost. Then the file may
//! be the only copy of its rows. Therefore it is moved and reported, never removed.

use std::io;
use std::path::{Path, PathBuf};

use millpond_buffer::{FileStore, RelFork};
use millpond_sync::mutant;
use millpond_vfs::{Vfs, retry, sync_directory};

use super::DirectoryError;
use crate::error::relation_file;

/// The directory's name.
pub const QUARANTINE: &str = "quarantine";

/// A file that was moved away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The fork that its name says it belongs to.
    pub rel: RelFork,
    /// Where it is now.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// Moves the files of forks from `data/base` to `data/quarantine/<start_no>`, and reports each.
pub(crate) fn set_aside(
    vfs: &dyn Vfs,
    data: &Path,
    start_no: u32,
    forks: &[RelFork],
) -> Result<Vec<SetAside>, DirectoryError> {
    let target = data.join(QUARANTINE).join(start_no.to_string());
    let failed = |source| DirectoryError::Io {
        what: "move unknown files to",
        path: target.display().to_string(),
        source,
    };
    if forks.is_empty() {
        return Ok(Vec::new());
    }
    let moved = move_files(vfs, data, &target, forks).map_err(failed)?;
    for file in &moved {
        tracing::warn!(
            file = %relation_file(file.rel), bytes = file.bytes, to = %file.path.display(),
            "a file that belongs to no relation was moved away"
        );
    }
    Ok(moved)
}

fn move_files(
    vfs: &dyn Vfs,
    data: &Path,
    target: &Path,
    forks: &[RelFork],
) -> io::Result<Vec<SetAside>> {
    let base = &data.join("base");
    retry(|| vfs.create_directory(target))?;
    // The folders are durable before the first file is in them, and new names before the old ones
    // are gone: a crash must not leave a file without any name.
    if !mutant!("wal-quarantine-not-synced-first") {
        sync_directory(vfs, &data.join(QUARANTINE))?;
        sync_directory(vfs, data)?;
    }
    let mut moved = Vec::new();
    for name in retry(|| vfs.list(base))? {
        let Some(rel) = name.to_str().and_then(FileStore::fork_of_file) else { continue };
        if forks.contains(&rel) {
            let (from, path) = (base.join(&name), target.join(&name));
            let bytes = retry(|| vfs.len(&from))?;
            match mutant!("wal-unknown-files-removed") {
                true => retry(|| vfs.remove(&from))?,
                false => retry(|| vfs.rename(&from, &path))?,
            }
            moved.push(SetAside { rel, path, bytes });
        }
    }
    sync_directory(vfs, target)?;
    sync_directory(vfs, base)?;
    Ok(moved)
}
