//! How bulk work uses the buffer pool and memory.
//!
//! Scans of tables of more than a quarter of the pool, loads, index builds, VACUUM and ANALYZE go round in a ring
//! of the pool's frames each ([`millpond_buffer::Ring`]), so that they don't push out what others use; and such scans
//! join one another ([`crate::access::heap`]'s synchronized scans). Whoever reads one page after the other reads
//! ahead ([`millpond_buffer::ReadStream`]), also who comes to a table's pages by an index and turns out to be long at it. Each
//! worker of a parallel scan has a ring.

use millpond_buffer::{AccessStrategy, ReadStream, Ring, RingSizes, StreamOptions};

use crate::access::heap;
use crate::ctx::Ctx;

/// A session's choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkAccess {
    /// How many pages the rings have; 0: no ring.
    pub rings: RingSizes,
    /// Whether scans of a large table begin where another scan is (`synchronize_seqscans`).
    pub synchronize_scans: bool,
    /// How statements read ahead (`effective_io_concurrency`, `io_combine_limit`).
    pub streams: StreamOptions,
    /// How VACUUM, ANALYZE and index builds do (`maintenance_io_concurrency`).
    pub maintenance_streams: StreamOptions,
    /// Whether calls that read and write are timed (`track_io_timing`).
    pub io_timing: bool,
    /// Bytes of memory in which an index build sorts (`maintenance_work_mem`).
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

impl Ctx {
    /// A ring for a job; `None` if it is to do without. As in PostgreSQL 18, one for reading has room besides for what
    /// may be read ahead.
    pub fn ring(&self, strategy: AccessStrategy) -> Option<Ring> {
        let bulk = self.bulk_access();
        match (strategy, bulk.rings.pages(strategy)) {
            (_, 0) => None,
            (AccessStrategy::BulkRead, pages) => {
                let StreamOptions { io_concurrency, io_combine_limit } = bulk.streams;
                let ahead = (io_concurrency * io_combine_limit) as usize;
                Ring::with_read_ahead(self.pool(), strategy, pages, ahead)
            }
            (_, pages) => Ring::with_pages(self.pool(), strategy, pages),
        }
    }

    /// A stream of pages for VACUUM and its like.
    pub fn maintenance_stream(&self) -> ReadStream {
        ReadStream::new(self.bulk_access().maintenance_streams)
    }

    /// A ring for reading a relation of that many blocks, if it is large.
    pub fn read_ring(&self, blocks: u32) -> Option<Ring> {
        self.pool().is_large(blocks).then(|| self.ring(AccessStrategy::BulkRead)).flatten()
    }

    /// A ring for reading pages of a relation of that many blocks in no order, some of them again and again; if it is
    /// large. If it is worth it, it becomes as long as rings may be.
    pub fn wide_read_ring(&self, blocks: u32) -> Option<Ring> {
        let pages = self.bulk_access().rings.bulk_read;
        let is_wanted = self.pool().is_large(blocks) && pages > 0;
        is_wanted.then(|| Ring::widening(self.pool(), AccessStrategy::BulkRead, pages)).flatten()
    }

    /// What a scan of a table, or of a part of it, becomes if the table is large. `lane` tells the parts apart.
    pub(crate) fn bulk_scan(&self, scan: heap::HeapScan, lane: usize) -> heap::HeapScan {
        let scan = scan.reading_ahead(self.bulk_access().streams);
        if !self.pool().is_large(scan.heap().block_count()) {
            return scan;
        }
        let scan = scan.in_ring(self.ring(AccessStrategy::BulkRead));
        if self.bulk_access().synchronize_scans { scan.synchronized(lane) } else { scan }
    }
}
