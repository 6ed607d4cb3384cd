//! A wrapper around a file system that asks a test before each call.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{OpenFlags, Vfs, VfsDirectory, VfsFile};

/// The call that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Vfs::open`].
    Open,
    /// [`Vfs::create_directory`].
    CreateDirectory,
    /// [`Vfs::list`].
    List,
    /// [`Vfs::len`] and [`VfsFile::len`].
    Len,
    /// [`Vfs::remove`].
    Remove,
    /// [`Vfs::rename`]; the path is the new one.
    Rename,
    /// [`Vfs::open_directory`].
    OpenDirectory,
    /// [`VfsDirectory::sync`].
    SyncDirectory,
    /// [`VfsFile::read_at`].
    Read,
    /// [`VfsFile::write_at`].
    Write,
    /// [`VfsFile::set_len`].
    SetLen,
    /// [`VfsFile::allocate`].
    Allocate,
    /// [`VfsFile::sync_data`].
    SyncData,
    /// [`VfsFile::try_lock`].
    Lock,
}

type Ask = dyn Fn(Call, &Path) -> io::Result<()> + Send + Sync;

/// A wrapper: a test sees, and may refuse, the calls in [`Call`]. Its files have no descriptors.
#[derive(Clone)]
pub struct AskingVfs {
    inner: Arc<dyn Vfs>,
    ask: Arc<Ask>,
}

impl AskingVfs {
    /// Passes a call on if `ask` allows it. Otherwise the call fails with the error of `ask`.
    pub fn new(
        inner: impl Vfs,
        ask: impl Fn(Call, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { inner: Arc::new(inner), ask: Arc::new(ask) })
    }
}

impl fmt::Debug for AskingVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AskingVfs").field(&self.inner).finish()
    }
}

struct Asking<T: ?Sized> {
    inner: Arc<T>,
    path: PathBuf,
    ask: Arc<Ask>,
}

impl<T: ?Sized> Asking<T> {
    fn ask(&self, call: Call) -> io::Result<&T> {
        (self.ask)(call, &self.path)?;
        Ok(&self.inner)
    }
}

impl<T: ?Sized> fmt::Debug for Asking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&self.path).finish()
    }
}

impl Vfs for AskingVfs {
    fn open(&self, path: &Path, flags: OpenFlags) -> io::Result<Arc<dyn VfsFile>> {
        (self.ask)(Call::Open, path)?;
        let inner = self.inner.open(path, flags)?;
        Ok(Arc::new(Asking { inner, path: path.to_owned(), ask: Arc::clone(&self.ask) }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        (self.ask)(Call::CreateDirectory, path)?;
        self.inner.create_directory(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        (self.ask)(Call::List, directory)?;
        self.inner.list(directory)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        (self.ask)(Call::Len, path)?;
        self.inner.len(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        (self.ask)(Call::Remove, path)?;
        self.inner.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.ask)(Call::Rename, to)?;
        self.inner.rename(from, to)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn VfsDirectory>> {
        (self.ask)(Call::OpenDirectory, path)?;
        let inner = self.inner.open_directory(path)?;
        Ok(Arc::new(Asking { inner, path: path.to_owned(), ask: Arc::clone(&self.ask) }))
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.inner.resolve(path)
    }

    fn is_regular(&self, path: &Path) -> io::Result<bool> {
        self.inner.is_regular(path)
    }
}

impl VfsDirectory for Asking<dyn VfsDirectory> {
    fn sync(&self) -> io::Result<()> {
        self.ask(Call::SyncDirectory)?.sync()
    }
}

impl VfsFile for Asking<dyn VfsFile> {
    fn read_at(&self, pieces: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        self.ask(Call::Read)?.read_at(pieces, offset)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.ask(Call::Write)?.write_at(pieces, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.ask(Call::Len)?.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.ask(Call::SetLen)?.set_len(bytes)
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.ask(Call::Allocate)?.allocate(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.ask(Call::SyncData)?.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.ask(Call::Lock)?.try_lock()
    }

    fn is_locked_here(&self) -> bool {
        self.inner.is_locked_here()
    }

    fn lock_holder(&self) -> Option<u32> {
        self.inner.lock_holder()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
