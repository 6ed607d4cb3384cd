//! The kernel's file system.
//!
//! **Syncs** are those of the standard library. On macOS, `fsync` leaves data in the cache of the
//! device; the standard library calls `fcntl(F_FULLFSYNC)` there, which does not.
//!
//! **Other systems than Linux** have no call that allocates blocks and leaves the file's bytes
//! alone, and no list of locks. [`VfsFile::allocate`] is unsupported there, so its callers write
//! zeros. Direct I/O is an advice on macOS, given for the open file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::{Access, OpenFlags, Vfs, VfsDirectory, VfsFile};

/// The kernel's files and directories.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsVfs;

#[derive(Debug)]
struct OsFile {
    file: File,
    /// The key of this file in [`HELD`], once this handle has locked the file.
    lock: OnceLock<FileId>,
}

/// Device and inode.
type FileId = (u64, u64);

/// The process that has a file locked with `flock`, from the kernel's list of locks
/// (`/proc/locks`). The list shows a process of another container as 0; the result is then `None`.
#[cfg(all(target_os = "linux", not(millpond_portable)))]
fn holder_in(locks: &str, (device, inode): FileId) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 7990 fe:00:10051587 0 EOF
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [_, "FLOCK", _, _, process, locked, ..] if locked == file => {
                process.parse().ok().filter(|process| *process != 0)
            }
            _ => None,
        }
    })
}

/// The files that this process has locked. A process id written into the file would not do, because
/// in another container it names another process. This mutex is held while a file is locked or
/// unlocked, so the set is always correct.
static HELD: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<FileId>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OsFile {
    fn id(&self) -> io::Result<FileId> {
        let found = self.file.metadata()?;
        Ok((found.dev(), found.ino()))
    }
}

impl Drop for OsFile {
    fn drop(&mut self) {
        if let Some(id) = self.lock.get() {
            let mut held = held();
            held.remove(id);
            // If this fails, closing the file releases the lock a moment later.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

#[derive(Debug)]
struct OsDirectory(File);

fn unix_flags(flags: OpenFlags) -> OFlags {
    let chosen = [
        (flags.create, OFlags::CREATE),
        (flags.exclusive, OFlags::EXCL),
        (flags.truncate, OFlags::TRUNC),
        (flags.no_follow, OFlags::NOFOLLOW),
        (flags.direct, system::DIRECT),
    ];
    let access = if flags.read_only { OFlags::RDONLY } else { OFlags::RDWR };
    let chosen = chosen.into_iter().filter(|(wanted, _)| *wanted);
    chosen.fold(access | OFlags::CLOEXEC, |all, (_, flag)| all | flag)
}

/// What only Linux has.
#[cfg(all(target_os = "linux", not(millpond_portable)))]
mod system {
    use super::{Errno, File, FileId, OFlags, fs, holder_in, io};
    use rustix::fs::FallocateFlags;

    pub(super) const DIRECT: OFlags = OFlags::DIRECT;

    pub(super) fn make_direct(_file: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn allocate(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), offset, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            other => other.map_err(Into::into),
        }
    }

    pub(super) fn lock_holder(id: FileId) -> Option<u32> {
        holder_in(&fs::read_to_string("/proc/locks").ok()?, id)
    }
}

/// What other systems have instead.
#[cfg(not(all(target_os = "linux", not(millpond_portable))))]
mod system {
    use super::{File, FileId, OFlags, io};

    pub(super) const DIRECT: OFlags = OFlags::empty();

    /// Asks the system to keep the file's bytes out of its cache.
    #[cfg(target_vendor = "apple")]
    pub(super) fn make_direct(file: &File) -> io::Result<()> {
        rustix::fs::fcntl_nocache(file, true).map_err(Into::into)
    }

    #[cfg(not(target_vendor = "apple"))]
    pub(super) fn make_direct(_file: &File) -> io::Result<()> {
        Err(super::no_direct_io())
    }

    pub(super) fn allocate(_file: &File, _offset: u64, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn lock_holder(_id: FileId) -> Option<u32> {
        None
    }
}

fn no_direct_io() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this file system does not support direct I/O")
}

impl Vfs for OsVfs {
    fn open(&self, path: &Path, flags: OpenFlags) -> io::Result<Arc<dyn VfsFile>> {
        match rustix::fs::open(path, unix_flags(flags), Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                let file = File::from(file);
                if flags.direct {
                    system::make_direct(&file)?;
                }
                Ok(Arc::new(OsFile { file, lock: OnceLock::new() }))
            }
            Err(Errno::INVAL) if flags.direct => Err(no_direct_io()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        let found = fs::metadata(path)?;
        let is_own = found.uid() == rustix::process::geteuid().as_raw();
        Ok(Access { is_own, mode: found.mode() & 0o7777 })
    }

    fn make_private(&self, path: &Path) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(0o700))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn VfsDirectory>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Arc::new(OsDirectory(rustix::fs::open(path, flags, Mode::empty())?.into())))
    }

    fn gives_descriptors(&self) -> bool {
        true
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn is_regular(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::metadata(path)?.is_file())
    }
}

impl VfsDirectory for OsDirectory {
    fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

impl VfsFile for OsFile {
    fn read_at(&self, pieces: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        rustix::io::preadv(&self.file, pieces, offset).map_err(Into::into)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        rustix::io::pwritev(&self.file, pieces, offset).map_err(Into::into)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        rustix::fs::ftruncate(&self.file, bytes).map_err(Into::into)
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        system::allocate(&self.file, offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        let id = self.id()?;
        let mut held = held();
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                held.insert(id);
                let _ = self.lock.set(id);
                Ok(true)
            }
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn is_locked_here(&self) -> bool {
        self.id().is_ok_and(|id| held().contains(&id))
    }

    fn lock_holder(&self) -> Option<u32> {
        system::lock_holder(self.id().ok()?)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{exists, read_exact_at, sync_directory, write_all_at};

    #[cfg(all(target_os = "linux", not(millpond_portable)))]
    #[test]
    fn lock_holder_is_found_in_proc_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12 fe:01:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 0 fe:00:78 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 14 fe:00:77 0 EOF\n";
        let device = rustix::fs::makedev(0xfe, 0);
        assert_eq!(holder_in(locks, (device, 77)), Some(14));
        assert_eq!(holder_in(locks, (device, 78)), None, "it is in another container");
        assert_eq!(holder_in(locks, (device, 79)), None);
    }

    #[test]
    fn written_bytes_are_read_back_and_the_end_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = OsVfs.open(&path, OpenFlags::CREATE_NEW).unwrap();
        write_all_at(&*file, b"hello", 3).unwrap();
        file.sync_data().unwrap();
        assert_eq!(file.len().unwrap(), 8);
        let mut bytes = [1; 8];
        read_exact_at(&*file, &mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"\0\0\0hello");
        let error = read_exact_at(&*file, &mut bytes, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let again = OsVfs.open(&path, OpenFlags::CREATE_NEW).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn names_come_and_go() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("a/b");
        OsVfs.create_directory(&inner).unwrap();
        OsVfs.create_directory(&inner).unwrap();
        let (one, two) = (inner.join("one"), inner.join("two"));
        OsVfs.open(&one, OpenFlags::CREATE).unwrap();
        OsVfs.rename(&one, &two).unwrap();
        sync_directory(&OsVfs, &inner).unwrap();
        assert!(exists(&OsVfs, &two).unwrap() && !exists(&OsVfs, &one).unwrap());
        assert!(OsVfs.is_regular(&two).unwrap() && !OsVfs.is_regular(&inner).unwrap());
        assert_eq!(OsVfs.list(&inner).unwrap(), ["two"]);
        OsVfs.remove(&two).unwrap();
        assert_eq!(OsVfs.len(&two).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn open_with_no_follow_refuses_a_symbolic_link() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "kept").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let flags = OpenFlags { truncate: true, no_follow: true, ..OpenFlags::CREATE };
        OsVfs.open(&link, flags).unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), b"kept");
    }

    #[test]
    fn only_one_open_description_gets_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = OsVfs.open(&path, OpenFlags::CREATE).unwrap();
        let second = OsVfs.open(&path, OpenFlags::CREATE).unwrap();
        assert!(first.try_lock().unwrap());
        assert!(!second.try_lock().unwrap());
        assert!(second.is_locked_here());
        drop(first);
        assert!(second.try_lock().unwrap());
    }
}
