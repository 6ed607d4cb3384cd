//! The life of a transaction: snapshots, command ids, commit and rollback.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::task::Waker;

use millpond_buffer::{Lsn, RelationId};

use super::Session;
use crate::catalog::TableDef;
use crate::error::{EngineError, EngineResult};
use crate::proc::WaitEvent;
use crate::table::TableError;
use crate::transam::{CommandId, CommitDelay, Csn, Durability, Isolation, LoggedCommit, Snapshot};

/// How a transaction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Its isolation level.
    pub isolation: Isolation,
    /// Whether changes are refused.
    pub read_only: bool,
    /// `synchronous_commit = off`: commit returns before the log is durable.
    pub asynchronous: bool,
}

/// How a commit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Done. (With `asynchronous`, or nothing to write: without waiting for the log.)
    Done,
    /// The commit record is in the log but not yet durable. Wait with [`Session::on_durable`], then call
    /// [`Session::finish_commit`]; only under [`Wait::Never`](millpond_buffer::Wait::Never). Until then
    /// others see the transaction as running, and its locks are held.
    Pending(CommitTicket),
}

/// A commit on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitTicket {
    /// The commit is durable when the log is flushed up to here.
    pub lsn: Lsn,
}

/// The running transaction, if one is.
#[derive(Default)]
pub(super) struct Transaction {
    active: bool,
    options: TransactionOptions,
    /// The number of the snapshot that is held, and published in the session's line.
    csn: Cell<Option<Csn>>,
    /// A statement runs: its first look at rows takes a snapshot if none is held.
    in_statement: bool,
    /// The command that runs: its changes carry this number.
    command: Cell<CommandId>,
    /// Whether the command has changed anything.
    wrote: Cell<bool>,
    /// A commit between its two halves.
    committing: Option<LoggedCommit>,
    /// Files to be removed if the transaction is rolled back, and if it commits.
    created: Vec<RelationId>,
    dropped: Vec<RelationId>,
}

impl Session {
    /// Starts a transaction.
    pub fn begin(&mut self, options: TransactionOptions) -> EngineResult<()> {
        if self.transaction.active {
            return Err(EngineError::Internal { what: "a transaction is already running" });
        }
        self.transaction.active = true;
        self.ctx.proc().enter_transaction();
        self.transaction.options = options;
        self.transaction.command.set(CommandId::FIRST);
        self.transaction.wrote.set(false);
        Ok(())
    }

    /// Whether a transaction is running.
    pub fn in_transaction(&self) -> bool {
        self.transaction.active
    }

    /// The running transaction's options.
    pub fn options(&self) -> TransactionOptions {
        self.transaction.options
    }

    /// Changes the options of the running transaction (SET TRANSACTION). The isolation level can't change
    /// once a snapshot of the whole transaction is held: the caller sees to that.
    pub fn set_options(&mut self, options: TransactionOptions) {
        self.transaction.options = options;
    }

    /// Says whether the running transaction's commit waits for the log, and how long it lets others join if it
    /// leads a group: both count as they are when it commits.
    pub fn set_commit_wait(&mut self, asynchronous: bool, delay: CommitDelay) {
        self.transaction.options.asynchronous = asynchronous;
        self.ctx.set_commit_delay(delay);
    }

    /// Starts a statement, and lets it see what earlier statements of the transaction did.
    ///
    /// In REPEATABLE READ the first statement takes the transaction's snapshot here, before it locks its tables. In READ
    /// COMMITTED the statement's snapshot is taken when it first looks at rows, which is after it has locked its
    /// tables: so it sees what was committed by those whose locks it has waited for. PostgreSQL does either.
    pub fn start_statement(&mut self) -> EngineResult<()> {
        if !self.transaction.active {
            return Err(EngineError::Internal { what: "a statement needs a transaction" });
        }
        self.ctx.proc().check_end()?;
        self.next_command()?;
        self.transaction.in_statement = true;
        match self.transaction.options.isolation {
            Isolation::ReadCommitted => self.release_snapshot(),
            Isolation::RepeatableRead => {
                self.held_snapshot();
            }
        }
        Ok(())
    }

    /// The number of the snapshot that is held, after taking one if none is.
    #[inline]
    fn held_snapshot(&self) -> Csn {
        self.transaction.csn.get().unwrap_or_else(|| {
            let csn = self.ctx.txns().snapshot(&self.ctx);
            self.transaction.csn.set(Some(csn));
            csn
        })
    }

    /// The number of the snapshot that is held, if one is.
    pub(super) fn snapshot_number(&self) -> Option<Csn> {
        self.transaction.csn.get()
    }

    /// Lets what was done so far be seen by what follows in the same statement, under the same snapshot.
    pub(super) fn next_command(&self) -> EngineResult<()> {
        if self.transaction.wrote.replace(false) {
            let next = self.transaction.command.get().next().ok_or(EngineError::LimitExceeded {
                what: "cannot have more than 2^32-2 commands in a transaction",
            })?;
            self.transaction.command.set(next);
        }
        Ok(())
    }

    /// Ends a statement: lets go of its snapshot where the isolation level permits, so that VACUUM need not wait
    /// for an idle transaction. Its scans end with it.
    pub fn end_statement(&mut self) {
        self.end_turn();
        if let Some(over) = self.statement_over.take() {
            over.store(true, Ordering::Relaxed);
        }
        self.transaction.in_statement = false;
        if self.transaction.options.isolation == Isolation::ReadCommitted {
            self.release_snapshot();
        }
    }

    fn release_snapshot(&self) {
        if let Some(csn) = self.transaction.csn.take() {
            self.ctx.txns().release_snapshot(&self.ctx, csn);
        }
    }

    /// What the running statement sees.
    #[inline]
    pub(crate) fn snapshot(&self) -> EngineResult<Snapshot> {
        if !self.transaction.in_statement {
            return Err(EngineError::Internal { what: "rows are read outside of a statement" });
        }
        let csn = self.held_snapshot();
        let command = self.transaction.command.get();
        Ok(Snapshot { csn, own: self.ctx.proc().xid(), command })
    }

    /// The running command, which is about to change something for the first time: `what` is its verb.
    pub(super) fn write_command(&self, what: &'static str) -> EngineResult<CommandId> {
        if !self.transaction.active {
            return Err(EngineError::Internal {
                what: "rows are changed outside of a transaction",
            });
        }
        if self.engine.is_closing() {
            return Err(EngineError::ShuttingDown);
        }
        if self.transaction.options.read_only {
            return Err(TableError::ReadOnly(what).into());
        }
        Ok(self.transaction.command.get())
    }

    /// Notes that the running command has changed something.
    pub(super) fn note_write(&self) {
        self.transaction.wrote.set(true);
    }

    /// Whether a snapshot is held, by a statement or by the whole transaction.
    pub(super) fn holds_snapshot(&self) -> bool {
        self.transaction.csn.get().is_some()
    }

    pub(super) fn isolation(&self) -> Isolation {
        self.transaction.options.isolation
    }

    /// Notes a file that goes if the transaction is rolled back. Before it is created.
    pub(super) fn note_created(&mut self, file: RelationId) {
        self.transaction.created.push(file);
    }

    pub(super) fn has_created(&self, file: RelationId) -> bool {
        self.transaction.created.contains(&file)
    }

    /// Notes a file that goes if the transaction commits.
    pub(super) fn note_dropped(&mut self, file: RelationId) {
        self.transaction.dropped.push(file);
    }

    /// Commits. Waits for the log to be durable, or says that it is pending (under `Wait::Never`). On an error other
    /// than `WouldBlock` the transaction is rolled back, unless the error is `InDoubt`.
    pub fn commit(&mut self) -> EngineResult<Commit> {
        if !self.transaction.active {
            return Ok(Commit::Done);
        }
        let durability = if self.transaction.options.asynchronous {
            Durability::Background
        } else {
            Durability::Flush
        };
        let dropped = self.files_to_drop();
        let started = self.ctx.txns().commit_start(&self.ctx, &dropped, durability);
        let ticket = match started {
            Ok(ticket) => ticket,
            Err(EngineError::WouldBlock) => return Err(EngineError::WouldBlock),
            Err(error @ EngineError::InDoubt { .. }) => {
                self.forget_transaction();
                return Err(error);
            }
            Err(error) => {
                self.abort();
                return Err(error);
            }
        };
        let lsn = ticket.lsn;
        let ready = ticket.is_ready();
        self.transaction.committing = Some(ticket);
        if !ready && self.ctx.log().flushed() < lsn {
            if !self.ctx.may_wait() {
                return Ok(Commit::Pending(CommitTicket { lsn }));
            }
            let _shown = self.ctx.proc().waiting(WaitEvent::WalSync);
            // If it fails, the second half finds out the same, and what it means.
            let _ = self.ctx.log().flush_commit(lsn, || self.ctx.commit_pause());
        }
        self.second_half()?;
        Ok(Commit::Done)
    }

    /// The files that go with the commit: those of what was dropped, and those that a statement which failed has left,
    /// so that the catalog does not name them.
    fn files_to_drop(&self) -> Vec<RelationId> {
        let mut files = self.transaction.dropped.clone();
        if !self.transaction.created.is_empty() {
            let catalog = self.catalog();
            let of_table = |table: &TableDef, file| {
                table.storage == file || table.indexes.iter().any(|index| index.storage == file)
            };
            let is_named = |file| catalog.tables().any(|table| of_table(table, file));
            let left = self.transaction.created.iter().copied();
            let left = left.filter(|file| !files.contains(file) && !is_named(*file));
            files.extend(left.collect::<Vec<_>>());
        }
        files
    }

    /// Wakes `waker` when the commit is durable or the log has failed.
    pub fn on_durable(&self, ticket: &CommitTicket, waker: Waker) {
        self.ctx.log().on_commit_flushed(ticket.lsn, self.ctx.commit_pause(), waker);
    }

    /// Returns when the commit is durable or the log has failed. Waits even under `Wait::Never`: for a thread that
    /// has nothing else to do, and saves the way to the log's thread and back.
    pub fn wait_durable(&self, ticket: &CommitTicket) {
        let _shown = self.ctx.proc().waiting(WaitEvent::WalSync);
        // If it fails, `finish_commit` finds out the same.
        let _ = self.ctx.log().flush_commit(ticket.lsn, || self.ctx.commit_pause());
    }

    /// Ends a commit that was pending. WouldBlock (under `Wait::Never`) if it still is.
    pub fn finish_commit(&mut self, ticket: CommitTicket) -> EngineResult<()> {
        if self.transaction.committing.is_none() {
            return Ok(());
        }
        let log = self.ctx.log();
        if log.flushed() < ticket.lsn && log.is_stopped().is_none() {
            if !self.ctx.may_wait() {
                return Err(EngineError::WouldBlock);
            }
            let _ = log.flush_commit(ticket.lsn, || self.ctx.commit_pause());
        }
        self.second_half()
    }

    /// The log is durable, or has failed: makes the commit visible.
    fn second_half(&mut self) -> EngineResult<()> {
        let Some(ticket) = self.transaction.committing.take() else { return Ok(()) };
        self.release_snapshot();
        let durable = ticket.is_ready() || self.ctx.log().flushed() >= ticket.lsn;
        let changes = self.view.borrow_mut().take_changes();
        if durable && !changes.is_empty() {
            // Locks are still held: nobody uses these relations before the commit is complete.
            self.engine.published().publish(&changes);
        }
        let finished = self.ctx.txns().commit_finish(&self.ctx, ticket);
        self.forget_transaction();
        finished?;
        Ok(())
    }

    /// Rolls back. Never fails for want of memory, room or permission to wait; harmless outside of a
    /// transaction.
    pub fn abort(&mut self) {
        if !self.transaction.active {
            return;
        }
        if self.transaction.committing.is_some() {
            // The record is in the log: only its outcome can tell.
            let _ = self.ctx.log().flush(self.ctx.log().insert_position());
            if let Err(error) = self.second_half() {
                tracing::warn!(%error, "a pending commit failed while its session ended");
            }
            return;
        }
        self.release_snapshot();
        self.view.borrow_mut().take_changes();
        self.ctx.txns().abort(&self.ctx, &self.transaction.created);
        self.forget_transaction();
    }

    fn forget_transaction(&mut self) {
        self.release_snapshot();
        if let Some(over) = self.statement_over.take() {
            over.store(true, Ordering::Relaxed);
        }
        self.view.borrow_mut().take_changes();
        self.transaction.active = false;
        self.ctx.proc().leave_transaction();
        self.transaction.in_statement = false;
        // The lock itself has gone with the transaction's others.
        self.turn.set(None);
        self.transaction.committing = None;
        self.transaction.created.clear();
        self.transaction.dropped.clear();
    }
}
