//! The log in files: `wal/` with a file per segment, and `control`.
//!
//! A segment is created under another name, filled with zeros and synced before it gets its own:
//! so a full disk is met when a segment is made, never when a record is written, and a segment that
//! has its name has its length and its blocks (wal rule 8).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_sync::sync::Mutex;
use millpond_vfs::{
    OpenFlags, OsVfs, Vfs, VfsDirectory, VfsFile, exists, read_exact_at, retry, write_all_at,
};

use super::store::{CONTROL_COPY_BYTES, LogStore};

/// A segment is filled in pieces of a few of the file system's blocks: what one call writes stays one piece of the
/// system's cache, and each commit's write and sync of a hundred bytes goes through all blocks of its piece. With
/// pieces of a megabyte that took a fifth of the two (49 µs, instead of 39; ext4 with large folios).
const FILL_BYTES: u64 = 8192;

/// Where the second copy starts: in another block of any device.
const CONTROL_COPY_STRIDE: u64 = 8192;

/// For a file that is made anew, whatever was there.
const CREATE_EMPTY: OpenFlags = OpenFlags { truncate: true, ..OpenFlags::CREATE };

/// The log of a data directory.
pub struct FileLogStore {
    vfs: Arc<dyn Vfs>,
    wal: PathBuf,
    wal_directory: Arc<dyn VfsDirectory>,
    root: PathBuf,
    root_directory: Arc<dyn VfsDirectory>,
    segment_bytes: u64,
    open: Mutex<BTreeMap<u64, Arc<dyn VfsFile>>>,
}

impl FileLogStore {
    /// [`FileLogStore::open_on`] on the kernel's file system.
    pub fn open(root: &Path, segment_bytes: u64) -> io::Result<Self> {
        Self::open_on(Arc::new(OsVfs), root, segment_bytes)
    }

    /// Opens the log of data directory `root`; creates `root/wal` if it is missing, and removes
    /// segments that were being created when the engine went down.
    pub fn open_on(vfs: Arc<dyn Vfs>, root: &Path, segment_bytes: u64) -> io::Result<Self> {
        let wal = root.join("wal");
        retry(|| vfs.create_directory(&wal))?;
        for name in retry(|| vfs.list(&wal))? {
            let path = wal.join(name);
            if path.extension().is_some_and(|extension| extension == "new") {
                retry(|| vfs.remove(&path))?;
            }
        }
        let wal_directory = retry(|| vfs.open_directory(&wal))?;
        let root_directory = retry(|| vfs.open_directory(root))?;
        root_directory.sync()?;
        let (root, open) = (root.to_owned(), Mutex::default());
        Ok(Self { vfs, wal, wal_directory, root, root_directory, segment_bytes, open })
    }

    fn path(&self, segment: u64) -> PathBuf {
        self.wal.join(format!("{segment:016x}"))
    }

    fn file(&self, segment: u64) -> io::Result<Arc<dyn VfsFile>> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(&segment) {
            return Ok(Arc::clone(file));
        }
        let path = self.path(segment);
        let file = retry(|| self.vfs.open(&path, OpenFlags::WRITE))?;
        // Writers are in the last segments; what is older is read once, by recovery.
        if open.len() >= 8 {
            open.pop_first();
        }
        open.insert(segment, Arc::clone(&file));
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        retry(|| self.vfs.rename(from, to))
    }

    fn fill(&self, path: &Path) -> io::Result<()> {
        let file = retry(|| self.vfs.open(path, CREATE_EMPTY))?;
        let zeros = vec![0; self.segment_bytes.min(FILL_BYTES) as usize];
        let mut at = 0;
        while at < self.segment_bytes {
            let part = zeros.len().min((self.segment_bytes - at) as usize);
            write_all_at(&*file, &zeros[..part], at)?;
            at += part as u64;
        }
        file.sync_data()
    }
}

impl LogStore for FileLogStore {
    fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    fn segments(&self) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        for name in retry(|| self.vfs.list(&self.wal))? {
            let number = name.to_str().filter(|name| name.len() == 16);
            let Some(number) = number.and_then(|name| u64::from_str_radix(name, 16).ok()) else {
                continue;
            };
            let path = self.path(number);
            if retry(|| self.vfs.len(&path))? == self.segment_bytes {
                found.push(number);
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn create(&self, segment: u64) -> io::Result<()> {
        let unfinished = self.wal.join(format!("{segment:016x}.new"));
        let made = self
            .fill(&unfinished)
            .and_then(|()| self.rename(&unfinished, &self.path(segment)))
            .and_then(|()| self.wal_directory.sync());
        if made.is_err() {
            // Gives the space back; the first error is the one to report.
            let _ = retry(|| self.vfs.remove(&unfinished));
        }
        made
    }

    fn recycle(&self, from: u64, to: u64) -> io::Result<()> {
        self.open.lock().remove(&from);
        self.rename(&self.path(from), &self.path(to))?;
        self.wal_directory.sync()
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.open.lock().remove(&segment);
        let path = self.path(segment);
        retry(|| self.vfs.remove(&path))?;
        self.wal_directory.sync()
    }

    fn read(&self, segment: u64, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        read_exact_at(&*self.file(segment)?, bytes, offset)
    }

    fn write(&self, segment: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        write_all_at(&*self.file(segment)?, bytes, offset)
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        self.file(segment)?.sync_data()
    }

    fn read_control(&self, copy: usize) -> io::Result<Option<[u8; CONTROL_COPY_BYTES]>> {
        let path = self.root.join("control");
        let file = match retry(|| self.vfs.open(&path, OpenFlags::READ)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = [0; CONTROL_COPY_BYTES];
        match read_exact_at(&*file, &mut bytes, copy as u64 * CONTROL_COPY_STRIDE) {
            // A control file that is being created: the copy counts as damaged.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some([0; _])),
            Err(error) => Err(error),
            Ok(()) => Ok(Some(bytes)),
        }
    }

    fn write_control(&self, copy: usize, bytes: &[u8; CONTROL_COPY_BYTES]) -> io::Result<()> {
        let path = self.root.join("control");
        let at = copy as u64 * CONTROL_COPY_STRIDE;
        if exists(&*self.vfs, &path)? {
            let file = retry(|| self.vfs.open(&path, OpenFlags::WRITE))?;
            write_all_at(&*file, bytes, at)?;
            return file.sync_data();
        }
        // A new one comes into being whole.
        let unfinished = self.root.join("control.new");
        let file = retry(|| self.vfs.open(&unfinished, CREATE_EMPTY))?;
        retry(|| file.set_len(2 * CONTROL_COPY_STRIDE))?;
        write_all_at(&*file, bytes, at)?;
        file.sync_data()?;
        self.rename(&unfinished, &path)?;
        self.root_directory.sync()
    }
}
