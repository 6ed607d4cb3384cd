//! The control of transactions.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{DefArg, DefElem, Statement, TransactionStmt, TransactionStmtKind};

impl Parser<'_> {
    pub(super) fn transaction(&mut self) -> Parse<Statement> {
        let keyword = self.keyword();
        self.bump();
        let mut stmt =
            TransactionStmt { kind: TransactionStmtKind::Begin, options: Vec::new(), chain: false };
        stmt.kind = match keyword {
            Some(Keyword::Start) => {
                self.expect_keyword(Keyword::Transaction)?;
                stmt.options = self.opt_transaction_modes()?;
                TransactionStmtKind::Start
            }
            Some(Keyword::Begin) => {
                self.opt_transaction();
                stmt.options = self.opt_transaction_modes()?;
                TransactionStmtKind::Begin
            }
            Some(Keyword::Savepoint) => TransactionStmtKind::Savepoint(self.col_id()?),
            Some(Keyword::Release) => TransactionStmtKind::Release(self.savepoint()?),
            Some(Keyword::Prepare) => {
                self.expect_keyword(Keyword::Transaction)?;
                TransactionStmtKind::Prepare(self.string()?)
            }
            Some(Keyword::Commit | Keyword::End) => {
                if keyword == Some(Keyword::Commit) && self.take_keyword(Keyword::Prepared) {
                    TransactionStmtKind::CommitPrepared(self.string()?)
                } else {
                    self.opt_transaction();
                    stmt.chain = self.opt_chain()?;
                    TransactionStmtKind::Commit
                }
            }
            Some(Keyword::Rollback) if self.take_keyword(Keyword::Prepared) => {
                TransactionStmtKind::RollbackPrepared(self.string()?)
            }
            _ => {
                self.opt_transaction();
                if keyword == Some(Keyword::Rollback) && self.take_keyword(Keyword::To) {
                    TransactionStmtKind::RollbackTo(self.savepoint()?)
                } else {
                    stmt.chain = self.opt_chain()?;
                    TransactionStmtKind::Rollback
                }
            }
        };
        Ok(Statement::Transaction(Box::new(stmt)))
    }

    fn opt_transaction(&mut self) {
        self.take_one_of(&[Keyword::Work, Keyword::Transaction]);
    }

    /// A savepoint's name, with or without the word.
    fn savepoint(&mut self) -> Parse<crate::tree::Name> {
        if self.is_keyword(Keyword::Savepoint) && self.is_col_id_at(1) {
            self.bump();
        }
        self.col_id()
    }

    fn opt_chain(&mut self) -> Parse<bool> {
        if !self.take_keyword(Keyword::And) {
            return Ok(false);
        }
        let no = self.take_keyword(Keyword::No);
        self.expect_keyword(Keyword::Chain)?;
        Ok(!no)
    }

    fn opt_transaction_modes(&mut self) -> Parse<Vec<DefElem>> {
        if self.is_transaction_mode() { self.transaction_modes() } else { Ok(Vec::new()) }
    }

    fn is_transaction_mode(&self) -> bool {
        matches!(
            self.keyword(),
            Some(Keyword::Isolation | Keyword::Read | Keyword::Deferrable | Keyword::Not)
        )
    }

    /// Modes, with commas between them or without.
    pub(super) fn transaction_modes(&mut self) -> Parse<Vec<DefElem>> {
        let mut modes = vec![self.transaction_mode()?];
        while self.is_char(b',') || self.is_transaction_mode() {
            self.take_char(b',');
            modes.push(self.transaction_mode()?);
        }
        Ok(modes)
    }

    fn transaction_mode(&mut self) -> Parse<DefElem> {
        let location = self.location();
        let words = [Keyword::Isolation, Keyword::Read, Keyword::Deferrable, Keyword::Not];
        let (name, arg) = match self.take_one_of(&words) {
            Some(Keyword::Isolation) => {
                self.expect_keyword(Keyword::Level)?;
                ("transaction_isolation", DefArg::String(self.isolation_level()?.into()))
            }
            Some(Keyword::Read) => match self.take_one_of(&[Keyword::Only, Keyword::Write]) {
                Some(mode) => ("transaction_read_only", DefArg::Boolean(mode == Keyword::Only)),
                None => return Err(self.unexpected()),
            },
            Some(Keyword::Deferrable) => ("transaction_deferrable", DefArg::Boolean(true)),
            Some(_) => {
                self.expect_keyword(Keyword::Deferrable)?;
                ("transaction_deferrable", DefArg::Boolean(false))
            }
            None => return Err(self.unexpected()),
        };
        Ok(DefElem { defnamespace: None, defname: name.into(), arg: Some(arg), location })
    }

    pub(super) fn isolation_level(&mut self) -> Parse<&'static str> {
        match self.take_one_of(&[Keyword::Read, Keyword::Repeatable, Keyword::Serializable]) {
            Some(Keyword::Read) => {
                match self.take_one_of(&[Keyword::Uncommitted, Keyword::Committed]) {
                    Some(Keyword::Committed) => Ok("read committed"),
                    Some(_) => Ok("read uncommitted"),
                    None => Err(self.unexpected()),
                }
            }
            Some(Keyword::Repeatable) => {
                self.expect_keyword(Keyword::Read)?;
                Ok("repeatable read")
            }
            Some(_) => Ok("serializable"),
            None => Err(self.unexpected()),
        }
    }
}
