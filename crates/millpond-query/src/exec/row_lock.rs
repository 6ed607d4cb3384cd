//! Locking a row that a query has found.

use millpond_engine::catalog::TableDef;
use millpond_engine::session::Session;
use millpond_engine::table::{RowBuf, RowOutcome};

use crate::error::{Result, SqlError, SqlState};
use crate::plan::{OnConflict, RowLock};

/// Locks a row; false when it is gone, no longer what was asked for, or to be skipped.
/// `is_wanted` says whether a row that has changed meanwhile still is what was asked for.
pub(crate) fn lock_row(
    session: &Session,
    table: &TableDef,
    row: &mut RowBuf,
    lock: RowLock,
    is_wanted: &mut dyn FnMut(&mut RowBuf) -> Result<bool>,
) -> Result<bool> {
    loop {
        let locked = match lock.conflict {
            OnConflict::Wait => Some(session.lock_row(table, row, lock.strength)?),
            _ => session.try_lock_row(table, row, lock.strength)?,
        };
        match (locked, lock.conflict) {
            (Some(RowOutcome::Done(_)), _) => return Ok(true),
            (Some(RowOutcome::Gone), _) | (None, OnConflict::Skip) => return Ok(false),
            (Some(RowOutcome::Changed), _) => {
                if !is_wanted(row)? {
                    session.end_turn();
                    return Ok(false);
                }
            }
            (None, _) => {
                return Err(SqlError::new(
                    SqlState::LOCK_NOT_AVAILABLE,
                    format!("could not obtain lock on row in relation \"{}\"", table.name),
                ));
            }
        }
    }
}
