//! What the B+tree needs from its surroundings.
//!
//! The engine's `Ctx` implements it. Tests have one with a log in memory, to replay any part of it.

use millpond_buffer::{
    BlockNumber, BufferSession, ExclusivePage, Lsn, PinnedPage, ReadStream, RelHandle, Ring, Wait,
};
use millpond_sync::mutant;

use crate::transam::Backend;
use crate::wal::{Record, apply};
use crate::{Ctx, EngineResult};

/// A moment: the number of the last commit and the next transaction id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The number of the last commit.
    pub csn: u64,
    /// The next transaction id to be assigned.
    pub xid: u64,
}

/// The pool, the log and the waiting mode that an operation runs with.
pub trait Env {
    /// The session that pins and reads pages.
    fn buffers(&self) -> &BufferSession;

    /// Whether the operation may wait.
    fn wait(&self) -> Wait;

    /// An error if the operation was told to stop.
    fn check_interrupts(&self) -> EngineResult<()> {
        Ok(())
    }

    /// A stream for visiting all pages.
    fn maintenance_stream(&self) -> ReadStream {
        ReadStream::default()
    }

    /// The stamp to store in a page that leaves the tree now, for [`Env::is_over`].
    fn stamp(&self) -> Stamp {
        Stamp::default()
    }

    /// Whether every operation that was under way when the stamp was made has ended. Then no
    /// session can still reach the page by an old link. An environment that can't tell answers
    /// `false`, and pages are not used again.
    fn is_over(&self, _stamp: Stamp) -> bool {
        false
    }

    /// Logs a record and applies it to its pages.
    fn log_and_apply(
        &self,
        pages: &mut [&mut ExclusivePage<'_>],
        record: Record<'_>,
    ) -> EngineResult<Lsn>;
}

/// Pins a block.
pub(crate) fn pin<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    block: u32,
) -> EngineResult<PinnedPage<'e>> {
    Ok(env.buffers().pin(rel, BlockNumber(block), env.wait())?)
}

/// Pins a block for a job with a ring.
pub(crate) fn pin_with<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    block: u32,
    ring: Option<&Ring>,
) -> EngineResult<PinnedPage<'e>> {
    Ok(env.buffers().pin_with(rel, BlockNumber(block), env.wait(), ring)?)
}

/// Pins and latches a block.
pub(crate) fn latch<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    block: u32,
) -> EngineResult<ExclusivePage<'e>> {
    Ok(pin(env, rel, block)?.into_exclusive()?)
}

impl Env for Ctx {
    fn maintenance_stream(&self) -> ReadStream {
        Ctx::maintenance_stream(self)
    }

    fn check_interrupts(&self) -> EngineResult<()> {
        Backend::check_interrupts(self)
    }

    #[inline]
    fn buffers(&self) -> &BufferSession {
        Backend::buffers(self)
    }

    #[inline]
    fn wait(&self) -> Wait {
        Backend::wait(self)
    }

    fn stamp(&self) -> Stamp {
        Stamp { csn: self.txns().last_csn().0, xid: self.txns().next_xid().0 }
    }

    /// Readers hold a snapshot, writers a transaction id: all must be later than the stamp. A stamp
    /// from the future was made before the last start, which no operation has survived.
    fn is_over(&self, stamp: Stamp) -> bool {
        let horizon = self.txns().horizon();
        stamp.csn > self.txns().last_csn().0
            || stamp.xid > self.txns().next_xid().0
            || ((horizon.csn.0 > stamp.csn || mutant!("btree-page-free-under-snapshots"))
                && horizon.oldest_running_xid.0 >= stamp.xid)
    }

    fn log_and_apply(
        &self,
        pages: &mut [&mut ExclusivePage<'_>],
        record: Record<'_>,
    ) -> EngineResult<Lsn> {
        apply::log_and_apply(self, pages, record)
    }
}
