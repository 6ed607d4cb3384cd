//! LockRows: locks the rows of some slots.
//!
//! A row that has changed meanwhile is taken in its newest version, if the conditions still hold
//! with it. The rows of other tables stay as the snapshot has them: PostgreSQL's EvalPlanQual.

use std::mem;

use super::state::State;
use super::{Context, SlotRow};
use crate::analyze::tree::Slot;
use crate::error::{Result, SqlError};
use crate::exec::lock_row;
use crate::plan::RowLock;
use crate::plan::query::node::{LockRows, SlotKind};

pub(super) struct LockRowsState {
    input: State,
    /// What the input has put into slots that now hold a newer version of their row.
    older: Vec<(Slot, SlotRow)>,
    /// The same of slots that are NULL, because their row is no longer a match.
    unmatched: Vec<(Slot, SlotRow)>,
}

impl LockRowsState {
    pub(super) fn new(lock: &LockRows, cx: &Context<'_>) -> Result<Self> {
        let input = State::new(&lock.input, cx)?;
        Ok(Self { input, older: Vec::new(), unmatched: Vec::new() })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        self.older.clear();
        self.unmatched.clear();
    }

    /// Gives the next row of the input whose rows could be locked.
    pub(super) fn next(&mut self, lock: &LockRows, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            // A join below may still join the row that it has found with others.
            put_back(&mut self.older, cx)?;
            put_back(&mut self.unmatched, cx)?;
            if !self.input.next(&lock.input, cx)? {
                return Ok(false);
            }
            cx.work().tick()?;
            if self.lock_all(lock, cx)? {
                return Ok(true);
            }
        }
    }

    /// Locks the newest versions of all rows. Only then the conditions are asked: they may tie one
    /// newest version to another.
    fn lock_all(&mut self, lock: &LockRows, cx: &mut Context<'_>) -> Result<bool> {
        for (slot, row_lock) in &lock.locks {
            if !self.lock_slot(*slot, *row_lock, cx)? {
                return Ok(false);
            }
        }
        Ok(self.older.is_empty() || self.still_holds(lock, cx)?)
    }

    fn lock_slot(&mut self, slot: Slot, row_lock: RowLock, cx: &mut Context<'_>) -> Result<bool> {
        let Some(SlotKind::Stored(table)) = cx.plan.plan.slots.get(slot.index()) else {
            return Err(SqlError::internal("a row of no table is to be locked"));
        };
        let session = cx.work().session()?;
        let mut row = match cx.row_mut(slot)? {
            SlotRow::Stored(row) => mem::take(row),
            // An outer join has found none.
            SlotRow::Null => return Ok(true),
            SlotRow::Values(_) => return Err(SqlError::internal("a row of no table")),
        };
        let found = row.clone();
        let mut has_changed = false;
        let locked = lock_row(session, table, &mut row, row_lock, &mut |_| {
            has_changed = true;
            Ok(true)
        });
        cx.set(slot, SlotRow::Stored(row))?;
        if has_changed || !matches!(locked, Ok(true)) {
            self.older.push((slot, SlotRow::Stored(found)));
        }
        locked
    }

    /// Whether the rows in the slots still are what was asked for. A row of an outer join that no
    /// longer matches becomes NULL.
    fn still_holds(&mut self, lock: &LockRows, cx: &mut Context<'_>) -> Result<bool> {
        for (slots, on) in &lock.outer_joins {
            if !cx.holds(Some(on))? {
                for slot in slots {
                    self.unmatched.push((*slot, mem::take(cx.row_mut(*slot)?)));
                }
            }
        }
        cx.holds(lock.condition.as_ref())
    }
}

fn put_back(rows: &mut Vec<(Slot, SlotRow)>, cx: &mut Context<'_>) -> Result<()> {
    rows.drain(..).try_for_each(|(slot, row)| cx.set(slot, row))
}
