//! Commit and rollback of a session's transaction.

use std::task::Waker;

use millpond_buffer::{Lsn, RelationId};

use super::Session;
use super::transaction::TransactionOptions;
use crate::catalog::TableDef;
use crate::error::{EngineError, EngineResult};
use crate::proc::WaitEvent;
use crate::transam::{CommitDelay, Durability};

/// The state of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Done. An `asynchronous` commit, or one without changes, did not wait for the log.
    Done,
    /// The commit record is in the log but not yet durable. Wait with [`Session::on_durable`], then
    /// call [`Session::finish_commit`]; only under [`Wait::Never`](millpond_buffer::Wait::Never).
    /// Until then others see the transaction as running, and its locks are held.
    Pending(CommitTicket),
}

/// A commit whose record is not yet durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitTicket {
    /// The commit is durable when the log is flushed up to here.
    pub lsn: Lsn,
}

impl Session {
    /// Starts a transaction.
    pub fn begin(&mut self, options: TransactionOptions) -> EngineResult<()> {
        self.transaction.begin(&self.ctx, options)
    }

    /// Whether a transaction is running.
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_active()
    }

    /// The running transaction's options.
    pub fn options(&self) -> TransactionOptions {
        self.transaction.options
    }

    /// Changes the options of the running transaction (SET TRANSACTION). The isolation level must
    /// not change once a snapshot for the whole transaction is held. The caller ensures that.
    pub fn set_options(&mut self, options: TransactionOptions) {
        self.transaction.options = options;
    }

    /// Sets whether the running transaction's commit waits for the log. Also sets how long it lets
    /// others join if it leads a group commit. Both take effect when the transaction commits.
    pub fn set_commit_wait(&mut self, asynchronous: bool, delay: CommitDelay) {
        self.transaction.options.asynchronous = asynchronous;
        self.ctx.set_commit_delay(delay);
    }

    /// Commits. Waits until the log is durable, or returns `Pending` (under `Wait::Never`). On an
    /// error other than `WouldBlock` the transaction is rolled back, unless the error is `InDoubt`.
    pub fn commit(&mut self) -> EngineResult<Commit> {
        if !self.transaction.is_active() {
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
            // If it fails, the second half finds the same error and handles it.
            let _ = self.ctx.flush_commit(lsn);
        }
        self.second_half()?;
        Ok(Commit::Done)
    }

    /// The files that the commit removes: those of dropped relations, and those that a failed
    /// statement has created and the catalog does not name.
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

    /// Returns when the commit is durable or the log has failed. It waits even under `Wait::Never`.
    /// For a thread with no other work: it avoids the wake-up through the log's thread.
    pub fn wait_durable(&self, ticket: &CommitTicket) {
        let _shown = self.ctx.proc().waiting(WaitEvent::WalSync);
        // If it fails, `finish_commit` finds the same error.
        let _ = self.ctx.flush_commit(ticket.lsn);
    }

    /// Ends a pending commit. Returns `WouldBlock` (under `Wait::Never`) if it is still pending.
    pub fn finish_commit(&mut self, ticket: CommitTicket) -> EngineResult<()> {
        if self.transaction.committing.is_none() {
            return Ok(());
        }
        let log = self.ctx.log();
        if log.flushed() < ticket.lsn && log.is_stopped().is_none() {
            if !self.ctx.may_wait() {
                return Err(EngineError::WouldBlock);
            }
            let _ = self.ctx.flush_commit(ticket.lsn);
        }
        self.second_half()
    }

    /// Makes the commit visible, once the log is durable or has failed.
    fn second_half(&mut self) -> EngineResult<()> {
        let Some(ticket) = self.transaction.committing.take() else { return Ok(()) };
        self.transaction.release_snapshot(&self.ctx);
        let durable = ticket.is_ready() || self.ctx.log().flushed() >= ticket.lsn;
        let changes = self.view.borrow_mut().take_changes();
        if durable && !changes.is_empty() {
            // Locks are still held: no other session uses these relations before the commit is
            // complete.
            self.engine.published().publish(&changes);
        }
        let finished = self.ctx.txns().commit_finish(&self.ctx, ticket);
        self.forget_transaction();
        finished?;
        Ok(())
    }

    /// Rolls back. It never fails for lack of memory, log space or permission to wait. Outside of a
    /// transaction it does nothing.
    pub fn abort(&mut self) {
        if !self.transaction.is_active() {
            return;
        }
        if self.transaction.committing.is_some() {
            // The record is in the log: whether it becomes durable decides.
            let _ = self.ctx.log().flush(self.ctx.log().insert_position());
            if let Err(error) = self.second_half() {
                tracing::warn!(%error, "a pending commit failed while its session ended");
            }
            return;
        }
        self.transaction.release_snapshot(&self.ctx);
        self.view.borrow_mut().take_changes();
        self.ctx.txns().abort(&self.ctx, &self.transaction.created);
        self.forget_transaction();
    }

    fn forget_transaction(&mut self) {
        self.stop.end_statement();
        self.view.borrow_mut().take_changes();
        self.transaction.end(&self.ctx);
        // The lock itself was released with the transaction's other locks.
        self.turn.forget();
    }
}
