//! The running transaction of a session: its options, snapshot and command ids, and the files that
//! its end removes.
//!
//! It knows no [`Session`](super::Session): it works on the session's context.

use std::cell::Cell;

use millpond_buffer::RelationId;

use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::table::TableError;
use crate::transam::{CommandId, Csn, Isolation, LoggedCommit, Snapshot};

/// The options of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Its isolation level.
    pub isolation: Isolation,
    /// Whether changes are refused.
    pub read_only: bool,
    /// `synchronous_commit = off`: commit returns before the log is durable.
    pub asynchronous: bool,
}

/// The running transaction, if one is.
#[derive(Default)]
pub(super) struct Transaction {
    active: bool,
    pub(super) options: TransactionOptions,
    /// The commit number of the held snapshot, which the session's line publishes.
    csn: Cell<Option<Csn>>,
    /// A statement runs: its first read takes a snapshot if none is held.
    in_statement: bool,
    /// The running command's id: its changes carry it.
    command: Cell<CommandId>,
    wrote: Cell<bool>,
    /// A commit between its two halves.
    pub(super) committing: Option<LoggedCommit>,
    /// Files to be removed if the transaction is rolled back (`created`) or commits (`dropped`).
    pub(super) created: Vec<RelationId>,
    pub(super) dropped: Vec<RelationId>,
}

impl Transaction {
    /// Begins a transaction.
    pub(super) fn begin(&mut self, ctx: &Ctx, options: TransactionOptions) -> EngineResult<()> {
        if self.active {
            return Err(EngineError::Internal { what: "a transaction is already running" });
        }
        self.active = true;
        ctx.proc().enter_transaction();
        self.options = options;
        self.command.set(CommandId::FIRST);
        self.wrote.set(false);
        Ok(())
    }

    /// Whether a transaction is running.
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// Begins a statement, whose first read takes a snapshot if none is held.
    pub(super) fn start_statement(&mut self, ctx: &Ctx) -> EngineResult<()> {
        if !self.active {
            return Err(EngineError::Internal {
                what: "a statement began outside of a transaction",
            });
        }
        ctx.proc().check_end()?;
        self.next_command()?;
        self.in_statement = true;
        match self.options.isolation {
            Isolation::ReadCommitted => self.release_snapshot(ctx),
            Isolation::RepeatableRead => {
                self.held_snapshot(ctx);
            }
        }
        Ok(())
    }

    /// Ends a statement. Releases its snapshot if the isolation level permits.
    pub(super) fn end_statement(&mut self, ctx: &Ctx) {
        self.in_statement = false;
        if self.options.isolation == Isolation::ReadCommitted {
            self.release_snapshot(ctx);
        }
    }

    /// The commit number of the held snapshot; takes a snapshot if none is held.
    #[inline]
    fn held_snapshot(&self, ctx: &Ctx) -> Csn {
        self.csn.get().unwrap_or_else(|| {
            let csn = ctx.txns().snapshot(ctx);
            self.csn.set(Some(csn));
            csn
        })
    }

    /// The commit number of the held snapshot, if any.
    pub(super) fn snapshot_number(&self) -> Option<Csn> {
        self.csn.get()
    }

    /// Whether a snapshot is held, by a statement or by the whole transaction.
    pub(super) fn holds_snapshot(&self) -> bool {
        self.csn.get().is_some()
    }

    pub(super) fn release_snapshot(&self, ctx: &Ctx) {
        if let Some(csn) = self.csn.take() {
            ctx.txns().release_snapshot(ctx, csn);
        }
    }

    /// The snapshot of the running statement.
    #[inline]
    pub(super) fn snapshot(&self, ctx: &Ctx) -> EngineResult<Snapshot> {
        if !self.in_statement {
            return Err(EngineError::Internal { what: "rows are read outside of a statement" });
        }
        let csn = self.held_snapshot(ctx);
        let command = self.command.get();
        Ok(Snapshot { csn, own: ctx.proc().xid(), command })
    }

    /// Makes the changes so far visible to what follows in the same statement, under the same
    /// snapshot.
    pub(super) fn next_command(&self) -> EngineResult<()> {
        if self.wrote.replace(false) {
            let next = self.command.get().next().ok_or(EngineError::LimitExceeded {
                what: "cannot have more than 2^32-2 commands in a transaction",
            })?;
            self.command.set(next);
        }
        Ok(())
    }

    /// The id of the running command, which is about to change data. `what` is its verb, for
    /// errors.
    pub(super) fn write_command(
        &self,
        what: &'static str,
        is_closing: bool,
    ) -> EngineResult<CommandId> {
        if !self.active {
            return Err(EngineError::Internal {
                what: "rows are changed outside of a transaction",
            });
        }
        if is_closing {
            return Err(EngineError::ShuttingDown);
        }
        if self.options.read_only {
            return Err(TableError::ReadOnly(what).into());
        }
        Ok(self.command.get())
    }

    /// Notes that the running command has changed data.
    pub(super) fn note_write(&self) {
        self.wrote.set(true);
    }

    pub(super) fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// Ends the transaction, whose commit or rollback is done.
    pub(super) fn end(&mut self, ctx: &Ctx) {
        self.release_snapshot(ctx);
        self.active = false;
        ctx.proc().leave_transaction();
        self.in_statement = false;
        self.committing = None;
        self.created.clear();
        self.dropped.clear();
    }
}
