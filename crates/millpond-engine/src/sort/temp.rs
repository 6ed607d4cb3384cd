//! Temporary files: in the directory `pgsql_tmp` of the data directory, each without a name as soon as it is open.
//!
//! A file lives as long as it is open, so nothing is left to do when a statement fails or a session ends. What a crash
//! leaves between making a file and taking its name away is removed when the directory is opened again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_sync::scheduler;
use millpond_vfs::{OpenFlags, OsVfs, Vfs, VfsFile, read_exact_at, retry, write_all_at};

use crate::{EngineError, EngineResult};

/// Makes a temporary file.
pub(crate) type MakeFile<'a> = &'a dyn Fn() -> EngineResult<Arc<dyn TempFile>>;

/// What runs are written to and read from.
pub(crate) trait TempFile: Send + Sync {
    /// Writes all of it at a position.
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;
    /// Fills all of it from a position.
    fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> io::Result<()>;
}

/// A file without a name.
struct Unnamed(Arc<dyn VfsFile>);

impl TempFile for Unnamed {
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        write_all_at(&*self.0, bytes, position)
    }

    fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> io::Result<()> {
        read_exact_at(&*self.0, bytes, position)
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
    /// In the system's directory, for engines without a data directory.
    fn default() -> Self {
        let (vfs, directory) = (Arc::new(OsVfs), std::env::temp_dir());
        Self { vfs, directory, made: AtomicU64::new(0) }
    }
}

pub(crate) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::TemporaryFile { what, source }
}

impl TempFiles {
    /// Those of a data directory; removes what a crash may have left.
    pub(crate) fn open(vfs: Arc<dyn Vfs>, data: &Path) -> EngineResult<Self> {
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

    /// A new file.
    pub(crate) fn make(&self) -> EngineResult<Arc<dyn TempFile>> {
        loop {
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let process = scheduler::process_id();
            let path = self.directory.join(format!("pgsql_tmp{process}.{number}"));
            match retry(|| self.vfs.open(&path, OpenFlags::CREATE_NEW)) {
                Ok(file) => {
                    retry(|| self.vfs.remove(&path)).map_err(failed("remove"))?;
                    return Ok(Arc::new(Unnamed(file)));
                }
                // The system's directory is shared with other engines.
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
    fn nothing_is_left_and_what_was_left_goes() {
        let data = tempfile::tempdir().unwrap();
        let files = TempFiles::open(Arc::new(OsVfs), data.path()).unwrap();
        let file = files.make().unwrap();
        file.write_all_at(b"abc", 2).unwrap();
        let mut read = [0; 3];
        file.read_exact_at(&mut read, 2).unwrap();
        assert_eq!(&read, b"abc");
        let directory = data.path().join("pgsql_tmp");
        // A name that somebody else has is passed over.
        let taken = directory.join(format!("pgsql_tmp{}.1", std::process::id()));
        fs::write(&taken, b"another's").unwrap();
        files.make().unwrap();
        fs::remove_file(taken).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::write(directory.join("pgsql_tmp1.2"), b"left by a crash").unwrap();
        TempFiles::open(Arc::new(OsVfs), data.path()).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }
}
