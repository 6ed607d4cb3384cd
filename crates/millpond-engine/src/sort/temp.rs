//! Temporary files in the directory `pgsql_tmp` of the data directory. A file is unlinked as soon
//! as it is open.
//!
//! A file exists as long as it is open, so a failed statement or the end of a session leaves
//! nothing to clean up. A crash between creating a file and unlinking it leaves the file behind.
//! The next start removes it.
//!
//! A session's [`TempSpace`] bounds the total size of its files (`temp_file_limit`). As in
//! PostgreSQL, a file counts with its length.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_sync::scheduler;
use millpond_vfs::{OpenFlags, OsVfs, Vfs, VfsFile, read_exact_at, retry, write_all_at};

use crate::{EngineError, EngineResult};

/// Creates a temporary file.
pub(crate) type MakeFile<'a> = &'a dyn Fn() -> EngineResult<Arc<dyn TempFile>>;

/// A temporary file that runs are written to and read from. It is gone when dropped.
pub trait TempFile: Send + Sync {
    /// Writes all of `bytes` at a position.
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;
    /// Fills all of `bytes` from a position.
    fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> io::Result<()>;
}

/// A session's temporary files would exceed `temp_file_limit`. This is the inner error of the
/// [`io::Error`] with which the write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("temporary file size exceeds \"temp_file_limit\" ({limit_kb}kB)")]
pub struct TempSpaceExceeded {
    /// The limit.
    pub limit_kb: u64,
}

/// The budget that the temporary files of one session share.
#[derive(Debug)]
pub struct TempSpace {
    /// The limit, or [`NO_LIMIT`].
    limit_kb: AtomicU64,
    used_bytes: AtomicU64,
}

const NO_LIMIT: u64 = u64::MAX;

impl Default for TempSpace {
    fn default() -> Self {
        Self { limit_kb: AtomicU64::new(NO_LIMIT), used_bytes: AtomicU64::new(0) }
    }
}

impl TempSpace {
    /// Sets the limit; `None` removes it. Files that already exceed it stay.
    pub fn set_limit_kb(&self, limit: Option<u64>) {
        self.limit_kb.store(limit.unwrap_or(NO_LIMIT), Ordering::Relaxed);
    }

    /// The total length of the session's files.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let limit_kb = self.limit_kb.load(Ordering::Relaxed);
        let used = self.used_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used > limit_kb.saturating_mul(1024) {
            self.give_back(bytes);
            return Err(io::Error::other(TempSpaceExceeded { limit_kb }));
        }
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A file that counts towards its session's budget.
struct Counted {
    file: Arc<dyn VfsFile>,
    length: AtomicU64,
    space: Arc<TempSpace>,
}

impl TempFile for Counted {
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let end = position.saturating_add(bytes.len() as u64);
        // Reserve before the write, because a failed write may have grown the file.
        let grown = end.saturating_sub(self.length.load(Ordering::Relaxed));
        if grown > 0 {
            self.space.take(grown)?;
            self.length.fetch_add(grown, Ordering::Relaxed);
        }
        write_all_at(&*self.file, bytes, position)
    }

    fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> io::Result<()> {
        read_exact_at(&*self.file, bytes, position)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.space.give_back(*self.length.get_mut());
    }
}

/// The directory of temporary files.
#[derive(Debug)]
pub struct TempFiles {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    made: AtomicU64,
}

impl Default for TempFiles {
    /// The system's temporary directory, for engines without a data directory.
    fn default() -> Self {
        let (vfs, directory) = (Arc::new(OsVfs), std::env::temp_dir());
        Self { vfs, directory, made: AtomicU64::new(0) }
    }
}

pub(crate) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::TemporaryFile { what, source }
}

impl TempFiles {
    /// Opens the directory in a data directory; removes what a crash may have left.
    pub fn open(vfs: Arc<dyn Vfs>, data: &Path) -> EngineResult<Self> {
        let directory = data.join("pgsql_tmp");
        retry(|| vfs.create_directory(&directory)).map_err(failed("create the directory of"))?;
        for left in retry(|| vfs.list(&directory)).map_err(failed("list"))? {
            let path = directory.join(left);
            if let Err(error) = retry(|| vfs.remove(&path)) {
                let path = path.display();
                tracing::warn!("could not remove the temporary file \"{path}\": {error}");
            }
        }
        Ok(Self { vfs, directory, made: AtomicU64::new(0) })
    }

    /// Creates a file for one thread to write. It counts towards the session's `space`.
    pub fn make(&self, space: &Arc<TempSpace>) -> EngineResult<Arc<dyn TempFile>> {
        loop {
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let process = scheduler::process_id();
            let path = self.directory.join(format!("pgsql_tmp{process}.{number}"));
            match retry(|| self.vfs.open(&path, OpenFlags::CREATE_NEW)) {
                Ok(file) => {
                    retry(|| self.vfs.remove(&path)).map_err(failed("remove"))?;
                    let (length, space) = (AtomicU64::new(0), Arc::clone(space));
                    return Ok(Arc::new(Counted { file, length, space }));
                }
                // Other engines use the system's directory, too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("create")(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn temp_files_are_unlinked_and_leftovers_removed() {
        let data = tempfile::tempdir().unwrap();
        let files = TempFiles::open(Arc::new(OsVfs), data.path()).unwrap();
        let file = files.make(&Arc::default()).unwrap();
        file.write_all_at(b"abc", 2).unwrap();
        let mut read = [0; 3];
        file.read_exact_at(&mut read, 2).unwrap();
        assert_eq!(&read, b"abc");
        let directory = data.path().join("pgsql_tmp");
        // A name that exists is skipped.
        let taken = directory.join(format!("pgsql_tmp{}.1", std::process::id()));
        fs::write(&taken, b"another's").unwrap();
        files.make(&Arc::default()).unwrap();
        fs::remove_file(taken).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::write(directory.join("pgsql_tmp1.2"), b"left by a crash").unwrap();
        TempFiles::open(Arc::new(OsVfs), data.path()).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }

    #[test]
    fn temp_files_of_a_session_share_its_limit() {
        let data = tempfile::tempdir().unwrap();
        let files = TempFiles::open(Arc::new(OsVfs), data.path()).unwrap();
        let space = Arc::new(TempSpace::default());
        space.set_limit_kb(Some(2));
        let (first, second) = (files.make(&space).unwrap(), files.make(&space).unwrap());
        first.write_all_at(&[1; 1024], 0).unwrap();
        second.write_all_at(&[1; 1000], 24).unwrap();
        // Overwriting does not count again.
        first.write_all_at(&[2; 1024], 0).unwrap();
        let error = second.write_all_at(&[1], 1024).unwrap_err();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TempSpaceExceeded>());
        assert_eq!(inner, Some(&TempSpaceExceeded { limit_kb: 2 }));
        assert_eq!(error.to_string(), "temporary file size exceeds \"temp_file_limit\" (2kB)");
        drop(first);
        second.write_all_at(&[1], 1024).unwrap();
        drop(second);
        assert_eq!(space.used_bytes(), 0);
        // Another session has its own budget.
        files.make(&Arc::default()).unwrap().write_all_at(&[1; 4096], 0).unwrap();
    }
}
