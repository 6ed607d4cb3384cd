//! Locking rows, and waiting for one's turn at a row.

use super::Session;
use super::write::Changed;
use crate::access::Tid;
use crate::access::heap::{self, ChangeOutcome, Changer, HeapRelation};
use crate::catalog::TableDef;
use crate::ctx::KeptTurn;
use crate::error::{EngineError, EngineResult};
use crate::table::{RowBuf, RowOutcome};
use crate::transam::{LockStrength, Xid};

/// What is called when a row is locked.
const SELECT_FOR: [&str; 4] =
    ["SELECT FOR KEY SHARE", "SELECT FOR SHARE", "SELECT FOR NO KEY UPDATE", "SELECT FOR UPDATE"];

/// A row version that is to be changed or locked.
#[derive(Clone, Copy)]
pub(super) struct RowPlace<'t> {
    pub table: &'t TableDef,
    pub heap: &'t HeapRelation,
    /// The version.
    pub tid: Tid,
    /// Its chain's root, if that is known.
    pub root: Option<Tid>,
}

/// A turn at a row that is kept from one attempt to the next.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    kept: KeptTurn,
    table: u32,
    /// The version that is to be changed or locked next. It may have another root than the one that the turn was
    /// waited for.
    version: Tid,
}

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
            true => self.in_turn(RowPlace { table, heap, tid, root: row.root }, strength, lock)?,
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
            let place = RowPlace { table, heap, tid: next.0, root: None };
            let outcome = match waits {
                true => self.in_turn(place, LockStrength::KeyShare, lock)?,
                false => lock()?,
            };
            match outcome {
                ChangeOutcome::Follow { next: tid, by: maker } => next = (tid, maker),
                outcome => return Ok(outcome),
            }
        }
    }

    /// Tries to change or lock a row version until nobody is in the way, waiting in turn with others who want to: in the
    /// queue for its root, whichever way the session came to the row.
    ///
    /// If the version turns out to have been replaced, the session keeps its turn while it makes up its mind about the
    /// new one ([`Self::turn_moved`]): it comes back for that, or to another row, or says that it leaves the row alone
    /// ([`Self::end_turn`]), or the statement ends. (Were the next in the
    /// queue woken meanwhile, he would find the row changed, too, and wake the one after him: each change of a
    /// row would wake all who wait for it.)
    pub(super) fn in_turn(
        &self,
        place: RowPlace<'_>,
        wanted: LockStrength,
        attempt: impl Fn() -> EngineResult<ChangeOutcome>,
    ) -> EngineResult<ChangeOutcome> {
        let RowPlace { table: TableDef { oid, .. }, heap, tid, root } = place;
        if self.turn.get().is_some_and(|turn| (turn.table, turn.version) != (*oid, tid)) {
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
                    let queue = match root {
                        Some(root) => root,
                        None => heap::root_of(&self.ctx, heap, tid)?,
                    };
                    let kept = self.ctx.wait_for_row(*oid, queue, wanted, xid)?.keep();
                    self.end_turn();
                    self.turn.set(Some(Turn { kept, table: *oid, version: tid }));
                }
                outcome @ ChangeOutcome::Updated { .. } => return Ok(outcome),
                outcome => {
                    self.end_turn();
                    return Ok(outcome);
                }
            }
        }
    }

    /// The version at `old`, for which the session may have a turn, has been replaced by the one at `new`.
    pub(super) fn turn_moved(&self, old: Tid, new: Tid) {
        if let Some(turn) = self.turn.get().filter(|turn| turn.version == old) {
            self.turn.set(Some(Turn { version: new, ..turn }));
        }
    }

    /// Gives up the turn at a row, if there is one: for a statement that has found [`RowOutcome::Changed`] and no longer wants
    /// the row. Others are waiting for it, and the statement may have far to go. (Its end gives up the turn, too.)
    pub fn end_turn(&self) {
        if let Some(turn) = self.turn.take() {
            self.ctx.end_turn(turn.kept);
        }
    }
}
