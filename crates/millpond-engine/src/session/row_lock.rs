//! Locking rows, and waiting for one's turn at a row.

use millpond_sync::mutant;

use super::Session;
use super::write::Changed;
use crate::access::Tid;
use crate::access::heap::{self, ChangeOutcome, Changer, HeapRelation, Intent, WantedLock};
use crate::catalog::TableDef;
use crate::ctx::KeptTurn;
use crate::error::{EngineError, EngineResult};
use crate::table::{RowBuf, RowOutcome};
use crate::transam::LockStrength;

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

/// How rows are locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// In turn: whoever is in the way is waited for.
    InTurn,
    /// If nobody is in the way.
    AtOnce,
    /// Not at all, only whether nobody is.
    Look,
}

impl Manner {
    fn intent(self) -> Intent {
        match self {
            Manner::InTurn | Manner::AtOnce => Intent::Hold,
            Manner::Look => Intent::Look,
        }
    }
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
        let outcome = self.lock_as(table, row, strength, Manner::InTurn)?;
        outcome.ok_or(EngineError::Internal { what: "a row conflict was not waited for" })
    }

    /// The same without waiting for other transactions (`NOWAIT`, `SKIP LOCKED`): `None` if one is in the way. Then
    /// nothing is locked, unless that one came while successors of the version were being locked.
    pub fn try_lock_row(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        strength: LockStrength,
    ) -> EngineResult<Option<RowOutcome>> {
        self.lock_as(table, row, strength, Manner::AtOnce)
    }

    fn lock_as(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        strength: LockStrength,
        manner: Manner,
    ) -> EngineResult<Option<RowOutcome>> {
        let command = self.write_command(SELECT_FOR[strength as usize])?;
        let heap = self.heap(table)?;
        let Some(tid) = row.tid else { return Ok(Some(RowOutcome::Gone)) };
        let by = Changer { xid: self.ctx.assign_xid()?, cid: command };
        let place = RowPlace { table, heap, tid, root: row.root };
        if manner == Manner::AtOnce {
            // Nothing that is in the way is waited for, so there is no turn to keep.
            self.end_turn();
            // Of a row with successors, some could be locked and others not.
            if strength == LockStrength::KeyShare && !mutant!("lock-row-without-look") {
                let outcome = self.lock_versions(place, strength, Manner::Look, by)?;
                if matches!(outcome, ChangeOutcome::InProgress { .. }) {
                    return Ok(None);
                }
            }
        }
        let outcome = self.lock_versions(place, strength, manner, by)?;
        if matches!(outcome, ChangeOutcome::InProgress { .. }) {
            return Ok(None);
        }
        Ok(Some(match self.judge(heap, row, outcome)? {
            Changed::Done { tid, .. } => RowOutcome::Done(tid),
            Changed::Other(outcome) => outcome,
        }))
    }

    /// Locks a version, and, FOR KEY SHARE, its successors to the newest; or looks whether they could be locked.
    fn lock_versions(
        &self,
        place: RowPlace<'_>,
        strength: LockStrength,
        manner: Manner,
        by: Changer,
    ) -> EngineResult<ChangeOutcome> {
        let RowPlace { heap, tid, .. } = place;
        let (in_turn, intent) = (manner == Manner::InTurn, manner.intent());
        let lock = || heap::lock_row(&self.ctx, heap, tid, WantedLock { strength, intent }, by);
        let outcome = if in_turn { self.in_turn(place, strength, lock)? } else { lock()? };
        let ChangeOutcome::Follow { next, by: maker } = outcome else { return Ok(outcome) };
        if intent == Intent::Hold {
            // From here on the lock is held, and outlives what becomes of the rest.
            self.note_write();
        }
        let mut next = (next, maker);
        loop {
            let lock = || heap::lock_successor(&self.ctx, heap, next, intent, by);
            let place = RowPlace { tid: next.0, root: None, ..place };
            let outcome =
                if in_turn { self.in_turn(place, LockStrength::KeyShare, lock)? } else { lock()? };
            match outcome {
                ChangeOutcome::Follow { next: tid, by: maker } => next = (tid, maker),
                // What is locked is the version that the statement sees.
                ChangeOutcome::Done { .. } => return Ok(ChangeOutcome::Done { tid, hot: false }),
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
                ChangeOutcome::InProgress { xid, holds: true }
                    if !mutant!("lock-row-holder-queues") =>
                {
                    self.ctx.wait_for_xid(xid)?
                }
                // The new turn begins before the old one ends: nobody slips in.
                ChangeOutcome::InProgress { xid, .. } => {
                    let queue = match root {
                        Some(root) => root,
                        None if mutant!("lock-row-queue-of-version") => tid,
                        None => heap::root_of(&self.ctx, heap, tid)?,
                    };
                    let kept = self.ctx.wait_for_row(*oid, queue, wanted, xid)?.keep();
                    self.end_turn();
                    self.turn.set(Some(Turn { kept, table: *oid, version: tid }));
                }
                outcome @ ChangeOutcome::Updated { .. } if !mutant!("lock-row-turn-not-kept") => {
                    return Ok(outcome);
                }
                outcome => {
                    self.end_turn();
                    return Ok(outcome);
                }
            }
        }
    }

    /// The row for which the session may have a turn goes on with the version at `new`, whichever of its versions the
    /// session has waited for: FOR KEY SHARE may have found one beyond that which it wanted.
    pub(super) fn turn_moved(&self, new: Tid) {
        if let Some(turn) = self.turn.get() {
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
