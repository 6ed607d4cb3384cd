//! How a pool is set up.

use crate::error::BufferError;
use crate::policy::ReplacementPolicy;
use crate::ring::RingSizes;
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
    /// How many pages it can be made to hold later ([`crate::BufferPool::resize`]): so many addresses are
    /// reserved, but no memory. Fewer than `frames`, such as 0: as many as `frames`.
    pub max_frames: usize,
    /// How many sessions can exist at a time (at most 65,534).
    pub max_sessions: usize,
    /// How many freelists there are (at most 65,536); 0 for one per processor.
    pub freelists: usize,
    /// How many frames a session takes from the clock at a time (1 to 1024).
    pub sweep_batch: usize,
    /// Whether to ask the system for huge pages.
    pub huge_pages: bool,
    /// Whether to use the system's `membarrier`, where it has it, so that a pin needs no memory barrier.
    pub membarrier: bool,
    /// How many neighbouring pages one write may carry (1 to 128).
    pub max_write_run: usize,
    /// How many such writes a checkpoint, the reclaimer or a job with a ring may each have under way (at least 1).
    pub io_max_concurrency: usize,
    /// Which pages leave.
    pub policy: ReplacementPolicy,
    /// Where accesses are recorded, if they are: a `trace::TraceFile`, for example.
    pub trace: Option<Arc<dyn PageTrace>>,
    /// How many pages the rings of bulk work have.
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

/// Whether an operation may wait for a device, for another session's load, or for a dirty page to be
/// written. An event loop says [`Wait::Never`], and hands what would block to a thread that may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Return [`BufferError::WouldBlock`] instead of waiting. (Latches are short, and are waited for
    /// all the same.)
    Never,
    /// Wait.
    #[default]
    Allowed,
}
