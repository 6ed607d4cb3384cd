//! Files and directories at the level of system calls.
//!
//! Every file that Millpond reads or writes goes through [`Vfs`]: relations, log segments, the
//! control file, temporary files, traces. [`OsVfs`] passes each call to the kernel. A test passes
//! its own `Vfs`, which can fail any call, lose what was not synced, or lie.
//!
//! # What a call promises
//! The promises are those of POSIX and no more, because the stores must be correct on them:
//!
//! - A write may store less than it was given, and a read may return less than it was asked for.
//!   [`read_exact_at`] and [`write_all_at`] repeat such calls.
//! - A write is durable after [`VfsFile::sync_data`], not before. A part of it may become durable
//!   at any time.
//! - A name is durable after [`VfsDirectory::sync`] of its directory. That holds for names that
//!   came, went, or changed. A file's own sync does not make its name durable.
//! - A length is durable after [`VfsFile::sync_data`].
//! - After a failed sync it is unknown what is durable. The next sync may succeed without having
//!   written what the failed one lost.
//! - A signal may interrupt any call: [`io::ErrorKind::Interrupted`]. [`retry`] repeats it. A sync
//!   is the exception and is never repeated.
#![forbid(unsafe_code)]

mod os;
pub mod overlay;
#[cfg(feature = "testing")]
pub mod testing;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use os::OsVfs;
pub use overlay::{OverlayVfs, Spill};

/// How a file is opened: always for reading, and for writing unless `read_only`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// Writes fail.
    pub read_only: bool,
    /// Makes the file if there is none, with mode 0600.
    pub create: bool,
    /// With `create`: fails with [`io::ErrorKind::AlreadyExists`] if there is something of this
    /// name, a symbolic link included.
    pub exclusive: bool,
    /// Truncates the file to zero bytes.
    pub truncate: bool,
    /// Fails if the last component of the path is a symbolic link.
    pub no_follow: bool,
    /// Transfers bypass the page cache (`O_DIRECT`). Memory, offsets and lengths must be aligned.
    pub direct: bool,
}

impl OpenFlags {
    /// For an existing file that is only read.
    pub const READ: Self = Self {
        read_only: true,
        create: false,
        exclusive: false,
        truncate: false,
        no_follow: false,
        direct: false,
    };
    /// For an existing file.
    pub const WRITE: Self = Self { read_only: false, ..Self::READ };
    /// For a file that is made if it is missing.
    pub const CREATE: Self = Self { create: true, ..Self::WRITE };
    /// For a file that must not exist yet.
    pub const CREATE_NEW: Self = Self { exclusive: true, ..Self::CREATE };
}

/// The permissions of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// It belongs to the user that the process runs as.
    pub is_own: bool,
    /// The permission bits of POSIX.
    pub mode: u32,
}

/// Directories and the names in them.
pub trait Vfs: Debug + Send + Sync + 'static {
    /// Opens a file. The descriptor is closed when the last reference is dropped.
    fn open(&self, path: &Path, flags: OpenFlags) -> io::Result<Arc<dyn VfsFile>>;

    /// Makes a directory and its parents, with mode 0700; succeeds if it exists.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in no particular order.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// The length of a file in bytes, by name. A missing file is [`io::ErrorKind::NotFound`].
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Removes a file's name. The file lives as long as it is open.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Renames a file and replaces what has the new name, atomically. Both names are on one device.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Opens a directory so that it can be synced. A sync of it needs no further descriptor.
    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn VfsDirectory>>;

    /// Whether every file has a [`VfsFile::descriptor`].
    fn gives_descriptors(&self) -> bool {
        false
    }

    /// The path without symbolic links, or unchanged if the file system has no such links.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// The permissions of a file or directory. A file system without users names the process as
    /// the owner.
    fn access(&self, _path: &Path) -> io::Result<Access> {
        Ok(Access { is_own: true, mode: 0o700 })
    }

    /// Lets only its owner read, write and enter a directory (mode 0700).
    fn make_private(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Whether this is a regular file, not a directory or a device. A missing one is
    /// [`io::ErrorKind::NotFound`].
    fn is_regular(&self, path: &Path) -> io::Result<bool> {
        self.len(path).map(|_| true)
    }
}

/// An open directory.
pub trait VfsDirectory: Debug + Send + Sync + 'static {
    /// Makes the names in the directory durable.
    fn sync(&self) -> io::Result<()>;
}

/// An open file.
pub trait VfsFile: Debug + Send + Sync + 'static {
    /// Fills the pieces in order with bytes from `offset` on. Returns the number of bytes; 0 is the
    /// end of the file. At most 1,024 pieces.
    fn read_at(&self, pieces: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize>;

    /// Writes at most 1,024 pieces in order from `offset` on. Returns the number of bytes.
    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;

    /// The length of the file in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Truncates the file, or extends it with zeros that need not have space on the device.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Reserves space on the device for a range. Bytes beyond the old end read as zeros. A file
    /// system that can't do this returns [`io::ErrorKind::Unsupported`].
    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Makes bytes and length durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Locks the file for this open description until it is closed. `false`: another has the lock.
    fn try_lock(&self) -> io::Result<bool>;

    /// After [`VfsFile::try_lock`] returned `false`: whether this process itself has the lock, by
    /// another open description.
    fn is_locked_here(&self) -> bool {
        false
    }

    /// After [`VfsFile::try_lock`] returned `false`: the process that has the lock, if known.
    fn lock_holder(&self) -> Option<u32> {
        None
    }

    /// The kernel's descriptor, for calls that this trait lacks: reads into memory that other
    /// threads look at, reads that must not wait, io_uring. A simulated file has none; its caller
    /// uses [`VfsFile::read_at`].
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Makes the names in a directory durable.
pub fn sync_directory(vfs: &dyn Vfs, path: &Path) -> io::Result<()> {
    retry(|| vfs.open_directory(path))?.sync()
}

/// Whether there is something of this name.
pub fn exists(vfs: &dyn Vfs, path: &Path) -> io::Result<bool> {
    match retry(|| vfs.len(path)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Repeats a call that a signal interrupted.
pub fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Whether an error says that existing bytes are lost: a medium's error, a damaged file system, a
/// file that is missing or too short.
#[must_use]
pub fn is_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    use rustix::io::Errno;
    // A damaged file system answers so on Linux; other systems have no such error.
    #[cfg(target_os = "linux")]
    const DAMAGED: Errno = Errno::UCLEAN;
    #[cfg(not(target_os = "linux"))]
    const DAMAGED: Errno = Errno::IO;
    let lost = [Errno::IO, DAMAGED, Errno::BADMSG].map(|errno| Some(errno.raw_os_error()));
    lost.contains(&error.raw_os_error())
        || matches!(error.kind(), NotFound | UnexpectedEof | InvalidData)
}

/// Whether the process or the system has no descriptor left for another open file.
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let limits = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    limits.contains(&error.raw_os_error())
}

/// Fills all of `bytes` from `offset` on. A file that ends earlier is
/// [`io::ErrorKind::UnexpectedEof`].
pub fn read_exact_at(file: &dyn VfsFile, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let read = read_up_to_at(file, bytes, offset)?;
    if read == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Fills `bytes` from `offset` on with what the file has. Returns the number of bytes.
pub fn read_up_to_at(file: &dyn VfsFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        let at = offset + done as u64;
        let rest = &mut bytes[done..];
        match retry(|| file.read_at(&mut [IoSliceMut::new(rest)], at))? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Writes all of `bytes` from `offset` on.
pub fn write_all_at(file: &dyn VfsFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let (rest, at) = (&bytes[done..], offset + done as u64);
        match retry(|| file.write_at(&[IoSlice::new(rest)], at))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => done += written,
        }
    }
    Ok(())
}
