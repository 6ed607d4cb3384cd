//! Locking rows, and waiting for one's turn at a row.

use super::Session;
use super::write::Changed;
use crate::access::Tid;
use crate::access::heap::{self, ChangeOutcome, Changer, HeapRelation};
use crate::catalog::TableDef;
use crate::error::{EngineError, EngineResult};
use crate::table::{RowBuf, RowOutcome};
use crate::transam::{LockStrength, Xid};

/// What is called when a row is locked.
const SELECT_FOR: [&str; 4] =
    ["SELECT FOR KEY SHARE", "SELECT FOR SHARE", "SELECT FOR NO KEY UPDATE", "SELECT FOR UPDATE"];

impl Session {
    /// Locks the version that `row` holds (`SELECT FOR ...`): in READ COMMITTED, and when it waited for another
    /// transaction, as [`Self::update`] does.
    ///
    /// FOR KEY SHARE goes together with changes that leave the unique keys alone: the row is locked as it was, and as it
    /// will be.
    pub fn lock_row(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        strength: LockStrength,
    ) -> EngineResult<RowOutcome> {
        let outcome = self.lock_as(table, row, strength, true)?;
        outcome.ok_or(EngineError::Internal { what: "a row conflict was not waited for" })
    }

    /// The same without waiting for other transactions (`NOWAIT`, `SKIP LOCKED`): `None` if one is in the way.
    pub fn try_lock_row(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        strength: LockStrength,
    ) -> EngineResult<Option<RowOutcome>> {
        self.lock_as(table, row, strength, false)
    }

    fn lock_as(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        strength: LockStrength,
        waits: bool,
    ) -> EngineResult<Option<RowOutcome>> {
        let command = self.write_command(SELECT_FOR[strength as usize])?;
        let heap = self.heap(table)?;
        let Some(tid) = row.tid else { return Ok(Some(RowOutcome::Gone)) };
        let by = Changer { xid: self.ctx.assign_xid()?, cid: command };
        let lock = || heap::lock_row(&self.ctx, heap, tid, strength, by);
        let outcome = match waits {
            true => self.in_turn(table, row.queue().unwrap_or(tid), strength, lock)?,
            false => lock()?,
        };
        let outcome = match outcome {
            ChangeOutcome::InProgress { .. } => return Ok(None),
            ChangeOutcome::Follow { next, by: maker } => {
                // From here on the lock is held, and outlives what becomes of the rest.
                self.note_write();
                match self.lock_successors(table, heap, (next, maker), by, waits)? {
                    ChangeOutcome::InProgress { .. } => return Ok(None),
                    // What is locked is the version that the statement sees.
                    ChangeOutcome::Done { .. } => ChangeOutcome::Done { tid, hot: false },
                    other => other,
                }
            }
            other => other,
        };
        Ok(Some(match self.judge(heap, row, outcome)? {
            Changed::Done { tid, .. } => RowOutcome::Done(tid),
            Changed::Other(outcome) => outcome,
        }))
    }

    /// Locks the successors of a version FOR KEY SHARE, from `next`, which the second made, to the newest.
    fn lock_successors(
        &self,
        table: &TableDef,
        heap: &HeapRelation,
        mut next: (Tid, Xid),
        by: Changer,
        waits: bool,
    ) -> EngineResult<ChangeOutcome> {
        loop {
            let lock = || heap::lock_successor(&self.ctx, heap, next.0, next.1, by);
            let outcome = match waits {
                true => self.in_turn(table, next.0, LockStrength::KeyShare, lock)?,
                false => lock()?,
            };
            match outcome {
                ChangeOutcome::Follow { next: tid, by: maker } => next = (tid, maker),
                outcome => return Ok(outcome),
            }
        }
    }

    /// Tries to change or lock a row version until nobody is in the way, waiting in turn with others who want to,
    /// in the queue for `queue`.
    ///
    /// If the version turns out to have been replaced, the session keeps its turn while it makes up its mind about the
    /// new one: it comes back, with the same `queue`, or to another row, or says that it leaves the row alone
    /// ([`Self::end_turn`]), or the statement ends. (Were the next in the
    /// queue woken meanwhile, he would find the row changed, too, and wake the one after him: each change of a
    /// row would wake all who wait for it.)
    pub(super) fn in_turn(
        &self,
        table: &TableDef,
        queue: Tid,
        wanted: LockStrength,
        attempt: impl Fn() -> EngineResult<ChangeOutcome>,
    ) -> EngineResult<ChangeOutcome> {
        if self.turn.get().is_some_and(|turn| !turn.is_for(table.oid, queue)) {
            self.end_turn();
        }
        loop {
            match attempt()? {
                ChangeOutcome::InProgress { .. } if !self.ctx.may_wait() => {
                    return Err(EngineError::WouldBlock);
                }
                // Those in the queue may be waiting for the lock that this transaction holds already.
                ChangeOutcome::InProgress { xid, holds: true } => self.ctx.wait_for_xid(xid)?,
                // The new turn begins before the old one ends: nobody slips in.
                ChangeOutcome::InProgress { xid, .. } => {
                    let turn = self.ctx.wait_for_row(table.oid, queue, wanted, xid)?;
                    self.end_turn();
                    self.turn.set(Some(turn.keep()));
                }
                outcome @ ChangeOutcome::Updated { .. } => return Ok(outcome),
                outcome => {
                    self.end_turn();
                    return Ok(outcome);
                }
            }
        }
    }

    /// Gives up the turn at a row, if there is one: for a statement that has found [`RowOutcome::Changed`] and no longer wants
    /// the row. Others are waiting for it, and the statement may have far to go. (Its end gives up the turn, too.)
    pub fn end_turn(&self) {
        if let Some(turn) = self.turn.take() {
            self.ctx.end_turn(turn);
        }
    }
}
