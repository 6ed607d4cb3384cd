//! How a file store lays out its files, and reads and writes them.

use std::sync::Arc;

use millpond_vfs::{OsVfs, Vfs};

use super::IoMethod;

const DEFAULT_SEGMENT_BLOCKS: u32 = 131_072;
const DEFAULT_IO_WORKERS: usize = 3;
const DEFAULT_RESERVED_DESCRIPTORS: usize = 64;

/// Options of a [`FileStore`](super::FileStore). Start from the default and change what you need.
///
/// ```
/// # use millpond_buffer::*;
/// # let dir = tempfile::tempdir().expect("a folder");
/// # let dir = dir.path().join("data");
/// let mut options = FileStoreOptions::default();
/// options.io_method = IoMethod::Worker;
/// options.io_workers = 8;
/// let store = FileStore::open_with(&dir, options)?;
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileStoreOptions {
    /// Blocks per segment file. Fixed for the life of the directory; by default 131072 (1 GiB of
    /// pages of 8 KiB).
    pub segment_blocks: u32,
    /// How reads ahead and writes behind are done (`io_method`).
    pub io_method: IoMethod,
    /// The number of threads that read and write, if threads do (`io_workers`).
    pub io_workers: usize,
    /// Whether files bypass the operating system's cache (`debug_io_direct = data`). Every miss
    /// then waits for the device, so the pool should have most of the memory.
    pub direct_io: bool,
    /// The number of the process's descriptors that are left to other uses. When the stores of the
    /// process would use more than the rest, they close files that are not in use.
    pub reserved_descriptors: usize,
    /// The file system; by default the kernel's.
    pub vfs: Arc<dyn Vfs>,
}

impl Default for FileStoreOptions {
    fn default() -> Self {
        Self {
            segment_blocks: DEFAULT_SEGMENT_BLOCKS,
            io_method: IoMethod::default(),
            io_workers: DEFAULT_IO_WORKERS,
            direct_io: false,
            reserved_descriptors: DEFAULT_RESERVED_DESCRIPTORS,
            vfs: Arc::new(OsVfs),
        }
    }
}
