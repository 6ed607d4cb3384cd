//! LockRows: locks the rows of some slots.
//!
//! A row that has changed meanwhile is taken in its newest version, if the condition still holds
//! with it. The rows of other tables stay as the snapshot has them.

use std::mem;

use millpond_engine::table::RowBuf;

use super::state::State;
use super::{Context, SlotRow};
use crate::analyze::tree::Slot;
use crate::error::{Result, SqlError};
use crate::exec::lock_row;
use crate::expr::Expr;
use crate::plan::RowLock;
use crate::plan::query::node::{Node, SlotKind};

/// Gives the next row of the input whose rows could be locked.
pub(super) fn next(
    state: &mut State,
    input: &Node,
    locks: &[(Slot, RowLock)],
    condition: Option<&Expr>,
    cx: &mut Context<'_>,
) -> Result<bool> {
    'rows: while state.next(input, cx)? {
        cx.work().tick()?;
        for (slot, lock) in locks {
            if !lock_slot(*slot, *lock, condition, cx)? {
                continue 'rows;
            }
        }
        return Ok(true);
    }
    Ok(false)
}

fn lock_slot(
    slot: Slot,
    lock: RowLock,
    condition: Option<&Expr>,
    cx: &mut Context<'_>,
) -> Result<bool> {
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
    let mut is_wanted = |row: &mut RowBuf| {
        cx.set(slot, SlotRow::Stored(mem::take(row)))?;
        let holds = cx.holds(condition)?;
        *row = cx.take_stored(slot)?;
        Ok(holds)
    };
    let locked = lock_row(session, table, &mut row, lock, &mut is_wanted);
    cx.set(slot, SlotRow::Stored(row))?;
    locked
}
