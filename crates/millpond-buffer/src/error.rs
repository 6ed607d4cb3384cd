//! The errors of the pool.

use crate::arena::ArenaError;
use crate::ids::{BlockNumber, Lsn, PageId, RelFork};
use crate::log::LogFlushError;
use crate::page::ChecksumMismatch;
use crate::store::StoreError;

/// An error of the pool. No error leaves a frame, a pin or a translation entry stuck, and each
/// operation may be tried again.
///
/// ```
/// # use millpond_buffer::*;
/// # let store = std::sync::Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, std::sync::Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// let error = session.pin(&rel, BlockNumber(7), Wait::Allowed).expect_err("there is one block");
/// assert!(matches!(error, BufferError::BeyondEnd { blocks: 1, .. }));
/// assert!(!error.is_damage() && !error.is_would_block());
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The operation would have to wait and was told not to. It has changed nothing.
    #[error("the operation would have to wait")]
    WouldBlock,
    /// Every frame is pinned.
    #[error("no unpinned buffers available: all {frames} are in use")]
    NoUnpinnedBuffers {
        /// The size of the pool.
        frames: usize,
    },
    /// The pool can't be made that large.
    #[error("the pool can have 1 to {max} pages, not {frames}")]
    Size {
        /// The size asked for.
        frames: usize,
        /// The limit, which was fixed when the pool was made.
        max: usize,
    },
    /// The pool could not be made as small as asked, because pages stay in use or because frames
    /// are lost.
    #[error("the pool has {frames} pages now and can't shrink further {}", until_when(is_lost))]
    Shrinking {
        /// Its size now.
        frames: usize,
        /// The page in the last frame that could not be freed.
        page: Option<PageId>,
        /// Whether that frame is lost: a device may still write to it, so it stays until a restart.
        is_lost: bool,
    },
    /// The page read from the store is not the page that was written there.
    #[error("checksum of {page} does not match: stored {stored:08x}, computed {computed:08x}")]
    Checksum {
        /// The page.
        page: PageId,
        /// The checksum in the page.
        stored: u32,
        /// The checksum of what was read.
        computed: u32,
    },
    /// The page was read as zeros, but the log knows of changes to it.
    #[error("invalid page: {page} is all zeros, but it had been written to")]
    Zeroed {
        /// The page.
        page: PageId,
    },
    /// The page read from the store is whole, but is not the version that the log knows of. It may
    /// be an older copy.
    #[error("invalid page: {page} has LSN {lsn}, and the log's last change of it ends at {known}")]
    OtherVersion {
        /// The page.
        page: PageId,
        /// The LSN in the page.
        lsn: Lsn,
        /// The LSN that it should have.
        known: Lsn,
    },
    /// The page read from the store is newer than the log: the page belongs to another database, or
    /// the log's end is lost.
    #[error("invalid page: {page} has LSN {lsn}, where the log has not been yet")]
    BeyondLog {
        /// The page.
        page: PageId,
        /// The LSN in the page.
        lsn: Lsn,
    },
    /// The store has fewer blocks of the fork than the log knows of.
    #[error(
        "{rel} is too short: the store has {blocks} blocks, but the log knows of at least {least}"
    )]
    CutShort {
        /// The fork.
        rel: RelFork,
        /// How many blocks there are.
        blocks: u32,
        /// How many there must be.
        least: u32,
    },
    /// The store has data beyond the last block of the fork that the log knows of.
    #[error(
        "{rel} is too long: the store has {blocks} blocks of it, {known} are known, and not all others are zeros"
    )]
    TooLong {
        /// The fork.
        rel: RelFork,
        /// How many blocks there are.
        blocks: u32,
        /// How many are known.
        known: u32,
    },
    /// There is no such block.
    #[error("block {block} of {rel} does not exist: there are {blocks}")]
    BeyondEnd {
        /// The fork.
        rel: RelFork,
        /// The block asked for.
        block: BlockNumber,
        /// How many blocks there are.
        blocks: u32,
    },
    /// The relation has been dropped.
    #[error("{rel} has been dropped")]
    Dropped {
        /// The fork asked for.
        rel: RelFork,
    },
    /// The handle belongs to another pool.
    #[error("the handle of {rel} belongs to another pool")]
    ForeignHandle {
        /// The fork.
        rel: RelFork,
    },
    /// The session belongs to another pool than the one that was asked.
    #[error("the session belongs to another pool")]
    ForeignSession,
    /// The ring was made for another pool than the session's.
    #[error("the ring belongs to another pool")]
    ForeignRing,
    /// A relation cannot be dropped or truncated while its pages are in use.
    #[error("{page} is in use")]
    InUse {
        /// The page in use.
        page: PageId,
    },
    /// A relation cannot grow beyond 2^32 - 2 blocks.
    #[error("{rel} cannot grow any further")]
    RelationFull {
        /// The fork.
        rel: RelFork,
    },
    /// A change of the page was interrupted half-way. Only recovery can repair it.
    #[error("a change of {page} was interrupted: restart to recover it from the log")]
    Damaged {
        /// The page.
        page: PageId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log failed, so that pages can't be written.
    #[error(transparent)]
    Log(#[from] LogFlushError),
    /// All sessions are taken.
    #[error("too many sessions: at most {max} can exist at a time")]
    TooManySessions {
        /// The limit.
        max: usize,
    },
    /// The configuration is invalid.
    #[error("invalid pool configuration: {what}")]
    Config {
        /// What is wrong.
        what: &'static str,
    },
    /// The memory of the pool could not be allocated.
    #[error("could not allocate {bytes} bytes for the pool: {why}")]
    OutOfMemory {
        /// How much.
        bytes: usize,
        /// What the system said.
        why: std::sync::Arc<str>,
    },
}

impl From<ArenaError> for BufferError {
    fn from(error: ArenaError) -> Self {
        match error {
            ArenaError::Size { what } => Self::Config { what },
            ArenaError::OutOfMemory { bytes, why } => Self::OutOfMemory { bytes, why },
        }
    }
}

impl From<ChecksumMismatch> for BufferError {
    fn from(ChecksumMismatch { page, stored, computed }: ChecksumMismatch) -> Self {
        Self::Checksum { page, stored, computed }
    }
}

/// Says until when the pool can't shrink, by the state of its last frame.
fn until_when(is_lost: &bool) -> &'static str {
    match is_lost {
        true => "before a restart: a device may still write to its last frame",
        false => "while pages are in use",
    }
}

impl BufferError {
    /// Whether the store's contents are damaged: a file is missing, cut short or changed. Trying
    /// again does not help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        use StoreError::{BeyondEnd, Missing};
        match self {
            Self::Checksum { .. }
            | Self::Zeroed { .. }
            | Self::OtherVersion { .. }
            | Self::BeyondLog { .. }
            | Self::CutShort { .. }
            | Self::TooLong { .. } => true,
            Self::Store(error) => matches!(error, Missing { .. } | BeyondEnd { .. }),
            _ => false,
        }
    }

    /// Whether the operation may succeed when it is allowed to wait.
    #[must_use]
    pub fn is_would_block(&self) -> bool {
        matches!(self, BufferError::WouldBlock)
    }
}
