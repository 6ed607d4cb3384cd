//! Row locks (`SELECT FOR ...`).

use millpond_sync::mutant;

use super::Session;
use super::outcome::Changed;
use super::turn::RowPlace;
use crate::access::heap::{self, ChangeOutcome, Changer, Intent, WantedLock};
use crate::catalog::TableDef;
use crate::error::{EngineError, EngineResult};
use crate::table::{RowBuf, RowOutcome};
use crate::transam::LockStrength;

/// The statement's name, by lock strength.
const SELECT_FOR: [&str; 4] =
    ["SELECT FOR KEY SHARE", "SELECT FOR SHARE", "SELECT FOR NO KEY UPDATE", "SELECT FOR UPDATE"];

/// How a row is locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Waits for conflicting transactions, in the queue.
    InTurn,
    /// Locks only if no transaction conflicts.
    AtOnce,
    /// Does not lock; only checks that no transaction conflicts.
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

impl Session {
    /// Locks the version that `row` holds (`SELECT FOR ...`). If another transaction has changed
    /// the row, it does what [`Self::update`] does.
    ///
    /// FOR KEY SHARE is compatible with changes that leave the unique keys alone. It locks the
    /// version that the statement sees, and its successors.
    pub fn lock_row(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        strength: LockStrength,
    ) -> EngineResult<RowOutcome> {
        let outcome = self.lock_as(table, row, strength, Manner::InTurn)?;
        outcome.ok_or(EngineError::Internal { what: "a row conflict was not waited for" })
    }

    /// Locks without waiting for other transactions (`NOWAIT`, `SKIP LOCKED`). Returns `None` if
    /// one conflicts. Then nothing is locked, unless that transaction came while successors of the
    /// version were being locked.
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
            // This manner waits for no transaction, so there is no turn to keep.
            self.end_turn();
            // Without this check, some versions of a row with successors could be locked and others
            // not.
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

    /// Locks a version and, for FOR KEY SHARE, its successors up to the newest. Or only checks
    /// whether they could be locked.
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
        let outcome =
            if in_turn { self.turn.attempt(&self.ctx, place, strength, lock)? } else { lock()? };
        let ChangeOutcome::Follow { next, by: maker } = outcome else { return Ok(outcome) };
        if intent == Intent::Hold {
            // From here on the lock is held, whatever happens to the successors.
            self.transaction.note_write();
        }
        let mut next = (next, maker);
        loop {
            let lock = || heap::lock_successor(&self.ctx, heap, next, intent, by);
            let place = RowPlace { tid: next.0, root: None, ..place };
            let outcome = if in_turn {
                self.turn.attempt(&self.ctx, place, LockStrength::KeyShare, lock)?
            } else {
                lock()?
            };
            match outcome {
                ChangeOutcome::Follow { next: tid, by: maker } => next = (tid, maker),
                // The result is the version that the statement sees.
                ChangeOutcome::Done { .. } => return Ok(ChangeOutcome::Done { tid, hot: false }),
                outcome => return Ok(outcome),
            }
        }
    }
}
