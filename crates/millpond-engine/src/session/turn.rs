//! The queue in which sessions wait for a row, and the turn at a row that a session keeps.

use std::cell::Cell;

use millpond_sync::mutant;

use crate::access::Tid;
use crate::access::heap::row_turn::KeptTurn;
use crate::access::heap::{self, ChangeOutcome, HeapRelation};
use crate::catalog::TableDef;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::LockStrength;

/// A row version that the session wants to change or lock.
#[derive(Clone, Copy)]
pub(super) struct RowPlace<'t> {
    pub table: &'t TableDef,
    pub heap: &'t HeapRelation,
    /// The version.
    pub tid: Tid,
    /// The root of its version chain, if known.
    pub root: Option<Tid>,
}

/// A turn at a row that the session keeps from one attempt to the next.
#[derive(Clone, Copy)]
struct Kept {
    turn: KeptTurn,
    table: u32,
    /// The version that the session changes or locks next. Its root may differ from the one in
    /// whose queue the session waited.
    version: Tid,
}

/// The statement's turn at a row for which other sessions wait, too.
#[derive(Default)]
pub(super) struct Turn {
    kept: Cell<Option<Kept>>,
}

impl Turn {
    /// Tries to change or lock a row version until no transaction conflicts. It waits in the queue
    /// for the version's root, however the session found the row.
    ///
    /// If the version has been replaced, the session keeps its turn while it decides about the new
    /// one ([`Turn::moved`]). The turn ends when the session comes back for that version or
    /// another row, or gives the row up ([`Turn::end`]). The end of the statement ends it,
    /// too. If the session released its turn earlier, the next session in the queue would find the
    /// row changed, too, and wake the one after it. Each change of a row would wake all sessions
    /// that wait for it.
    pub(super) fn attempt(
        &self,
        ctx: &Ctx,
        place: RowPlace<'_>,
        wanted: LockStrength,
        attempt: impl Fn() -> EngineResult<ChangeOutcome>,
    ) -> EngineResult<ChangeOutcome> {
        let RowPlace { table: TableDef { oid, .. }, heap, tid, root } = place;
        if self.kept.get().is_some_and(|turn| (turn.table, turn.version) != (*oid, tid)) {
            self.end(ctx);
        }
        loop {
            match attempt()? {
                ChangeOutcome::InProgress { .. } if !ctx.may_wait() => {
                    return Err(EngineError::WouldBlock);
                }
                // Sessions in the queue may be waiting for the lock that this transaction already
                // holds, so it does not queue.
                ChangeOutcome::InProgress { xid, holds: true }
                    if !mutant!("lock-row-holder-queues") =>
                {
                    ctx.wait_for_xid(xid)?
                }
                // The new turn begins before the old one ends, so that no other session gets
                // between.
                ChangeOutcome::InProgress { xid, .. } => {
                    let queue = match root {
                        Some(root) => root,
                        None if mutant!("lock-row-queue-of-version") => tid,
                        None => heap::root_of(ctx, heap, tid)?,
                    };
                    let kept = ctx.wait_for_row(*oid, queue, wanted, xid)?.keep();
                    self.end(ctx);
                    self.kept.set(Some(Kept { turn: kept, table: *oid, version: tid }));
                }
                outcome @ ChangeOutcome::Updated { .. } if !mutant!("lock-row-turn-not-kept") => {
                    return Ok(outcome);
                }
                outcome => {
                    self.end(ctx);
                    return Ok(outcome);
                }
            }
        }
    }

    /// The row for which the session may hold a turn continues with the version at `new`. The
    /// session may have waited for another version of it: FOR KEY SHARE may have found a conflict
    /// beyond the version that it wanted.
    pub(super) fn moved(&self, new: Tid) {
        if let Some(kept) = self.kept.get() {
            self.kept.set(Some(Kept { version: new, ..kept }));
        }
    }

    /// Gives the turn up, if there is one.
    pub(super) fn end(&self, ctx: &Ctx) {
        if let Some(kept) = self.kept.take() {
            ctx.end_turn(kept.turn);
        }
    }

    /// Forgets the turn, whose lock has been released.
    pub(super) fn forget(&self) {
        self.kept.set(None);
    }
}
