//! The data directory: its layout, and the checks before a process may use it.
//!
//! ```text
//! DATA/millpond.lock   locked by the process that has the directory open; holds its process id
//! DATA/control         where recovery starts (control.rs)
//! DATA/wal/            the log's segments
//! DATA/base/           the relations' files, and `lock`, which the file store has locked
//! DATA/quarantine/     files of base/ that nothing names (quarantine.rs)
//! DATA/pgsql_tmp/      files of running sorts (sort/temp.rs); emptied at the start
//! ```
//!
//! The lock is the kernel's (`flock`). So it ends with the process, however the process ends. A
//! lock file that is left behind means nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_vfs::{OpenFlags, Vfs, VfsFile, exists, retry, sync_directory, write_all_at};

use crate::error::DirectoryError;

const LOCK_FILE: &str = "millpond.lock";
/// Forbidden permissions of a directory with data: write for the group, anything for others.
const FORBIDDEN_MODE: u32 = 0o027;

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
            // If the directory is new, make its own name durable.
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
                // The lock file has the process id of the last server, not of every holder: a check
                // holds the lock and writes no id. So ask the kernel.
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

/// A directory with a control file must have all of its parts; a missing part is lost.
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

/// A directory without a lock file must be empty, except for what a new file system has, and the
/// Unix socket of a server that is starting (with the file that locks it).
fn refuse_foreign(vfs: &dyn Vfs, path: &Path) -> io::Result<Result<(), DirectoryError>> {
    let names = retry(|| vfs.list(path))?;
    let may_be_there = |name: &std::ffi::OsString| {
        name == "lost+found" || name.as_encoded_bytes().starts_with(b".s.PGSQL.")
    };
    if names.iter().all(may_be_there) {
        return Ok(Ok(()));
    }
    Ok(Err(DirectoryError::Foreign { path: path.display().to_string() }))
}

/// A directory with data must belong to the user that starts the engine, and no other user may
/// write there; PostgreSQL has the same rule. A new directory gets these permissions.
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
    fn second_open_in_this_process_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let first = DataDirectory::open(&OsVfs, &path).unwrap();
        let error = DataDirectory::open(&OsVfs, &path).unwrap_err();
        assert!(matches!(error, DirectoryError::AlreadyOpen { .. }), "{error}");
        drop(first);
        DataDirectory::open(&OsVfs, &path).unwrap();
    }

    #[test]
    fn lock_holder_with_our_process_id_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        drop(DataDirectory::open(&OsVfs, &path).unwrap());
        // As another process would hold it: locked, and not in this process's list.
        let file = fs::File::open(path.join(LOCK_FILE)).unwrap();
        file.try_lock().unwrap();
        let error = DataDirectory::open(&OsVfs, &path).unwrap_err().to_string();
        assert!(error.contains("another process"), "{error}");
        // Only Linux has a list of the processes that hold locks.
        let is_named = error.contains(&format!("PID {}", std::process::id()));
        assert_eq!(is_named, cfg!(all(target_os = "linux", not(millpond_portable))), "{error}");
    }

    /// As a check holds the lock: it writes nothing, so the lock file still names the last server.
    #[test]
    fn reported_process_is_the_lock_holder() {
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
    fn foreign_directory_is_left_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("letter.txt"), "dear").unwrap();
        let error = DataDirectory::open(&OsVfs, directory.path()).unwrap_err();
        assert!(matches!(error, DirectoryError::Foreign { .. }));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn sockets_may_be_in_a_new_directory() {
        let directory = tempfile::tempdir().unwrap();
        for name in [".s.PGSQL.5433", ".s.PGSQL.5433.lock"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        DataDirectory::open(&OsVfs, directory.path()).unwrap();
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
    fn empty_directory_becomes_private() {
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
