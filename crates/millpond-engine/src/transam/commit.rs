//! The ends of transactions.
//!
//! A commit, in order (transam rules 4, 7 and 8):
//!
//! 1. the session's in-commit mark, which a checkpoint waits out;
//! 2. the commit record, with the list of files to remove;
//! 3. its flush, unless the commit is asynchronous: in two halves ([`Transactions::commit_start`],
//!    [`Transactions::commit_finish`]), so that nobody need block in between;
//! 4. the committing mark, the commit number, the status: from here on others see the changes;
//! 5. the files go, the line no longer shows the id, the in-commit mark goes;
//! 6. those who wait for the transaction are woken, locks are released.
//!
//! A session that goes away between the two halves has committed all the same: rolling back
//! ([`Transactions::abort`]) then waits for the log and finishes the commit.
//!
//! Failure. If the record could not be inserted the transaction can still be rolled back. If the log stopped with
//! the record in it, nobody knows the outcome: the transaction stays in progress for all readers, whoever
//! waits for it gets [`EngineError::InDoubt`], and a restart decides (transam rule 11).

use std::time::Duration;

use millpond_buffer::{BufferError, Lsn, RelationId};
use millpond_sync::atomic::Ordering;
use millpond_sync::mutant;

use super::ids::{Csn, Xid};
use super::record::{EndRecord, INFO_ABORT, INFO_COMMIT};
use super::transactions::Transactions;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::proc::WaitEvent;
use crate::wal::{Record, RmgrId, WalError};

/// Bytes that a commit record takes in the log, apart from its list of files.
const RECORD_BYTES: usize = 64;

/// Whether a commit waits for the log (`synchronous_commit`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// What is acknowledged survives a crash.
    #[default]
    Flush,
    /// The log's thread flushes it soon. A crash may lose it, whole and in order.
    Background,
}

/// How long who leads a group of commits lets others join.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommitDelay {
    /// So long (`commit_delay`).
    pub delay: Duration,
    /// If at least so many other transactions are at work: have changed something, and wait for no lock
    /// (`commit_siblings`).
    pub siblings: usize,
}

/// A commit whose record is in the log.
#[must_use = "the transaction is committed by `commit_finish`"]
#[derive(Debug)]
pub struct LoggedCommit {
    /// The commit may finish when the log is durable up to here; zero: at once.
    pub lsn: Lsn,
    xid: Option<Xid>,
}

/// What the session remembers between the two halves.
#[derive(Debug)]
pub(crate) struct PendingCommit {
    end: Lsn,
    files: Vec<RelationId>,
}

impl LoggedCommit {
    /// Whether there is nothing to wait for.
    pub fn is_ready(&self) -> bool {
        self.lsn == Lsn::ZERO
    }
}

impl Transactions {
    /// Commits the session's transaction: record, flush, status. `files` are those of what it dropped.
    /// Returns the commit number, or `None` if it had changed nothing.
    pub fn commit(
        &self,
        ctx: &Ctx,
        files: &[RelationId],
        durability: Durability,
    ) -> EngineResult<Option<Csn>> {
        let ticket = self.commit_start(ctx, files, durability)?;
        if !ticket.is_ready() {
            let _shown = ctx.proc().waiting(WaitEvent::WalSync);
            // `commit_finish` asks again, and judges.
            let _ = ctx.log().flush_commit(ticket.lsn, || ctx.commit_pause());
        }
        self.commit_finish(ctx, ticket)
    }

    /// First half of a commit. After an error the transaction is as before and is to be rolled back.
    pub fn commit_start(
        &self,
        ctx: &Ctx,
        files: &[RelationId],
        durability: Durability,
    ) -> EngineResult<LoggedCommit> {
        let Some(xid) = ctx.proc().xid() else {
            debug_assert!(files.is_empty(), "files are dropped by transactions with an id");
            return Ok(LoggedCommit { lsn: Lsn::ZERO, xid: None });
        };
        let payload = EndRecord::now(files).encode();
        if !ctx.may_wait() && !ctx.log().has_room(RECORD_BYTES + payload.len()) {
            return Err(EngineError::WouldBlock);
        }
        ctx.proc().enter_commit();
        let record = Record::new(xid, RmgrId::Transaction, INFO_COMMIT, &payload);
        match ctx.log().insert(ctx.no(), &record) {
            Ok(inserted) => {
                // Files must not go before it is certain that they may.
                let lsn = match durability {
                    Durability::Background
                        if files.is_empty() || mutant!("transam-files-before-durable") =>
                    {
                        ctx.log().commit_in_background();
                        Lsn::ZERO
                    }
                    _ => inserted.end,
                };
                let pending = PendingCommit { end: inserted.end, files: files.to_vec() };
                *ctx.pending_commit().borrow_mut() = Some(pending);
                if mutant!("lock-released-before-status") {
                    ctx.locks().release_transaction(ctx.proc());
                }
                Ok(LoggedCommit { lsn, xid: Some(xid) })
            }
            Err(error @ WalError::Stopped { .. }) => {
                // The log may have stopped with the record in it.
                Err(self.leave_in_doubt(ctx, xid, error))
            }
            Err(error) => {
                ctx.proc().leave_commit();
                Err(error.into())
            }
        }
    }

    /// Second half of a commit, when the log is durable up to the ticket's position.
    pub fn commit_finish(&self, ctx: &Ctx, ticket: LoggedCommit) -> EngineResult<Option<Csn>> {
        let Some(xid) = ticket.xid else {
            self.finish(ctx, None);
            return Ok(None);
        };
        // At once if the caller has waited, as he should have; never on trust.
        if !ticket.is_ready()
            && !mutant!("transam-seen-before-durable")
            && let Err(error) = ctx.log().flush(ticket.lsn)
        {
            return Err(self.leave_in_doubt(ctx, xid, error));
        }
        let pending = ctx.pending_commit().borrow_mut().take();
        let Some(word) = self.ring.mark_committing(xid) else {
            return Err(EngineError::Internal { what: "a committing transaction was not running" });
        };
        let csn = self.clock.draw();
        word.set_committed(csn);
        self.drop_files(ctx, &pending.map(|pending| pending.files).unwrap_or_default());
        self.finish(ctx, Some(xid));
        Ok(Some(csn))
    }

    /// Rolls the session's transaction back, if it is in one. `files` are those of what it had created.
    ///
    /// Never fails: without an abort record, recovery finds a transaction without a commit record.
    pub fn abort(&self, ctx: &Ctx, files: &[RelationId]) {
        let Some(xid) = ctx.proc().xid() else {
            self.finish(ctx, None);
            return;
        };
        let pending_end = ctx.pending_commit().borrow().as_ref().map(|pending| pending.end);
        if let Some(end) = pending_end {
            // Too late: the record says that it has committed.
            if let Err(error) = self.commit_finish(ctx, LoggedCommit { lsn: end, xid: Some(xid) }) {
                tracing::error!(%xid, %error, "an abandoned commit");
            }
            return;
        }
        let payload = EndRecord::now(files).encode();
        // A rolled back transaction need not be flushed, and must not wait where waiting is forbidden, unless
        // recovery must know of files.
        if ctx.may_wait() || !files.is_empty() || ctx.log().has_room(RECORD_BYTES + payload.len()) {
            let record = Record::new(xid, RmgrId::Transaction, INFO_ABORT, &payload);
            if let Err(error) = ctx.log().insert(ctx.no(), &record) {
                tracing::debug!(%xid, %error, "no abort record");
            }
        }
        if !self.ring.set_aborted(xid) {
            tracing::error!(%xid, "an aborting transaction was not running");
        }
        self.drop_files(ctx, files);
        self.finish(ctx, Some(xid));
    }

    /// Step 5 and 6: the transaction is over, and all who care hear of it.
    fn finish(&self, ctx: &Ctx, xid: Option<Xid>) {
        let proc = ctx.proc();
        if let Some(xid) = xid {
            proc.publish_xid(None);
            proc.leave_commit();
            if proc.take_xid_awaited() {
                ctx.locks().transaction_ended(ctx.no(), xid);
            }
        }
        ctx.combos().borrow_mut().clear();
        ctx.locks().release_transaction(proc);
    }

    /// The log has failed under a commit record: gives the session back, and leaves the transaction to the
    /// next start.
    fn leave_in_doubt(&self, ctx: &Ctx, xid: Xid, error: WalError) -> EngineError {
        // A log that cannot confirm a commit must not go on as if nothing had happened.
        ctx.log().stop(&format!("the commit of transaction {xid} was not confirmed: {error}"));
        self.in_doubt.store(true, Ordering::Release);
        if mutant!("transam-doubt-is-rollback") {
            self.ring.set_aborted(xid);
        }
        *ctx.pending_commit().borrow_mut() = None;
        self.finish(ctx, Some(xid));
        tracing::error!(%xid, %error, "the outcome of a commit is unknown until the next start");
        EngineError::InDoubt { xid }
    }

    /// Removes files. What is still in use is kept for [`Transactions::maintain`].
    pub(super) fn drop_files(&self, ctx: &Ctx, files: &[RelationId]) {
        let forks = ctx.log().forks();
        for file in files {
            // What is left of it when the engine ends, the next start removes (wal rule 19).
            forks.set_dropped(*file);
            match ctx.pool().drop_relation(*file) {
                Ok(()) => forks.remove(*file),
                Err(BufferError::InUse { .. }) => self.undropped.lock().push(*file),
                Err(error) => tracing::warn!(%file, %error, "a dropped relation's files remain"),
            }
        }
    }
}
