//! The log in files: `wal/` with a file per segment, and `control`.
//!
//! A segment is created under another name, filled with zeros and synced before it gets its own:
//! so a full disk is met when a segment is made, never when a record is written, and a segment that
//! has its name has its length and its blocks (wal rule 8).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_sync::sync::Mutex;

use super::store::{CONTROL_COPY_BYTES, LogStore};

/// A segment is filled in pieces of a few of the file system's blocks: what one call writes stays one piece of the
/// system's cache, and each commit's write and sync of a hundred bytes goes through all blocks of its piece. With
/// pieces of a megabyte that took a fifth of the two (49 µs, instead of 39; ext4 with large folios).
const FILL_BYTES: u64 = 8192;

/// Where the second copy starts: in another block of any device.
const CONTROL_COPY_STRIDE: u64 = 8192;

/// The log of a data directory.
pub struct FileLogStore {
    wal: PathBuf,
    root: PathBuf,
    segment_bytes: u64,
    open: Mutex<BTreeMap<u64, Arc<File>>>,
}

impl FileLogStore {
    /// Opens the log of data directory `root`; creates `root/wal` if it is missing, and removes
    /// segments that were being created when the engine went down.
    pub fn open(root: &Path, segment_bytes: u64) -> io::Result<Self> {
        let wal = root.join("wal");
        fs::create_dir_all(&wal)?;
        for entry in fs::read_dir(&wal)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "new") {
                fs::remove_file(path)?;
            }
        }
        sync_directory(root)?;
        Ok(Self { wal, root: root.to_owned(), segment_bytes, open: Mutex::default() })
    }

    fn path(&self, segment: u64) -> PathBuf {
        self.wal.join(format!("{segment:016x}"))
    }

    fn file(&self, segment: u64) -> io::Result<Arc<File>> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(&segment) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(OpenOptions::new().read(true).write(true).open(self.path(segment))?);
        // Writers are in the last segments; what is older is read once, by recovery.
        if open.len() >= 8 {
            open.pop_first();
        }
        open.insert(segment, Arc::clone(&file));
        Ok(file)
    }

    fn fill(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        let zeros = vec![0; self.segment_bytes.min(FILL_BYTES) as usize];
        let mut at = 0;
        while at < self.segment_bytes {
            let part = zeros.len().min((self.segment_bytes - at) as usize);
            file.write_all_at(&zeros[..part], at)?;
            at += part as u64;
        }
        file.sync_all()
    }
}

/// Makes the names in a directory durable.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

impl LogStore for FileLogStore {
    fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    fn segments(&self) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.wal)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().filter(|name| name.len() == 16);
            let Some(number) = number.and_then(|name| u64::from_str_radix(name, 16).ok()) else {
                continue;
            };
            if entry.metadata()?.len() == self.segment_bytes {
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
            .and_then(|()| fs::rename(&unfinished, self.path(segment)))
            .and_then(|()| sync_directory(&self.wal));
        if made.is_err() {
            // Gives the space back; the first error is the one to report.
            let _ = fs::remove_file(&unfinished);
        }
        made
    }

    fn recycle(&self, from: u64, to: u64) -> io::Result<()> {
        self.open.lock().remove(&from);
        fs::rename(self.path(from), self.path(to))?;
        sync_directory(&self.wal)
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.open.lock().remove(&segment);
        fs::remove_file(self.path(segment))?;
        sync_directory(&self.wal)
    }

    fn read(&self, segment: u64, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file(segment)?.read_exact_at(bytes, offset)
    }

    fn write(&self, segment: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file(segment)?.write_all_at(bytes, offset)
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        self.file(segment)?.sync_data()
    }

    fn read_control(&self, copy: usize) -> io::Result<Option<[u8; CONTROL_COPY_BYTES]>> {
        let file = match File::open(self.root.join("control")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = [0; CONTROL_COPY_BYTES];
        match file.read_exact_at(&mut bytes, copy as u64 * CONTROL_COPY_STRIDE) {
            // A control file that is being created: the copy counts as damaged.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some([0; _])),
            Err(error) => Err(error),
            Ok(()) => Ok(Some(bytes)),
        }
    }

    fn write_control(&self, copy: usize, bytes: &[u8; CONTROL_COPY_BYTES]) -> io::Result<()> {
        let path = self.root.join("control");
        let at = copy as u64 * CONTROL_COPY_STRIDE;
        if path.exists() {
            let file = OpenOptions::new().write(true).open(path)?;
            file.write_all_at(bytes, at)?;
            return file.sync_all();
        }
        // A new one comes into being whole.
        let unfinished = self.root.join("control.new");
        let file = File::create(&unfinished)?;
        file.set_len(2 * CONTROL_COPY_STRIDE)?;
        file.write_all_at(bytes, at)?;
        file.sync_all()?;
        fs::rename(unfinished, path)?;
        sync_directory(&self.root)
    }
}
