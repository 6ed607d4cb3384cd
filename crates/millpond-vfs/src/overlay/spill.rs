//! The store of an overlay's written blocks: in memory up to a limit, then in a temporary file.
//!
//! The spill removes the file's name right after it opens the file. So the kernel frees the file
//! when the process ends, however it ends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_sync::sync::Mutex;

use crate::{OpenFlags, Vfs, VfsFile, read_exact_at, retry, write_all_at};

/// The size of a block in bytes.
pub(super) const BLOCK: usize = 8192;

pub(super) type Block = [u8; BLOCK];

/// The place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

/// Space for the blocks that are written to an overlay.
#[derive(Debug)]
pub struct Spill {
    /// The number of blocks that are kept in memory.
    in_memory: u64,
    directory: Option<(Arc<dyn Vfs>, PathBuf)>,
    blocks: Mutex<Blocks>,
}

#[derive(Debug, Default)]
struct Blocks {
    memory: Vec<Box<Block>>,
    file: Option<Arc<dyn VfsFile>>,
    /// All places below this one have been handed out.
    next: u64,
    free: Vec<Place>,
}

/// Tells the temporary files of one process apart.
static MADE: AtomicU64 = AtomicU64::new(0);

impl Spill {
    /// Keeps all blocks in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { in_memory: u64::MAX, directory: None, blocks: Mutex::default() }
    }

    /// Keeps up to `memory_bytes` in memory, and the rest in a file of `directory`. The file is
    /// made when it is first needed.
    #[must_use]
    pub fn to_directory(memory_bytes: u64, vfs: Arc<dyn Vfs>, directory: PathBuf) -> Self {
        Self {
            in_memory: memory_bytes / BLOCK as u64,
            directory: Some((vfs, directory)),
            blocks: Mutex::default(),
        }
    }

    /// The directory of the temporary file.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(|(_, directory)| directory.as_path())
    }

    /// Stores a block at its existing place, or at a new one.
    pub(super) fn put(&self, place: Option<Place>, bytes: &Block) -> io::Result<Place> {
        let mut blocks = self.blocks.lock();
        let at = place.or_else(|| blocks.free.pop()).unwrap_or(Place(blocks.next));
        if at.0 < self.in_memory {
            match blocks.memory.get_mut(at.0 as usize) {
                Some(kept) => kept.copy_from_slice(bytes),
                None => blocks.memory.push(Box::new(*bytes)),
            }
        } else {
            let written = self.file(&mut blocks).and_then(|file| {
                write_all_at(&*file, bytes, (at.0 - self.in_memory) * BLOCK as u64)
            });
            if let Err(error) = written {
                if place.is_none() && at.0 < blocks.next {
                    blocks.free.push(at);
                }
                return Err(temporary(&error));
            }
        }
        blocks.next = blocks.next.max(at.0 + 1);
        Ok(at)
    }

    /// Reads a block back.
    pub(super) fn get(&self, place: Place, bytes: &mut Block) -> io::Result<()> {
        let mut blocks = self.blocks.lock();
        if let Some(kept) = blocks.memory.get(place.0 as usize) {
            bytes.copy_from_slice(&**kept);
            return Ok(());
        }
        let file = self.file(&mut blocks).map_err(|error| temporary(&error))?;
        drop(blocks);
        let offset = place.0.saturating_sub(self.in_memory) * BLOCK as u64;
        read_exact_at(&*file, bytes, offset).map_err(|error| temporary(&error))
    }

    /// Gives a place back.
    pub(super) fn release(&self, place: Place) {
        self.blocks.lock().free.push(place);
    }

    /// The temporary file, which is made if there is none yet.
    fn file(&self, blocks: &mut Blocks) -> io::Result<Arc<dyn VfsFile>> {
        if let Some(file) = &blocks.file {
            return Ok(Arc::clone(file));
        }
        let Some((vfs, directory)) = &self.directory else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("millpond_tmp{}.{number}", std::process::id()));
            match retry(|| vfs.open(&path, OpenFlags::CREATE_NEW)) {
                Ok(file) => {
                    retry(|| vfs.remove(&path))?;
                    blocks.file = Some(Arc::clone(&file));
                    return Ok(file);
                }
                // Another process has used this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Marks an error as the temporary file's, so that it does not pass for one of an overlay's file.
fn temporary(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("temporary file of changes: {error}"))
}
