//! Files of `DATA/base/` that nothing names: moved to `DATA/quarantine/`, never removed (wal rule 19).
//!
//! No crash leaves such a file: the record of a creation is durable before the file is there. So somebody has put it
//! there, or the log that knew it is lost; then its rows are safe.

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
    let moved = move_files(vfs, &data.join("base"), &target, forks).map_err(failed)?;
    sync_directory(vfs, data).map_err(failed)?;
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
    base: &Path,
    target: &Path,
    forks: &[RelFork],
) -> io::Result<Vec<SetAside>> {
    retry(|| vfs.create_directory(target))?;
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
    // The new names first: a crash in between must not leave a file without any.
    sync_directory(vfs, target)?;
    if let Some(parent) = target.parent() {
        sync_directory(vfs, parent)?;
    }
    sync_directory(vfs, base)?;
    Ok(moved)
}
