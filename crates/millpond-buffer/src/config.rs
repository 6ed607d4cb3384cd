//! The settings of a pool: its sizes, and how much of it each kind of bulk work may have.

use crate::error::BufferError;
use crate::policy::ReplacementPolicy;
use crate::stats::IoContext;
use crate::trace::PageTrace;
use std::sync::Arc;

const MAX_FREELISTS: usize = 1 << 16;

/// The settings of a pool. Start from [`PoolConfig::new`] and change what you need:
///
/// ```
/// # use millpond_buffer::PoolConfig;
/// let mut config = PoolConfig::new(16_384, 100);
/// config.max_frames = 131_072; // `BufferPool::resize` may make it 1 GB later.
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PoolConfig {
    /// How many pages the pool holds.
    pub frames: usize,
    /// How many pages [`crate::BufferPool::resize`] can make it hold later. Their addresses are
    /// reserved, but no memory. A value less than `frames`, such as 0, means `frames`.
    pub max_frames: usize,
    /// How many sessions can exist at a time (at most 65,534).
    pub max_sessions: usize,
    /// How many freelists there are (at most 65,536); 0 for one per processor.
    pub freelists: usize,
    /// How many frames of the clock sweep a session examines as one piece (1 to 1024).
    pub sweep_batch: usize,
    /// Whether to ask the system for huge pages.
    pub huge_pages: bool,
    /// Whether to use the system call `membarrier`, if there is one, so that a pin needs no memory
    /// barrier.
    pub membarrier: bool,
    /// How many neighbouring pages one write may carry (1 to 128).
    pub max_write_run: usize,
    /// How many such writes a checkpoint, the reclaimer or a job with a ring may each have in
    /// progress (at least 1).
    pub io_max_concurrency: usize,
    /// Which pages are evicted.
    pub policy: ReplacementPolicy,
    /// Where accesses are recorded, if at all: a `trace::TraceFile`, for example.
    pub trace: Option<Arc<dyn PageTrace>>,
    /// How many pages the rings of bulk work have (PostgreSQL's buffer access strategies).
    pub ring_sizes: RingSizes,
}

impl PoolConfig {
    /// A pool of `frames` pages, used by up to `max_sessions` sessions at a time.
    #[must_use]
    pub fn new(frames: usize, max_sessions: usize) -> Self {
        Self {
            frames,
            max_frames: 0,
            max_sessions,
            freelists: 0,
            sweep_batch: 32,
            huge_pages: true,
            membarrier: true,
            max_write_run: 32,
            io_max_concurrency: 16,
            policy: ReplacementPolicy::default(),
            trace: None,
            ring_sizes: RingSizes::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), BufferError> {
        let fail = |what| Err(BufferError::Config { what });
        if self.frames == 0 || self.frames.max(self.max_frames) > crate::MAX_FRAMES {
            return fail("frames must be between 1 and 2^31");
        }
        if self.max_sessions == 0 || self.max_sessions > 65_534 {
            return fail("max_sessions must be between 1 and 65534");
        }
        if self.freelists > MAX_FREELISTS {
            return fail("freelists must be at most 65536");
        }
        if self.sweep_batch == 0 || self.sweep_batch > 1024 {
            return fail("sweep_batch must be between 1 and 1024");
        }
        if self.max_write_run == 0 || self.max_write_run > 128 {
            return fail("max_write_run must be between 1 and 128");
        }
        if self.io_max_concurrency == 0 {
            return fail("io_max_concurrency must be at least 1");
        }
        Ok(())
    }
}

impl Default for PoolConfig {
    /// 128 MiB and 128 sessions.
    fn default() -> Self {
        Self::new(16_384, 128)
    }
}

/// How a job uses the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum AccessStrategy {
    /// No bulk work: its pages compete with all others by use.
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
    /// The context in which its input and output are counted.
    pub(crate) fn io_context(self) -> IoContext {
        match self {
            Self::Normal => IoContext::Normal,
            Self::BulkRead => IoContext::BulkRead,
            Self::BulkWrite => IoContext::BulkWrite,
            Self::Vacuum => IoContext::Vacuum,
        }
    }
}

/// The number of pages in a ring, by strategy; 0: no ring. A ring never has more than an eighth of
/// the pool, except for a bulk read whose pages wait for the log.
///
/// ```
/// # use millpond_buffer::*;
/// let mut config = PoolConfig::default();
/// // A longer ring for vacuum, and none for scans.
/// config.ring_sizes = RingSizes::default().with_vacuum(1024).with_bulk_read(0);
/// assert_eq!(config.ring_sizes.pages(AccessStrategy::Vacuum), 1024);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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
    /// With rings of that many pages for bulk reads.
    #[must_use]
    pub const fn with_bulk_read(mut self, pages: usize) -> Self {
        self.bulk_read = pages;
        self
    }

    /// With rings of that many pages for bulk writes.
    #[must_use]
    pub const fn with_bulk_write(mut self, pages: usize) -> Self {
        self.bulk_write = pages;
        self
    }

    /// With rings of that many pages for vacuum.
    #[must_use]
    pub const fn with_vacuum(mut self, pages: usize) -> Self {
        self.vacuum = pages;
        self
    }

    /// The number of pages in a strategy's ring.
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

/// Whether an operation may wait for a device, for another session's load, or for a dirty page to
/// be written. An event loop passes [`Wait::Never`], and moves a call that would block to a thread
/// that may.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// fn first(session: &BufferSession, rel: &RelHandle, wait: Wait) -> Result<u64, BufferError> {
///     session.read(rel, BlockNumber(0), wait, |page| page.u64(16))
/// }
/// let value = match first(&session, &rel, Wait::Never) {
///     // On a thread that may wait:
///     Err(error) if error.is_would_block() => first(&session, &rel, Wait::Allowed)?,
///     result => result?,
/// };
/// # assert_eq!(value, 0);
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Wait {
    /// Return [`BufferError::WouldBlock`] instead of waiting. (The call still waits for latches,
    /// which are held only briefly.)
    Never,
    /// Wait.
    #[default]
    Allowed,
}
