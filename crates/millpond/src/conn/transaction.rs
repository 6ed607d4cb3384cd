//! The transaction block of a session, as PostgreSQL keeps it.

use millpond_engine::session::{Commit, CommitTicket, TransactionOptions};
use millpond_engine::transam::Isolation;
use millpond_types::current_timestamp;

use super::session::{Block, SqlSession};
use millpond_query::convert::is_would_block;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::{IsolationLevel, TransactionModes};
use millpond_query::sink::{CommandTag, RowSink};

/// How ending a transaction went.
pub(super) enum Ended {
    Done,
    Pending(CommitTicket),
    WouldBlock,
}

pub(super) fn isolation(level: IsolationLevel) -> Result<Isolation> {
    match level {
        IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => {
            Ok(Isolation::ReadCommitted)
        }
        IsolationLevel::RepeatableRead => Ok(Isolation::RepeatableRead),
        IsolationLevel::Serializable => Err(SqlError::unsupported("isolation level SERIALIZABLE")
            .hint("REPEATABLE READ is the strictest level that there is.")),
    }
}

/// What is due when a transaction has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    /// Nothing has been tried yet, or it would have blocked: commit when resumed.
    pub(super) commit: bool,
    pub(super) tag: Option<CommandTag>,
    /// The portal has more rows: the transaction's end is not its own.
    pub(super) suspended: bool,
    /// COMMIT AND CHAIN.
    pub(super) chain: Option<TransactionOptions>,
}

impl Pending {
    /// The commit of an implicit transaction, and the tag that is due then.
    pub(super) fn commit(tag: Option<CommandTag>) -> Self {
        Pending { commit: true, tag, suspended: false, chain: None }
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

impl SqlSession {
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
        self.engine.begin(options)?;
        self.deferrable = modes.deferrable;
        self.transaction_began(block);
        Ok(())
    }

    /// Starts the transaction of COMMIT AND CHAIN.
    pub(super) fn chain(&mut self, options: TransactionOptions) -> Result<()> {
        self.hand_on_settings();
        self.engine.begin(options)?;
        self.activity.began = current_timestamp();
        self.transaction_began(Block::Explicit);
        Ok(())
    }

    /// The engine's transaction has begun, with the statement that needs it.
    fn transaction_began(&mut self, block: Block) {
        self.now = self.activity.began;
        self.engine.proc().show_transaction(self.now);
        self.block = block;
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

    /// COMMIT: what is due, which comes once the engine has committed.
    pub(super) fn commit_statement(
        &mut self,
        chain: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Pending> {
        let chain_options = chain.then_some(self.engine.options());
        let (commit, tag, chain) = match self.block {
            Block::Failed => {
                self.ended(false);
                (false, CommandTag::failed_commit(), chain_options)
            }
            Block::Explicit => (true, CommandTag::plain("COMMIT"), chain_options),
            Block::Idle | Block::Implicit => {
                no_transaction(chain, "COMMIT", sink)?;
                (self.block == Block::Implicit, CommandTag::plain("COMMIT"), None)
            }
        };
        Ok(Pending { commit, tag: Some(tag), suspended: false, chain })
    }

    /// ROLLBACK: what is due now that it is done.
    pub(super) fn rollback_statement(
        &mut self,
        chain: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Pending> {
        let chain_options = chain.then_some(self.engine.options());
        match self.block {
            Block::Failed => self.ended(false),
            Block::Explicit => self.rollback_now(),
            Block::Idle | Block::Implicit => {
                no_transaction(chain, "ROLLBACK", sink)?;
                if self.block == Block::Implicit {
                    self.rollback_now();
                }
            }
        }
        let tag = Some(CommandTag::plain("ROLLBACK"));
        Ok(Pending { commit: false, tag, suspended: false, chain: chain_options })
    }

    /// Changes the running transaction's modes.
    pub(super) fn set_modes(&mut self, modes: TransactionModes) -> Result<()> {
        let mut options = self.engine.options();
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
        self.engine.set_options(options);
        self.deferrable = modes.deferrable.or(self.deferrable);
        Ok(())
    }

    /// Commits the engine's transaction; the block is idle afterwards, or as it was when it would
    /// block.
    pub(super) fn commit_now(&mut self) -> Result<Ended> {
        let asynchronous = !self.settings.synchronous_commit();
        self.engine.set_commit_wait(asynchronous, self.settings.commit_delay());
        match self.engine.commit() {
            Ok(Commit::Done) => {
                self.ended(true);
                Ok(Ended::Done)
            }
            Ok(Commit::Pending(ticket)) => Ok(Ended::Pending(ticket)),
            Err(error) => {
                let error = SqlError::from(error);
                if is_would_block(&error) {
                    return Ok(Ended::WouldBlock);
                }
                // The engine has rolled back.
                self.engine.abort();
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
        if self.engine.in_transaction() {
            self.engine.abort();
        }
        self.ended(false);
    }

    /// What an error does to the transaction.
    pub(super) fn transaction_failed(&mut self) {
        match self.block {
            Block::Idle => {
                if self.engine.in_transaction() {
                    self.engine.abort();
                }
                self.settings.end_transaction(false);
            }
            Block::Implicit => self.rollback_now(),
            Block::Explicit => {
                self.engine.abort();
                self.settings.end_transaction(false);
                self.block = Block::Failed;
            }
            Block::Failed => {}
        }
    }

    /// Refuses changes in a READ ONLY transaction.
    pub(super) fn check_writable(&self, what: &str) -> Result<()> {
        if self.engine.options().read_only {
            return Err(SqlError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {what} in a read-only transaction"),
            ));
        }
        Ok(())
    }

    /// Refuses what can't be part of a larger transaction.
    pub(super) fn check_alone(&self, what: &str) -> Result<()> {
        // The statements of one text are one transaction, also in front of the first.
        self.check_first(what, self.in_script)
    }

    /// Fails unless the statement is the first of its transaction, and not in a block.
    pub(super) fn check_first(&self, what: &str, refused: bool) -> Result<()> {
        if refused
            || self.block == Block::Explicit
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
            _ => self.engine.options(),
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
            "transaction_deferrable" => {
                let asked = self.deferrable.filter(|_| self.block != Block::Idle);
                let is_on =
                    asked.unwrap_or_else(|| self.settings.bool("default_transaction_deferrable"));
                Some(if is_on { "on" } else { "off" }.to_owned())
            }
            _ => None,
        }
    }
}

pub(super) fn in_failed_transaction() -> SqlError {
    SqlError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

fn no_transaction(chain: bool, what: &str, sink: &mut dyn RowSink) -> Result<()> {
    if chain {
        return Err(SqlError::new(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            format!("{what} AND CHAIN can only be used in transaction blocks"),
        ));
    }
    sink.notice(&SqlError::warning(
        SqlState::NO_ACTIVE_SQL_TRANSACTION,
        "there is no transaction in progress",
    ));
    Ok(())
}
