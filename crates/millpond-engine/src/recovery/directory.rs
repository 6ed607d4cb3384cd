//! The data directory: who may use it, and what is where.
//!
//! ```text
//! DATA/millpond.lock   locked by the process that has the directory open; holds its process id
//! DATA/control         where recovery starts (control.rs)
//! DATA/wal/            the log's segments
//! DATA/base/           the relations' files
//! DATA/pgsql_tmp/      files of sorts that are under way (sort/temp.rs); emptied at the start
//! ```
//!
//! The lock is the system's (`flock`), so it ends with the process however that ends, and a lock file
//! that is left behind means nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::wal::sync_directory;

const LOCK_FILE: &str = "millpond.lock";

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another process has it open.
    #[error(
        "data directory {path} is in use by another process{}; stop that one first, or use another directory",
        .pid.map(|pid| format!(" (PID {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The directory.
        path: String,
        /// The other process, if its lock file could be read.
        pid: Option<u32>,
    },
    /// It holds something else.
    #[error("{path} is not empty and is not a Millpond data directory; nothing was changed there")]
    Foreign {
        /// The directory.
        path: String,
    },
    /// The system failed.
    #[error("could not {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A data directory that this process has locked, until dropped.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Locks the directory; creates it if it does not exist.
    pub fn open(path: &Path) -> Result<Self, DirectoryError> {
        let failed = |what: &'static str, path: &Path| {
            let path = path.display().to_string();
            move |source| DirectoryError::Io { what, path, source }
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed("create directory", path))?;
        let lock_path = path.join(LOCK_FILE);
        if !lock_path.exists() {
            refuse_foreign(path).map_err(failed("read directory", path))??;
        }
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(failed("open", &lock_path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = lock.read_to_string(&mut pid);
                let path = path.display().to_string();
                return Err(DirectoryError::InUse { path, pid: pid.trim().parse().ok() });
            }
            Err(error) => return Err(failed("lock", &lock_path)(error.into())),
        }
        write_pid(&mut lock).map_err(failed("write", &lock_path))?;
        let base = path.join("base");
        fs::create_dir_all(&base).map_err(failed("create directory", &base))?;
        sync_directory(path).map_err(failed("sync directory", path))?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the relations' files are.
    pub fn base(&self) -> PathBuf {
        self.path.join("base")
    }
}

/// A directory without a lock file must be empty, but for what mounting a file system leaves there.
fn refuse_foreign(path: &Path) -> io::Result<Result<(), DirectoryError>> {
    for entry in fs::read_dir(path)? {
        if entry?.file_name() != "lost+found" {
            return Ok(Err(DirectoryError::Foreign { path: path.display().to_string() }));
        }
    }
    Ok(Ok(()))
}

fn write_pid(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_opener_is_refused_and_told_the_process() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let first = DataDirectory::open(&path).unwrap();
        let error = DataDirectory::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("PID {}", std::process::id())), "{error}");
        drop(first);
        DataDirectory::open(&path).unwrap();
    }

    #[test]
    fn somebody_elses_directory_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("letter.txt"), "dear").unwrap();
        let error = DataDirectory::open(directory.path()).unwrap_err();
        assert!(matches!(error, DirectoryError::Foreign { .. }));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
