//! What all changes of a row have in common: the changer, the outcome, the latch, room in the log.

use millpond_buffer::{BlockNumber, ExclusivePage, PAGE_SIZE, Wait};

use super::relation::HeapRelation;
use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::{CommandId, Xid};
use crate::wal::apply::log_and_apply;
use crate::wal::{ImageMode, Record, RmgrId};

/// The result of a request to change a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeOutcome {
    /// Done. The row is now at `tid`. `hot`: no index needs a new entry.
    Done {
        /// Where the new version is (for a deletion or lock: the version itself).
        tid: Tid,
        /// The new version is reached through the chain of the old one.
        hot: bool,
    },
    /// The same command has changed it already.
    SelfModified,
    /// The version is not there for this command: made or deleted by what it can't see, or gone.
    Invisible,
    /// Another running transaction has changed it, or holds a conflicting lock on it. Wait for that
    /// transaction and ask again.
    InProgress {
        /// The transaction.
        xid: Xid,
        /// The asking transaction itself holds a lock on the version. Others may be waiting for
        /// that lock, so it must not queue behind them.
        holds: bool,
    },
    /// This version is locked. Its successor has the same unique keys and must be locked, too.
    Follow {
        /// The successor.
        next: Tid,
        /// Its maker, which may still be running.
        by: Xid,
    },
    /// A committed transaction has replaced it.
    Updated {
        /// The version that replaced it.
        next: Tid,
        /// The transaction that made that version. Check it when following.
        by: Xid,
    },
    /// A committed transaction has deleted it.
    Deleted,
}

/// The transaction and command that make a change.
#[derive(Clone, Copy, Debug)]
pub struct Changer {
    /// The transaction.
    pub xid: Xid,
    /// Its command.
    pub cid: CommandId,
}

/// Latches a page of the heap exclusively.
pub(super) fn latch<'s>(
    ctx: &'s Ctx,
    heap: &HeapRelation,
    block: BlockNumber,
) -> EngineResult<ExclusivePage<'s>> {
    Ok(ctx.buffers().pin(&heap.main, block, ctx.wait())?.into_exclusive()?)
}

/// Fails with `WouldBlock` if the session may not wait and inserting into the log might make it
/// wait. Call it before the first change. `pages`: the most page images that the record may carry.
pub fn log_has_room(ctx: &Ctx, pages: usize, bytes: usize) -> EngineResult<()> {
    let image = PAGE_SIZE + 64;
    if ctx.wait() == Wait::Never && !ctx.log().has_room(pages * image + bytes + 128) {
        return Err(EngineError::WouldBlock);
    }
    Ok(())
}

/// Logs a change of one page and applies it. `data` is scratch memory of the heap, which gets it
/// back.
pub(super) fn log_page_change(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    xid: Xid,
    info: u8,
    data: Vec<u8>,
) -> EngineResult<()> {
    let record = Record::new(xid, RmgrId::Heap, info, &[]).block(
        latched.page_id(),
        ImageMode::IfNeeded,
        &data,
    );
    log_and_apply(ctx, &mut [latched], record)?;
    ctx.heap().give_back(data);
    Ok(())
}
