//! What the B+tree needs from its surroundings.
//!
//! The engine's `Ctx` is one; tests have one that keeps the log in memory, to replay any part of it.

use millpond_buffer::{
    BlockNumber, BufferSession, ExclusivePage, Lsn, PinnedPage, RelHandle, Wait,
};

use crate::wal::{Record, apply};
use crate::{Ctx, EngineResult};

/// The pool, the log and the lane that an operation runs with.
pub trait Env {
    /// The session that pins and reads pages.
    fn buffers(&self) -> &BufferSession;

    /// Whether the operation may wait.
    fn wait(&self) -> Wait;

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

/// Pins and latches a block.
pub(crate) fn latch<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    block: u32,
) -> EngineResult<ExclusivePage<'e>> {
    Ok(pin(env, rel, block)?.into_exclusive())
}

impl Env for Ctx {
    #[inline]
    fn buffers(&self) -> &BufferSession {
        Ctx::buffers(self)
    }

    #[inline]
    fn wait(&self) -> Wait {
        Ctx::wait(self)
    }

    fn log_and_apply(
        &self,
        pages: &mut [&mut ExclusivePage<'_>],
        record: Record<'_>,
    ) -> EngineResult<Lsn> {
        apply::log_and_apply(self, pages, record)
    }
}
