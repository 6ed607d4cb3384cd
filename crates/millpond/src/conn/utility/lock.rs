//! LOCK TABLE, and the lock that COPY takes first.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_syntax::tree;

use crate::Wait;
use crate::conn::session::{Block, SqlSession};
use millpond_query::convert::is_would_block;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::Name;
use millpond_query::plan::find_table;
use millpond_query::sink::CommandTag;

pub(super) fn lock_tables(
    session: &mut SqlSession,
    names: &[Name],
    mode: tree::LockMode,
    nowait: bool,
) -> Result<CommandTag> {
    // The statements of one text are a transaction, too.
    let in_block = session.block == Block::Explicit || session.in_script;
    if !in_block {
        return Err(SqlError::new(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "LOCK TABLE can only be used in transaction blocks",
        ));
    }
    let mode = match mode {
        tree::LockMode::AccessShare => LockMode::AccessShare,
        tree::LockMode::RowShare => LockMode::RowShare,
        tree::LockMode::RowExclusive => LockMode::RowExclusive,
        tree::LockMode::ShareUpdateExclusive => LockMode::ShareUpdateExclusive,
        tree::LockMode::Share => LockMode::Share,
        tree::LockMode::ShareRowExclusive => LockMode::ShareRowExclusive,
        tree::LockMode::Exclusive => LockMode::Exclusive,
        tree::LockMode::AccessExclusive => LockMode::AccessExclusive,
    };
    session.need_transaction()?;
    for name in names {
        lock_named(session, name, mode, nowait)?;
    }
    Ok(CommandTag::plain("LOCK TABLE"))
}

/// Locks the table of that name, and returns its definition as of then.
pub(super) fn lock_named(
    session: &SqlSession,
    name: &Name,
    mode: LockMode,
    nowait: bool,
) -> Result<Arc<TableDef>> {
    let mut tries = 0;
    loop {
        let table = find_table(&session.catalog(), name)?;
        if nowait {
            // Where it may not wait, the engine says at once that it would have to.
            session.engine.set_wait(Wait::Never);
        }
        let locked = session.engine.lock_table(&table, mode).map_err(SqlError::from);
        session.engine.set_wait(session.wait);
        match locked {
            Ok(()) => return Ok(table),
            // While it waited, the definition changed. Now no session can change it any more.
            Err(error) if session.plans_again(&error, &mut tries)? => {}
            Err(error) if nowait && is_would_block(&error) => {
                return Err(SqlError::new(
                    SqlState::LOCK_NOT_AVAILABLE,
                    format!("could not obtain lock on relation \"{}\"", table.name),
                ));
            }
            Err(error) => return Err(error),
        }
    }
}
