//! A session's turn at a row that several sessions want to change.

use millpond_sync::mutant;

use crate::access::Tid;
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::ids::Xid;
use crate::lock::{LockMode, LockOwner, LockTag};
use crate::transam::LockStrength;

impl Ctx {
    /// Waits until transaction `xid` no longer prevents changing or locking a row, in the queue for
    /// that row (lmgr rule 8). The caller holds the result until it has looked at the row again and
    /// changed it. So no later session with a conflicting request gets ahead of it. The caller must
    /// hold no latch.
    pub fn wait_for_row(
        &self,
        relation: u32,
        tid: Tid,
        wanted: LockStrength,
        xid: Xid,
    ) -> EngineResult<RowTurn<'_>> {
        let tag = LockTag::Tuple { relation, block: tid.block.0, offset: tid.offset };
        // Lock modes that conflict exactly as the strengths do.
        let mode = match wanted {
            LockStrength::KeyShare => LockMode::AccessShare,
            LockStrength::Share => LockMode::RowShare,
            LockStrength::NoKeyUpdate => LockMode::Exclusive,
            LockStrength::Update => LockMode::AccessExclusive,
        };
        if !mutant!("lock-row-without-turn") {
            self.lock(tag, mode)?;
        }
        let turn = RowTurn { ctx: self, tag, mode };
        self.wait_for_xid(xid)?;
        Ok(turn)
    }

    /// Releases a turn that was kept.
    pub(crate) fn end_turn(&self, turn: KeptTurn) {
        self.locks().release(self.proc(), LockOwner::Transaction, turn.tag, turn.mode);
    }
}

/// A turn that outlives its [`RowTurn`]. At the latest, the end of the transaction releases it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptTurn {
    tag: LockTag,
    mode: LockMode,
}

impl RowTurn<'_> {
    /// Keeps the turn until [`Ctx::end_turn`].
    pub(crate) fn keep(self) -> KeptTurn {
        let kept = KeptTurn { tag: self.tag, mode: self.mode };
        std::mem::forget(self);
        kept
    }
}

/// A session's turn at a row that several sessions want to change; released when dropped.
pub struct RowTurn<'a> {
    ctx: &'a Ctx,
    tag: LockTag,
    mode: LockMode,
}

impl Drop for RowTurn<'_> {
    fn drop(&mut self) {
        let (locks, proc) = (self.ctx.locks(), self.ctx.proc());
        locks.release(proc, LockOwner::Transaction, self.tag, self.mode);
    }
}
