//! The transaction block of a connection, as PostgreSQL keeps it.

use std::sync::Arc;

use millpond_engine::session::{Commit, CommitTicket, TransactionOptions};
use millpond_engine::transam::Isolation;

use super::{Connection, TransactionStatus};
use crate::convert::is_would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{IsolationLevel, TransactionModes};
use crate::sink::{CommandTag, RowSink};

/// Where the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// No transaction.
    Idle,
    /// The transaction of one statement, or of one text, or of one batch.
    Implicit,
    /// After BEGIN.
    Explicit,
    /// After BEGIN and an error; the engine's transaction has been rolled back already.
    Failed,
}

/// How ending a transaction went.
pub(super) enum Ended {
    Done,
    Pending(CommitTicket),
    WouldBlock,
}

fn isolation(level: IsolationLevel) -> Result<Isolation> {
    match level {
        IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => {
            Ok(Isolation::ReadCommitted)
        }
        IsolationLevel::RepeatableRead => Ok(Isolation::RepeatableRead),
        IsolationLevel::Serializable => Err(SqlError::unsupported("isolation level SERIALIZABLE")
            .hint("REPEATABLE READ is the strictest level that there is.")),
    }
}

fn level_named(name: &str) -> IsolationLevel {
    match name {
        "serializable" => IsolationLevel::Serializable,
        "repeatable read" => IsolationLevel::RepeatableRead,
        "read uncommitted" => IsolationLevel::ReadUncommitted,
        _ => IsolationLevel::ReadCommitted,
    }
}

impl Connection {
    /// Idle, in a transaction, or in a failed one. A pipeline whose `sync` is yet to come is in a
    /// transaction, as in PostgreSQL.
    pub fn transaction_status(&self) -> TransactionStatus {
        match self.block {
            Block::Idle => TransactionStatus::Idle,
            Block::Implicit | Block::Explicit => TransactionStatus::InTransaction,
            Block::Failed => TransactionStatus::Failed,
        }
    }

    fn options(&self, modes: TransactionModes) -> Result<TransactionOptions> {
        let level = match modes.isolation {
            Some(level) => level,
            None if self.settings.default_isolation_is_plain() => IsolationLevel::ReadCommitted,
            None => level_named(self.settings.text("default_transaction_isolation")),
        };
        Ok(TransactionOptions {
            isolation: isolation(level)?,
            read_only: modes.read_only.unwrap_or(self.settings.default_read_only()),
            asynchronous: !self.settings.synchronous_commit(),
        })
    }

    /// Starts the engine's transaction.
    pub(super) fn start(&mut self, modes: TransactionModes, block: Block) -> Result<()> {
        let options = self.options(modes)?;
        self.hand_on_settings();
        self.session.begin(options)?;
        self.transaction_began(block);
        Ok(())
    }

    /// The engine's transaction has begun, with the statement that needs it.
    pub(super) fn transaction_began(&mut self, block: Block) {
        self.now = self.began;
        self.session.proc().show_transaction(self.now);
        self.block = block;
    }

    /// Tells the engine's session what it has to know of the settings, unless it does already: most
    /// transactions change none.
    pub(super) fn hand_on_settings(&mut self) {
        if self.settings.take_news() {
            self.session.locks().set_timeout(self.settings.lock_timeout());
            self.session.locks().set_deadlock_timeout(self.settings.deadlock_timeout());
            self.session.locks().set_log_waits(self.settings.bool("log_lock_waits"));
            self.session.set_bulk_access(self.settings.bulk_access());
            self.session.temp_space().set_limit_kb(self.settings.temp_file_limit_kb());
            let (work_mem, hash_multiplier) = self.settings.work_mem();
            self.resources.memory.set_work(work_mem, hash_multiplier);
        }
    }

    /// Makes sure that there is a transaction for a statement.
    pub(super) fn need_transaction(&mut self) -> Result<()> {
        match self.block {
            Block::Idle => self.start(TransactionModes::default(), Block::Implicit),
            Block::Implicit | Block::Explicit => Ok(()),
            Block::Failed => Err(in_failed_transaction()),
        }
    }

    pub(super) fn begin(
        &mut self,
        modes: TransactionModes,
        start: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        match self.block {
            Block::Idle => self.start(modes, Block::Explicit)?,
            Block::Implicit => {
                self.block = Block::Explicit;
                self.set_modes(modes)?;
            }
            Block::Explicit => {
                sink.notice(&SqlError::warning(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "there is already a transaction in progress",
                ));
            }
            Block::Failed => return Err(in_failed_transaction()),
        }
        Ok(CommandTag::plain(if start { "START TRANSACTION" } else { "BEGIN" }))
    }

    /// Changes the running transaction's modes.
    fn set_modes(&mut self, modes: TransactionModes) -> Result<()> {
        let mut options = self.session.options();
        if let Some(level) = modes.isolation {
            let asked = isolation(level)?;
            if asked != options.isolation && self.statements_run > 0 {
                return Err(SqlError::new(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "SET TRANSACTION ISOLATION LEVEL must be called before any query",
                ));
            }
            options.isolation = asked;
        }
        if let Some(read_only) = modes.read_only {
            if options.read_only && !read_only && self.statements_run > 0 {
                return Err(SqlError::new(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "transaction read-write mode must be set before any query",
                ));
            }
            options.read_only = read_only;
        }
        self.session.set_options(options);
        Ok(())
    }

    pub(super) fn set_transaction(
        &mut self,
        modes: TransactionModes,
        for_session: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        if for_session {
            if let Some(level) = modes.isolation {
                isolation(level)?;
                let word = match level {
                    IsolationLevel::ReadUncommitted => "read uncommitted",
                    IsolationLevel::ReadCommitted => "read committed",
                    IsolationLevel::RepeatableRead => "repeatable read",
                    IsolationLevel::Serializable => "serializable",
                };
                self.set_setting("default_transaction_isolation", Some(word), false)?;
            }
            if let Some(read_only) = modes.read_only {
                let word = if read_only { "on" } else { "off" };
                self.set_setting("default_transaction_read_only", Some(word), false)?;
            }
        } else if self.block == Block::Explicit {
            self.set_modes(modes)?;
        } else {
            sink.notice(&SqlError::warning(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            ));
        }
        Ok(CommandTag::plain("SET"))
    }

    /// Commits the engine's transaction; the block is idle afterwards, or as it was when it would
    /// block.
    pub(super) fn commit_now(&mut self) -> Result<Ended> {
        let asynchronous = !self.settings.synchronous_commit();
        self.session.set_commit_wait(asynchronous, self.settings.commit_delay());
        match self.session.commit() {
            Ok(Commit::Done) => {
                self.ended(true);
                Ok(Ended::Done)
            }
            Ok(Commit::Pending(ticket)) => {
                self.committing = Some(ticket);
                Ok(Ended::Pending(ticket))
            }
            Err(error) => {
                let error = SqlError::from(error);
                if is_would_block(&error) {
                    return Ok(Ended::WouldBlock);
                }
                // The engine has rolled back.
                self.session.abort();
                self.ended(false);
                Err(error)
            }
        }
    }

    /// The transaction has ended.
    pub(super) fn ended(&mut self, committed: bool) {
        self.block = Block::Idle;
        self.statements_run = 0;
        self.in_use.clear();
        self.settings.end_transaction(committed);
    }

    /// Rolls back; never fails.
    pub(super) fn rollback_now(&mut self) {
        if self.session.in_transaction() {
            self.session.abort();
        }
        self.ended(false);
    }

    /// What an error does to the transaction.
    pub(super) fn transaction_failed(&mut self) {
        match self.block {
            Block::Idle => {
                if self.session.in_transaction() {
                    self.session.abort();
                }
                self.settings.end_transaction(false);
            }
            Block::Implicit => self.rollback_now(),
            Block::Explicit => {
                self.session.abort();
                self.settings.end_transaction(false);
                self.block = Block::Failed;
            }
            Block::Failed => {}
        }
    }

    /// Refuses changes in a READ ONLY transaction.
    pub(super) fn check_writable(&self, what: &str) -> Result<()> {
        if self.session.options().read_only {
            return Err(SqlError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {what} in a read-only transaction"),
            ));
        }
        Ok(())
    }

    /// Refuses what can't be part of a larger transaction.
    pub(super) fn check_alone(&self, what: &str) -> Result<()> {
        if self.block == Block::Explicit
            || (self.block == Block::Implicit && self.statements_run > 0)
        {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                format!("{what} cannot run inside a transaction block"),
            ));
        }
        Ok(())
    }

    /// What SHOW says about the transaction itself.
    pub(super) fn show_transaction(&self, name: &str) -> Option<String> {
        let options = match self.block {
            Block::Idle | Block::Failed => self.options(TransactionModes::default()).ok()?,
            _ => self.session.options(),
        };
        match name {
            "transaction_isolation" => Some(
                match options.isolation {
                    Isolation::ReadCommitted => "read committed",
                    Isolation::RepeatableRead => "repeatable read",
                }
                .to_owned(),
            ),
            "transaction_read_only" => {
                Some(if options.read_only { "on" } else { "off" }.to_owned())
            }
            _ => None,
        }
    }

    /// The catalog that statements see.
    pub(super) fn catalog(&self) -> Arc<millpond_engine::catalog::CatalogState> {
        self.session.catalog()
    }
}

pub(super) fn in_failed_transaction() -> SqlError {
    SqlError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}
