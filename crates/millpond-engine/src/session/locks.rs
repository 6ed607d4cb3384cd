//! The locks that a session takes by name: on tables, and advisory ones.

use std::sync::Arc;
use std::time::Duration;

use super::Session;
use crate::catalog::TableDef;
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::lmgr::{LockError, LockMode, LockOwner, LockTag, LockWait};
use crate::table::TableError;

impl Session {
    /// Locks a table until the end of the transaction: `AccessShare` for SELECT; `RowExclusive` for
    /// INSERT, UPDATE, DELETE and COPY. Then checks the definition, and fails with
    /// `TableError::StaleDefinition` if it is outdated. Locking again is cheap.
    pub fn lock_table(&self, table: &Arc<TableDef>, mode: LockMode) -> EngineResult<()> {
        self.ctx().lock(LockTag::Relation(table.oid), mode)?;
        let mut view = self.view.borrow_mut();
        // A session that changes the definition publishes it before it releases its lock.
        view.refresh(self.engine.published());
        if view.is_current(table) {
            return Ok(());
        }
        Err(TableError::StaleDefinition(table.name.clone()).into())
    }

    /// For locks by name, and for how the session waits for locks.
    pub fn locks(&self) -> SessionLocks<'_> {
        SessionLocks { ctx: &self.ctx }
    }
}

/// The locks that a session takes by name, mostly advisory ones, and how it waits for any lock.
/// From [`Session::locks`].
pub struct SessionLocks<'s> {
    ctx: &'s Ctx,
}

impl SessionLocks<'_> {
    /// Takes a lock until the end of the transaction or, with `session`, of the session.
    pub fn acquire(&self, tag: LockTag, mode: LockMode, session: bool) -> EngineResult<()> {
        let owner = if session { LockOwner::Session } else { LockOwner::Transaction };
        self.ctx.lock_for(owner, tag, mode)?;
        Ok(())
    }

    /// Takes a lock without waiting (NOWAIT). Returns false if another session holds a conflicting
    /// one.
    pub fn try_acquire(&self, tag: LockTag, mode: LockMode, session: bool) -> EngineResult<bool> {
        let owner = if session { LockOwner::Session } else { LockOwner::Transaction };
        match self.ctx.locks().acquire_for(self.ctx.proc(), owner, tag, mode, LockWait::Never) {
            Ok(_) => Ok(true),
            Err(LockError::WouldBlock { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Releases a session lock (advisory locks). Returns false if the session holds no such lock.
    pub fn release(&self, tag: LockTag, mode: LockMode) -> bool {
        self.ctx.locks().release(self.ctx.proc(), LockOwner::Session, tag, mode)
    }

    /// Releases all session locks, but not those that the transaction holds.
    pub fn release_all(&self) {
        self.ctx.locks().release_session_locks(self.ctx.proc());
    }

    /// Sets the longest wait for a lock (`lock_timeout`).
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.ctx.set_lock_timeout(timeout);
    }

    /// Sets how long the session waits for a lock before it looks for a deadlock
    /// (`deadlock_timeout`).
    pub fn set_deadlock_timeout(&self, timeout: Duration) {
        self.ctx.proc().local_locks().borrow_mut().deadlock_timeout = Some(timeout);
    }

    /// Sets whether the server's log reports lock waits that last longer than that
    /// (`log_lock_waits`).
    pub fn set_log_waits(&self, on: bool) {
        self.ctx.proc().local_locks().borrow_mut().logs_waits = on;
    }
}
