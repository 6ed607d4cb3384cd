//! How a file store lays out its files, and reads and writes them.

use std::sync::Arc;

use millpond_vfs::{OsVfs, Vfs};

use super::IoMethod;

const DEFAULT_SEGMENT_BLOCKS: u32 = 131_072;
const DEFAULT_IO_WORKERS: usize = 3;
const DEFAULT_RESERVED_DESCRIPTORS: usize = 64;

/// How a [`FileStore`](super::FileStore) lays out its files. Start from the default and change what you need.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileStoreOptions {
    /// Blocks per segment file. Fixed for the life of the directory; 131072 (1 GiB) unless told otherwise.
    pub segment_blocks: u32,
    /// How reads ahead of their use, and writes behind them, are done (`io_method`).
    pub io_method: IoMethod,
    /// How many threads read and write, if threads do (`io_workers`).
    pub io_workers: usize,
    /// Whether files pass the operating system's cache by (`debug_io_direct = data`). Every miss then waits for
    /// the device, so a pool should be most of the memory.
    pub direct_io: bool,
    /// How many of the process's descriptors are left to the rest of it. When the stores of the process would use more
    /// than the others, they close files that nobody is using.
    pub reserved_descriptors: usize,
    /// The file system: the kernel's unless told otherwise.
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
