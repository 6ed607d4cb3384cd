//! The data directory: who may use it, and what is where.
//!
//! ```text
//! DATA/millpond.lock   locked by the process that has the directory open; holds its process id
//! DATA/control         where recovery starts (control.rs)
//! DATA/wal/            the log's segments
//! DATA/base/           the relations' files, and `lock`, which the file store has locked
//! DATA/quarantine/     files of base/ that nothing names (quarantine.rs)
//! DATA/pgsql_tmp/      files of sorts that are under way (sort/temp.rs); emptied at the start
//! ```
//!
//! The lock is the system's (`flock`), so it ends with the process however that ends, and a lock file
//! that is left behind means nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_vfs::{OpenFlags, Vfs, VfsFile, exists, retry, sync_directory, write_all_at};

const LOCK_FILE: &str = "millpond.lock";
/// What nobody may be allowed to do in a directory with data: the group to write, others anything.
const FORBIDDEN_MODE: u32 = 0o027;

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
        /// The other process, if the system tells which.
        pid: Option<u32>,
    },
    /// A part of it is missing, so that there is nothing to recover from.
    #[error(
        "{path} is missing from the data directory; restore it from a backup (nothing was changed)"
    )]
    Incomplete {
        /// What is missing.
        path: String,
    },
    /// This process has it open already.
    #[error(
        "data directory {path} is already open in this process; use the engine that has it open, or drop that one first"
    )]
    AlreadyOpen {
        /// The directory.
        path: String,
    },
    /// It holds something else.
    #[error("{path} is not empty and is not a Millpond data directory; nothing was changed there")]
    Foreign {
        /// The directory.
        path: String,
    },
    /// It is no database, and none is to be made of it.
    #[error("{path} is not a Millpond database: {what}")]
    NotADatabase {
        /// The directory.
        path: String,
        /// How that was told.
        what: &'static str,
    },
    /// It belongs to another user.
    #[error("data directory \"{path}\" has wrong ownership")]
    Ownership {
        /// The directory.
        path: String,
    },
    /// Others than its owner may do too much there.
    #[error("data directory \"{path}\" has invalid permissions")]
    Permissions {
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
    _lock: Arc<dyn VfsFile>,
}

impl DataDirectory {
    /// Locks the directory; creates it if it does not exist.
    pub fn open(vfs: &dyn Vfs, path: &Path) -> Result<Self, DirectoryError> {
        let failed = |what: &'static str, path: &Path| {
            let path = path.display().to_string();
            move |source| DirectoryError::Io { what, path, source }
        };
        retry(|| vfs.create_directory(path)).map_err(failed("create directory", path))?;
        let lock_path = path.join(LOCK_FILE);
        let is_new = !exists(vfs, &lock_path).map_err(failed("look for", &lock_path))?;
        if is_new {
            refuse_foreign(vfs, path).map_err(failed("read directory", path))??;
            // The directory's own name, if it is new.
            if let Some(parent) = path.parent().filter(|parent| *parent != Path::new("")) {
                sync_directory(vfs, parent).map_err(failed("sync directory", parent))?;
            }
        }
        refuse_shared(vfs, path, is_new)
            .map_err(failed("read or change permissions of", path))??;
        let lock = retry(|| vfs.open(&lock_path, OpenFlags::CREATE))
            .map_err(failed("open", &lock_path))?;
        if !retry(|| lock.try_lock()).map_err(failed("lock", &lock_path))? {
            let path = path.display().to_string();
            return Err(match lock.is_locked_here() {
                true => DirectoryError::AlreadyOpen { path },
                // The lock file has the process id of the last server. A check that holds the lock
                // writes none.
                false => DirectoryError::InUse { path, pid: lock.lock_holder() },
            });
        }
        write_pid(&*lock).map_err(failed("write", &lock_path))?;
        let base = path.join("base");
        refuse_incomplete(vfs, path).map_err(failed("read directory", path))??;
        retry(|| vfs.create_directory(&base)).map_err(failed("create directory", &base))?;
        sync_directory(vfs, path).map_err(failed("sync directory", path))?;
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

/// A directory with a control file has all of its parts, or they are lost.
fn refuse_incomplete(vfs: &dyn Vfs, path: &Path) -> io::Result<Result<(), DirectoryError>> {
    if !exists(vfs, &path.join("control"))? {
        return Ok(Ok(()));
    }
    for part in [path.join("base"), path.join("wal")] {
        match retry(|| vfs.list(&part)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(DirectoryError::Incomplete { path: part.display().to_string() }));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Ok(()))
}

/// A directory without a lock file must be empty, but for what mounting a file system leaves there.
fn refuse_foreign(vfs: &dyn Vfs, path: &Path) -> io::Result<Result<(), DirectoryError>> {
    let names = retry(|| vfs.list(path))?;
    if names.iter().all(|name| name == "lost+found") {
        return Ok(Ok(()));
    }
    Ok(Err(DirectoryError::Foreign { path: path.display().to_string() }))
}

/// A directory with data is its owner's, who starts the engine, and nobody else may write there; PostgreSQL has the
/// same rule. One that is still empty is made so.
fn refuse_shared(
    vfs: &dyn Vfs,
    path: &Path,
    is_new: bool,
) -> io::Result<Result<(), DirectoryError>> {
    let found = retry(|| vfs.access(path))?;
    let shown = path.display().to_string();
    if !found.is_own {
        return Ok(Err(DirectoryError::Ownership { path: shown }));
    }
    if found.mode & FORBIDDEN_MODE == 0 {
        return Ok(Ok(()));
    }
    if is_new {
        return retry(|| vfs.make_private(path)).map(Ok);
    }
    Ok(Err(DirectoryError::Permissions { path: shown }))
}

fn write_pid(lock: &dyn VfsFile) -> io::Result<()> {
    retry(|| lock.set_len(0))?;
    write_all_at(lock, format!("{}\n", millpond_sync::scheduler::process_id()).as_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use millpond_vfs::OsVfs;

    use super::*;

    #[test]
    fn second_opener_in_this_process_is_told_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let first = DataDirectory::open(&OsVfs, &path).unwrap();
        let error = DataDirectory::open(&OsVfs, &path).unwrap_err();
        assert!(matches!(error, DirectoryError::AlreadyOpen { .. }), "{error}");
        drop(first);
        DataDirectory::open(&OsVfs, &path).unwrap();
    }

    #[test]
    fn another_process_is_named_even_if_its_id_is_this_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        drop(DataDirectory::open(&OsVfs, &path).unwrap());
        // As another process would hold it: locked, and not in this process's list.
        let file = fs::File::open(path.join(LOCK_FILE)).unwrap();
        file.try_lock().unwrap();
        let error = DataDirectory::open(&OsVfs, &path).unwrap_err().to_string();
        assert!(error.contains("another process"), "{error}");
        assert!(error.contains(&format!("PID {}", std::process::id())), "{error}");
    }

    /// As a check holds it, which writes nothing: the lock file still names the last server.
    #[test]
    fn the_process_that_is_named_is_the_one_that_has_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        drop(DataDirectory::open(&OsVfs, &path).unwrap());
        fs::write(path.join(LOCK_FILE), "4194303\n").unwrap();
        let file = fs::File::open(path.join(LOCK_FILE)).unwrap();
        file.try_lock().unwrap();
        let error = DataDirectory::open(&OsVfs, &path).unwrap_err().to_string();
        assert!(error.contains("another process") && !error.contains("4194303"), "{error}");
    }

    #[test]
    fn somebody_elses_directory_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("letter.txt"), "dear").unwrap();
        let error = DataDirectory::open(&OsVfs, directory.path()).unwrap_err();
        assert!(matches!(error, DirectoryError::Foreign { .. }));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        drop(DataDirectory::open(&OsVfs, &path).unwrap());
        for mode in [0o755, 0o770, 0o701, 0o720] {
            set_mode(&path, mode);
            let error = DataDirectory::open(&OsVfs, &path).unwrap_err();
            assert!(matches!(error, DirectoryError::Permissions { .. }), "{error}");
            assert_eq!(mode_of(&path), mode);
        }
        for mode in [0o750, 0o700] {
            set_mode(&path, mode);
            DataDirectory::open(&OsVfs, &path).unwrap();
        }
    }

    #[test]
    fn an_empty_directory_becomes_its_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::create_dir(&path).unwrap();
        set_mode(&path, 0o777);
        drop(DataDirectory::open(&OsVfs, &path).unwrap());
        assert_eq!(mode_of(&path), 0o700);
        assert_eq!(mode_of(&path.join("base")), 0o700);
        assert_eq!(mode_of(&path.join(LOCK_FILE)), 0o600);
    }
}
