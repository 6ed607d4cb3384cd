//! A copy-on-write file system: reads go to the file system below, and no change ever does.
//!
//! [`OverlayVfs`] lets a program run its usual code over files that must not change. `millpond
//! check` recovers a crashed data directory that way.
//!
//! # Structure
//! A file of the overlay is a [`Node`]. It has the path of the file below from which it began, the
//! length of that file that still shows, and the blocks written since. Blocks that don't fit into
//! memory go to one temporary file without a name ([`spill`]). A node keeps no file below open; the
//! handles that callers hold do.
//!
//! # Guarantees
//! The overlay asks the file system below only for calls that change nothing. It opens existing
//! files for reading, reads them, looks up names, and locks files. The lock of a file below is that
//! file's own lock, so an overlay and a program that uses the files directly exclude each other.
//! Syncs do nothing: the changes are lost with the overlay's last handle.
//!
//! Locks are held across calls to the file system below. So they are locks of `millpond-sync`, on
//! which a simulated thread waits in its scheduler.
//!
//! Paths name files by their text. If one file has two spellings, as through a symbolic link, a
//! write through one of them makes them two files.

mod node;
mod spill;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_sync::sync::{Mutex, MutexGuard};

use self::node::{Handle, Node};
pub use self::spill::Spill;
use crate::{OpenFlags, Vfs, VfsDirectory, VfsFile, retry};

/// What the overlay knows of a name. A name without an entry is as it is below.
#[derive(Clone, Debug)]
enum Entry {
    File(Arc<Node>),
    Directory,
    Removed,
}

/// A file system whose changes stay in memory. See the [module](self).
#[derive(Debug)]
pub struct OverlayVfs {
    below: Arc<dyn Vfs>,
    names: Mutex<BTreeMap<PathBuf, Entry>>,
    spill: Arc<Spill>,
}

/// A file of the overlay, and the opened file below if there is one.
type Found = (Arc<Node>, Option<Arc<dyn VfsFile>>);

type Names<'a> = MutexGuard<'a, BTreeMap<PathBuf, Entry>>;

impl OverlayVfs {
    /// An overlay without any changes. Written blocks go to `spill`.
    #[must_use]
    pub fn new(below: Arc<dyn Vfs>, spill: Spill) -> Self {
        Self { below, names: Mutex::default(), spill: Arc::new(spill) }
    }

    fn names(&self) -> Names<'_> {
        self.names.lock()
    }

    /// The file of a name.
    fn find(&self, names: &mut Names<'_>, path: &Path, flags: OpenFlags) -> io::Result<Found> {
        let below = OpenFlags { no_follow: flags.no_follow, ..OpenFlags::READ };
        let node = match names.get(path) {
            Some(Entry::File(node)) => Arc::clone(node),
            Some(Entry::Directory) => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Entry::Removed) => return Err(io::ErrorKind::NotFound.into()),
            None => {
                let file = retry(|| self.below.open(path, below))?;
                let node = Arc::new(Node::over(path.to_owned(), retry(|| file.len())?));
                names.insert(path.to_owned(), Entry::File(Arc::clone(&node)));
                return Ok((node, Some(file)));
            }
        };
        let file = match node.path_below() {
            Some(path) => Some(retry(|| self.below.open(path, below))?),
            None => None,
        };
        Ok((node, file))
    }

    fn is_directory(&self, names: &Names<'_>, path: &Path) -> bool {
        match names.get(path) {
            Some(entry) => matches!(entry, Entry::Directory),
            None => retry(|| self.below.list(path)).is_ok(),
        }
    }

    /// Fails unless the parent directory of a path exists.
    fn check_parent(&self, names: &Names<'_>, path: &Path) -> io::Result<()> {
        match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) if !self.is_directory(names, parent) => {
                Err(io::ErrorKind::NotFound.into())
            }
            _ => Ok(()),
        }
    }

    /// A new empty file.
    fn create(&self, names: &mut Names<'_>, path: &Path) -> io::Result<Arc<Node>> {
        self.check_parent(names, path)?;
        let node = Arc::new(Node::empty());
        names.insert(path.to_owned(), Entry::File(Arc::clone(&node)));
        Ok(node)
    }
}

impl Vfs for OverlayVfs {
    fn open(&self, path: &Path, flags: OpenFlags) -> io::Result<Arc<dyn VfsFile>> {
        let mut names = self.names();
        let (node, below) = match self.find(&mut names, path, flags) {
            Ok(_) if flags.create && flags.exclusive => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound && flags.create => {
                (self.create(&mut names, path)?, None)
            }
            Err(error) => return Err(error),
        };
        let handle = Handle::new(node, below, Arc::clone(&self.spill), flags.read_only);
        if flags.truncate {
            handle.set_len(0)?;
        }
        Ok(Arc::new(handle))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names();
        for part in path.ancestors().filter(|part| !part.as_os_str().is_empty()) {
            if self.is_directory(&names, part) {
                return Ok(());
            }
            if self.find(&mut names, part, OpenFlags::READ).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            names.insert(part.to_owned(), Entry::Directory);
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let names = self.names();
        let below = match names.get(directory) {
            None => retry(|| self.below.list(directory))?,
            Some(Entry::Directory) => Vec::new(),
            Some(Entry::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
            Some(Entry::Removed) => return Err(io::ErrorKind::NotFound.into()),
        };
        let mut found: BTreeSet<OsString> = below.into_iter().collect();
        for (path, entry) in &*names {
            let Some(name) = path.file_name().filter(|_| path.parent() == Some(directory)) else {
                continue;
            };
            match entry {
                Entry::Removed => found.remove(name),
                Entry::File(_) | Entry::Directory => found.insert(name.to_owned()),
            };
        }
        Ok(found.into_iter().collect())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        match self.names().get(path) {
            Some(Entry::File(node)) => Ok(node.len()),
            Some(Entry::Directory) => Ok(0),
            Some(Entry::Removed) => Err(io::ErrorKind::NotFound.into()),
            None => self.below.len(path),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names();
        if self.is_directory(&names, path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.find(&mut names, path, OpenFlags::READ)?;
        names.insert(path.to_owned(), Entry::Removed);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names();
        let (node, _) = self.find(&mut names, from, OpenFlags::READ)?;
        self.check_parent(&names, to)?;
        if self.is_directory(&names, to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        names.insert(from.to_owned(), Entry::Removed);
        names.insert(to.to_owned(), Entry::File(node));
        Ok(())
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn VfsDirectory>> {
        let names = self.names();
        if names.contains_key(path) && !self.is_directory(&names, path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if !names.contains_key(path) {
            retry(|| self.below.list(path))?;
        }
        Ok(Arc::new(Unsynced))
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        match self.names().get(path) {
            Some(_) => Ok(path.to_owned()),
            None => self.below.resolve(path),
        }
    }

    fn is_regular(&self, path: &Path) -> io::Result<bool> {
        match self.names().get(path) {
            Some(Entry::File(_)) => Ok(true),
            Some(Entry::Directory) => Ok(false),
            Some(Entry::Removed) => Err(io::ErrorKind::NotFound.into()),
            None => self.below.is_regular(path),
        }
    }
}

/// A directory whose names are in memory.
#[derive(Debug)]
struct Unsynced;

impl VfsDirectory for Unsynced {
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
