//! BEGIN, COMMIT, ROLLBACK and the like.

use millpond_syntax::tree::{DefArg, DefElem, TransactionStmt, TransactionStmtKind};

use super::unsupported;
use crate::parse::{IsolationLevel, Statement, TransactionModes};

pub(super) fn transaction(stmt: &TransactionStmt) -> Statement {
    use TransactionStmtKind as K;
    match stmt.kind {
        K::Begin => Statement::Begin { modes: modes(&stmt.options), start: false },
        K::Start => Statement::Begin { modes: modes(&stmt.options), start: true },
        K::Commit => Statement::Commit { chain: stmt.chain },
        K::Rollback => Statement::Rollback { chain: stmt.chain },
        K::Savepoint(_) => unsupported("SAVEPOINT"),
        K::Release(_) => unsupported("RELEASE SAVEPOINT"),
        K::RollbackTo(_) => unsupported("ROLLBACK TO SAVEPOINT"),
        K::Prepare(_) => unsupported("PREPARE TRANSACTION"),
        K::CommitPrepared(_) | K::RollbackPrepared(_) => {
            unsupported("a prepared transaction (two-phase commit)")
        }
    }
}

/// The modes of a transaction. Of several of a kind the last one counts.
pub(super) fn modes(options: &[DefElem]) -> TransactionModes {
    let mut modes = TransactionModes::default();
    for option in options {
        match &option.arg {
            Some(DefArg::String(level)) => modes.isolation = Some(level_of(level)),
            Some(DefArg::Boolean(on)) if &*option.defname == "transaction_read_only" => {
                modes.read_only = Some(*on);
            }
            Some(DefArg::Boolean(on)) => modes.deferrable = Some(*on),
            _ => {}
        }
    }
    modes
}

fn level_of(name: &str) -> IsolationLevel {
    match name {
        "read uncommitted" => IsolationLevel::ReadUncommitted,
        "read committed" => IsolationLevel::ReadCommitted,
        "repeatable read" => IsolationLevel::RepeatableRead,
        _ => IsolationLevel::Serializable,
    }
}
