//! BEGIN, COMMIT, ROLLBACK and their kin.

use sqlparser::tokenizer::Token;

use super::unsupported;
use crate::error::Result;
use crate::parse::cursor::Cursor;
use crate::parse::{IsolationLevel, Statement, TransactionModes};

fn work_or_transaction(cursor: &mut Cursor<'_, '_>) {
    if !cursor.accept("work") {
        cursor.accept("transaction");
    }
}

pub(super) fn begin(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    let start = cursor.accept("start");
    if start {
        cursor.expect("transaction")?;
    } else {
        cursor.advance();
        work_or_transaction(cursor);
    }
    Ok(Statement::Begin { modes: modes(cursor)?, start })
}

/// `ISOLATION LEVEL ...`, `READ ONLY`, `READ WRITE`, `[NOT] DEFERRABLE`, with or without commas.
pub(super) fn modes(cursor: &mut Cursor<'_, '_>) -> Result<TransactionModes> {
    let mut modes = TransactionModes::default();
    while !cursor.at_end() {
        if cursor.accept("isolation") {
            cursor.expect("level")?;
            modes.isolation = Some(level(cursor)?);
        } else if cursor.accept("read") {
            modes.read_only = Some(if cursor.accept("only") {
                true
            } else {
                cursor.expect("write")?;
                false
            });
        } else if cursor.accept("not") {
            cursor.expect("deferrable")?;
        } else if !cursor.accept("deferrable") {
            return Err(cursor.unexpected());
        }
        if cursor.accept_token(&Token::Comma) && cursor.at_end() {
            return Err(cursor.unexpected());
        }
    }
    Ok(modes)
}

fn level(cursor: &mut Cursor<'_, '_>) -> Result<IsolationLevel> {
    if cursor.accept("serializable") {
        return Ok(IsolationLevel::Serializable);
    }
    if cursor.accept("repeatable") {
        cursor.expect("read")?;
        return Ok(IsolationLevel::RepeatableRead);
    }
    cursor.expect("read")?;
    if cursor.accept("committed") {
        return Ok(IsolationLevel::ReadCommitted);
    }
    cursor.expect("uncommitted")?;
    Ok(IsolationLevel::ReadUncommitted)
}

pub(super) fn end(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    let commit = cursor.is_word("commit") || cursor.is_word("end");
    cursor.advance();
    if cursor.is_word("prepared") {
        return Ok(unsupported(cursor, "a prepared transaction (two-phase commit)"));
    }
    work_or_transaction(cursor);
    if !commit && cursor.is_word("to") {
        return Ok(unsupported(cursor, "ROLLBACK TO SAVEPOINT"));
    }
    let mut chain = false;
    if cursor.accept("and") {
        chain = !cursor.accept("no");
        cursor.expect("chain")?;
    }
    Ok(if commit { Statement::Commit { chain } } else { Statement::Rollback { chain } })
}
