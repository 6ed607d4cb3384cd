//! How bulk work uses the buffer pool and memory.
//!
//! Scans of tables larger than a quarter of the pool, bulk loads, index builds, VACUUM and ANALYZE
//! each use a ring of frames ([`millpond_buffer::Ring`]). So they don't evict the pages that others
//! use. Large scans also join one another ([`crate::access::heap`]'s synchronized scans).
//!
//! A sequential reader reads ahead ([`millpond_buffer::ReadStream`]), and so does a long index scan
//! for the pages of its table. Each worker of a parallel scan has a ring.

use millpond_buffer::{RingSizes, StreamOptions};

/// A session's settings for bulk work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkAccess {
    /// The number of pages in each ring; 0: no ring.
    pub rings: RingSizes,
    /// Whether a scan of a large table starts where another scan is (`synchronize_seqscans`).
    pub synchronize_scans: bool,
    /// How statements read ahead (`effective_io_concurrency`, `io_combine_limit`).
    pub streams: StreamOptions,
    /// How VACUUM, ANALYZE and index builds read ahead (`maintenance_io_concurrency`).
    pub maintenance_streams: StreamOptions,
    /// Whether calls that read and write are timed (`track_io_timing`).
    pub io_timing: bool,
    /// The memory in bytes that an index build may use to sort (`maintenance_work_mem`).
    pub maintenance_work_bytes: usize,
}

impl Default for BulkAccess {
    fn default() -> Self {
        Self {
            rings: RingSizes::default(),
            synchronize_scans: true,
            streams: StreamOptions::default(),
            maintenance_streams: StreamOptions::default(),
            io_timing: false,
            maintenance_work_bytes: 64 << 20,
        }
    }
}
