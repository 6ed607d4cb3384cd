//! The buffer rings and read streams of a session's bulk work: large scans, VACUUM, loads.
//! The session's settings ([`crate::bulk`]) decide on their sizes.

use millpond_buffer::{AccessStrategy, ReadStream, Ring, StreamOptions};

use super::Ctx;

impl Ctx {
    /// A ring for a job; `None` if settings and pool leave it no pages. As in PostgreSQL 18, a ring
    /// for reading has extra room for pages read ahead.
    pub fn ring(&self, strategy: AccessStrategy) -> Option<Ring> {
        let bulk = self.bulk_access();
        match (strategy, bulk.rings.pages(strategy)) {
            (_, 0) => None,
            (AccessStrategy::BulkRead, pages) => {
                let StreamOptions { io_concurrency, io_combine_limit, .. } = bulk.streams;
                let ahead = (io_concurrency * io_combine_limit) as usize;
                Ring::with_read_ahead(self.pool(), strategy, pages, ahead)
            }
            (_, pages) => Ring::with_pages(self.pool(), strategy, pages),
        }
    }

    /// A read stream for VACUUM, ANALYZE and index builds.
    pub fn maintenance_stream(&self) -> ReadStream {
        ReadStream::new(self.bulk_access().maintenance_streams)
    }

    /// A ring for reading a relation of `blocks` blocks, if it is large.
    pub fn read_ring(&self, blocks: u32) -> Option<Ring> {
        self.pool().is_large(blocks).then(|| self.ring(AccessStrategy::BulkRead)).flatten()
    }

    /// A ring for random reads of a relation of `blocks` blocks, some of them repeated, if it is
    /// large. It grows up to the largest size of a ring when that pays.
    pub fn wide_read_ring(&self, blocks: u32) -> Option<Ring> {
        let pages = self.bulk_access().rings.bulk_read;
        let is_wanted = self.pool().is_large(blocks) && pages > 0;
        is_wanted.then(|| Ring::widening(self.pool(), AccessStrategy::BulkRead, pages)).flatten()
    }
}
