//! Commit and rollback of transactions.
//!
//! A commit, in order (transam rules 4, 7 and 8):
//!
//! 1. the session's in-commit mark, which a checkpoint waits out;
//! 2. the commit record, with the list of files to remove;
//! 3. its flush, unless the commit is asynchronous, between the two halves of a commit
//!    ([`Transactions::commit_start`], [`Transactions::commit_finish`]), so no thread need block;
//! 4. the committing mark, the commit number, the status: from here on others see the changes;
//! 5. the files are removed, the session's line no longer has the id, the in-commit mark is
//!    cleared;
//! 6. sessions that wait for the transaction are woken, locks are released.
//!
//! If a session goes away between the two halves, its transaction still commits: rolling back
//! ([`Transactions::abort`]) then waits for the log and finishes the commit.
//!
//! Failure. If the record could not be inserted, the transaction can still be rolled back. If the
//! log stopped with the record in it, the outcome is unknown. For all readers the transaction stays
//! in progress. A session that waits for it gets [`EngineError::InDoubt`]; a restart decides
//! (transam rule 11).

use millpond_buffer::{BufferError, Lsn, RelationId};
use millpond_sync::atomic::Ordering;
use millpond_sync::mutant;

use super::backend::{Backend, PendingCommit};
use super::transactions::Transactions;
use crate::error::{EngineError, EngineResult};
use crate::ids::{Csn, Xid};
use crate::proc::WaitEvent;
use crate::wal::end_record::{EndRecord, INFO_ABORT, INFO_COMMIT};
use crate::wal::{Record, RmgrId, WalError};

/// The size of a commit record in the log, apart from its list of files.
const RECORD_BYTES: usize = 64;

/// Whether a commit waits for the log (`synchronous_commit`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// What is acknowledged survives a crash.
    #[default]
    Flush,
    /// The log's thread flushes it soon. A crash may lose it, as a whole and in order.
    Background,
}

/// A commit whose record is in the log.
#[must_use = "the transaction is committed by `commit_finish`"]
#[derive(Debug)]
pub struct LoggedCommit {
    /// The commit may finish when the log is durable up to here. Zero: it may finish at once.
    pub lsn: Lsn,
    xid: Option<Xid>,
}

impl LoggedCommit {
    /// Whether the commit may finish without waiting.
    pub fn is_ready(&self) -> bool {
        self.lsn == Lsn::ZERO
    }
}

impl Transactions {
    /// Commits the session's transaction: record, flush, status. `files` are the files of what it
    /// dropped. Returns the commit number, or `None` if the transaction had changed nothing.
    pub fn commit(
        &self,
        backend: &Backend,
        files: &[RelationId],
        durability: Durability,
    ) -> EngineResult<Option<Csn>> {
        let ticket = self.commit_start(backend, files, durability)?;
        if !ticket.is_ready() {
            let _shown = backend.proc().waiting(WaitEvent::WalSync);
            // `commit_finish` flushes again and handles the error.
            let _ = backend.flush_commit(ticket.lsn);
        }
        self.commit_finish(backend, ticket)
    }

    /// First half of a commit. After an error the transaction is as before and can be rolled back.
    /// Only after [`EngineError::InDoubt`] it has ended.
    pub fn commit_start(
        &self,
        backend: &Backend,
        files: &[RelationId],
        durability: Durability,
    ) -> EngineResult<LoggedCommit> {
        let Some(xid) = backend.proc().xid() else {
            debug_assert!(files.is_empty(), "files are dropped by transactions with an id");
            return Ok(LoggedCommit { lsn: Lsn::ZERO, xid: None });
        };
        let payload = EndRecord::now(files).encode();
        if !backend.may_wait() && !backend.log().has_room(RECORD_BYTES + payload.len()) {
            return Err(EngineError::WouldBlock);
        }
        backend.proc().enter_commit();
        let record = Record::new(xid, RmgrId::Transaction, INFO_COMMIT, &payload);
        match backend.log().insert(backend.no(), &record) {
            Ok(inserted) => {
                // Files must not be removed before the commit is durable.
                let lsn = match durability {
                    Durability::Background
                        if files.is_empty() || mutant!("transam-files-before-durable") =>
                    {
                        backend.log().commit_in_background();
                        Lsn::ZERO
                    }
                    _ => inserted.end,
                };
                let pending = PendingCommit { end: inserted.end, files: files.to_vec() };
                *backend.pending_commit().borrow_mut() = Some(pending);
                if mutant!("lock-released-before-status") {
                    backend.locks().release_transaction(backend.proc());
                }
                Ok(LoggedCommit { lsn, xid: Some(xid) })
            }
            Err(error @ WalError::Stopped { .. }) => {
                // The log may have stopped with the record in it.
                Err(self.leave_in_doubt(backend, xid, error))
            }
            Err(error) => {
                backend.proc().leave_commit();
                Err(error.into())
            }
        }
    }

    /// Second half of a commit, when the log is durable up to the ticket's position.
    pub fn commit_finish(
        &self,
        backend: &Backend,
        ticket: LoggedCommit,
    ) -> EngineResult<Option<Csn>> {
        let Some(xid) = ticket.xid else {
            self.finish(backend, None);
            return Ok(None);
        };
        // Returns at once if the caller has waited, as it should. The commit does not rely on that.
        if !ticket.is_ready()
            && !mutant!("transam-seen-before-durable")
            && let Err(error) = backend.log().flush(ticket.lsn)
        {
            return Err(self.leave_in_doubt(backend, xid, error));
        }
        let pending = backend.pending_commit().borrow_mut().take();
        let Some(word) = self.ring.mark_committing(xid) else {
            return Err(EngineError::Internal { what: "a committing transaction was not running" });
        };
        let csn = self.clock.draw();
        word.set_committed(csn);
        self.drop_files(backend, &pending.map(|pending| pending.files).unwrap_or_default());
        self.finish(backend, Some(xid));
        Ok(Some(csn))
    }

    /// Rolls back the session's transaction, if any. `files` are the files that it had created.
    ///
    /// Never fails: recovery treats a transaction without a commit record as rolled back.
    pub fn abort(&self, backend: &Backend, files: &[RelationId]) {
        let Some(xid) = backend.proc().xid() else {
            self.finish(backend, None);
            return;
        };
        let pending_end = backend.pending_commit().borrow().as_ref().map(|pending| pending.end);
        if let Some(end) = pending_end {
            // Too late to roll back: the commit record is in the log.
            if let Err(error) =
                self.commit_finish(backend, LoggedCommit { lsn: end, xid: Some(xid) })
            {
                tracing::error!(%xid, %error, "could not finish the commit of an ended session");
            }
            return;
        }
        let payload = EndRecord::now(files).encode();
        // A rollback need not be flushed. Where waiting is forbidden, it skips its record if the
        // log has no room, unless recovery must know of files.
        if backend.may_wait()
            || !files.is_empty()
            || backend.log().has_room(RECORD_BYTES + payload.len())
        {
            let record = Record::new(xid, RmgrId::Transaction, INFO_ABORT, &payload);
            if let Err(error) = backend.log().insert(backend.no(), &record) {
                tracing::debug!(%xid, %error, "no abort record");
            }
        }
        if !self.ring.set_aborted(xid) {
            tracing::error!(%xid, "an aborting transaction was not running");
        }
        self.drop_files(backend, files);
        self.finish(backend, Some(xid));
    }

    /// Steps 5 and 6: the transaction is over. Wakes its waiters and releases its locks.
    fn finish(&self, backend: &Backend, xid: Option<Xid>) {
        let proc = backend.proc();
        if let Some(xid) = xid {
            proc.publish_xid(None);
            proc.leave_commit();
            if proc.take_xid_awaited() {
                backend.locks().transaction_ended(backend.no(), xid);
            }
        }
        backend.combos().borrow_mut().clear();
        backend.locks().release_transaction(proc);
    }

    /// The log failed under a commit record. Ends the transaction; the next start decides.
    fn leave_in_doubt(&self, backend: &Backend, xid: Xid, error: WalError) -> EngineError {
        // A log that cannot confirm a commit must not continue.
        backend.log().stop(&format!("the commit of transaction {xid} was not confirmed: {error}"));
        self.in_doubt.store(true, Ordering::Release);
        if mutant!("transam-doubt-is-rollback") {
            self.ring.set_aborted(xid);
        }
        *backend.pending_commit().borrow_mut() = None;
        self.finish(backend, Some(xid));
        tracing::error!(%xid, %error, "the outcome of a commit is unknown until the next start");
        EngineError::InDoubt { xid }
    }

    /// Removes files. Those that are still in use are left to [`Transactions::maintain`].
    pub(super) fn drop_files(&self, backend: &Backend, files: &[RelationId]) {
        let forks = backend.log().forks();
        for file in files {
            // If the file outlives the engine, the next start removes it (wal rule 19).
            forks.set_dropped(*file);
            match backend.pool().drop_relation(*file) {
                Ok(()) => forks.remove(*file),
                Err(BufferError::InUse { .. }) => self.undropped.lock().push(*file),
                Err(error) => tracing::warn!(%file, %error, "a dropped relation's files remain"),
            }
        }
    }
}
