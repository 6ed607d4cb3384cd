//! What bulk work is, and how much of the pool it may have.

use crate::pool::BufferPool;
use crate::stats::IoContext;

/// A relation of more than this part of the pool is scanned through a ring.
const LARGE_PART: usize = 4;

/// How a job uses the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AccessStrategy {
    /// As everybody: its pages compete with all others by use.
    #[default]
    Normal,
    /// A large read: a scan of a relation of more than a quarter of the pool.
    BulkRead,
    /// A large write: loading or building a relation.
    BulkWrite,
    /// Visiting every page to tidy it up.
    Vacuum,
}

impl AccessStrategy {
    /// In what context its input and output are counted.
    pub(super) fn io_context(self) -> IoContext {
        match self {
            Self::Normal => IoContext::Normal,
            Self::BulkRead => IoContext::BulkRead,
            Self::BulkWrite => IoContext::BulkWrite,
            Self::Vacuum => IoContext::Vacuum,
        }
    }
}

/// How many pages rings have, by strategy; 0: no ring. Whatever is asked for, a ring has at most an eighth of the
/// pool, but for a bulk read whose pages wait for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSizes {
    /// Bulk reads.
    pub bulk_read: usize,
    /// Bulk writes.
    pub bulk_write: usize,
    /// Vacuum.
    pub vacuum: usize,
}

impl Default for RingSizes {
    /// PostgreSQL's: 256 kB, 16 MB and 2 MB.
    fn default() -> Self {
        Self { bulk_read: 32, bulk_write: 2048, vacuum: 256 }
    }
}

impl RingSizes {
    /// The pages of a strategy's ring.
    #[must_use]
    pub fn pages(&self, strategy: AccessStrategy) -> usize {
        match strategy {
            AccessStrategy::Normal => 0,
            AccessStrategy::BulkRead => self.bulk_read,
            AccessStrategy::BulkWrite => self.bulk_write,
            AccessStrategy::Vacuum => self.vacuum,
        }
    }
}

impl BufferPool {
    /// Whether a scan of that many blocks is a bulk read: more than a quarter of the pool.
    #[must_use]
    pub fn is_large(&self, blocks: u32) -> bool {
        blocks as usize > self.frames() / LARGE_PART
    }
}
