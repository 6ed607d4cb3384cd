//! VACUUM and ANALYZE.

use millpond_buffer::AccessStrategy;

use super::Session;
use crate::access::{btree, heap};
use crate::catalog::{Oid, TableDef};
use crate::error::{EngineError, EngineResult};
use crate::lmgr::{LockMode, LockTag};
use crate::table::TableError;
use crate::transam::{CommandId, Durability, Snapshot};
use millpond_buffer::BackendKind;

/// The result of a VACUUM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumSummary {
    /// Pages looked at.
    pub pages: u64,
    /// Row versions removed.
    pub removed: u64,
    /// Rows that remain.
    pub remaining: u64,
    /// Dead row versions that some snapshot may still see.
    pub not_yet_removable: u64,
}

/// Work that no transaction asks for. From [`Session::maintenance`].
pub struct Maintenance<'s> {
    session: &'s mut Session,
}

impl Session {
    /// For VACUUM, ANALYZE and the size of the pool.
    pub fn maintenance(&mut self) -> Maintenance<'_> {
        Maintenance { session: self }
    }

    /// Marks this session as an autovacuum worker.
    pub(crate) fn set_automatic(&self) {
        self.vacuum_automatic.set(true);
        self.ctx().buffers().set_backend_kind(BackendKind::Autovacuum);
    }
}

impl Maintenance<'_> {
    /// Resizes the buffer pool of all sessions to this number of pages. If pages in use prevent
    /// that, the pool shrinks as far as it can and the call fails.
    pub fn resize_buffers(&self, pages: usize) -> EngineResult<()> {
        Ok(self.session.ctx.pool().resize(self.session.ctx.buffers(), pages)?)
    }

    /// Removes dead rows and their index entries. It fails inside a transaction, whose own snapshot
    /// would keep dead rows alive.
    pub fn vacuum(&mut self, table: Oid) -> EngineResult<VacuumSummary> {
        self.outside_of_transaction(|work| work.vacuum_locked(table))
    }

    /// Counts rows for the planner's estimates.
    pub fn analyze(&mut self, table: Oid) -> EngineResult<()> {
        if self.session.in_transaction() {
            return self.analyze_locked(table);
        }
        self.outside_of_transaction(|work| work.analyze_locked(table))
    }

    fn outside_of_transaction<R>(
        &mut self,
        work: impl FnOnce(&Self) -> EngineResult<R>,
    ) -> EngineResult<R> {
        if self.session.in_transaction() {
            return Err(EngineError::Internal { what: "VACUUM was called in a transaction" });
        }
        if !self.session.ctx.may_wait() {
            return Err(EngineError::WouldBlock);
        }
        let result = work(self);
        // Releases the locks; the transaction has no id.
        self.session.ctx.txns().commit(&self.session.ctx, &[], Durability::Background)?;
        result
    }

    fn locked_for_upkeep(&self, oid: Oid) -> EngineResult<std::sync::Arc<TableDef>> {
        let (tag, mode) = (LockTag::Relation(oid), LockMode::ShareUpdateExclusive);
        match self.session.vacuum_automatic.get() {
            // Autovacuum does not queue for the lock: it would block the requests behind it.
            true => self.session.ctx.lock_nowait(tag, mode)?,
            false => self.session.ctx.lock(tag, mode)?,
        };
        let table = self.session.catalog().table(oid).cloned();
        table.ok_or_else(|| TableError::UndefinedRelation(oid.to_string()).into())
    }

    fn vacuum_locked(&self, oid: Oid) -> EngineResult<VacuumSummary> {
        let table = self.locked_for_upkeep(oid)?;
        let heap = self.session.heap(&table)?;
        let ring = self.session.ctx.ring(AccessStrategy::Vacuum);
        let mut clean = |dead: &dyn Fn(crate::access::Tid) -> bool| {
            for index in &table.indexes {
                btree::vacuum(&self.session.ctx, self.session.tree(index)?, ring.as_ref(), dead)?;
            }
            Ok(())
        };
        let pass: Option<heap::IndexPass<'_>> =
            if table.indexes.is_empty() { None } else { Some(&mut clean) };
        let stats = heap::vacuum(&self.session.ctx, heap, ring.as_ref(), pass)?;
        if heap::is_worth_truncating(&stats) {
            self.truncate_if_unused(oid, heap)?;
        }
        table.stats.vacuumed(self.session.vacuum_automatic.get());
        Ok(VacuumSummary {
            pages: stats.pages,
            removed: stats.removed,
            remaining: stats.live,
            not_yet_removable: stats.not_yet_removable,
        })
    }

    /// Truncates the empty pages at the end of the file, unless another session uses the table.
    fn truncate_if_unused(&self, oid: Oid, heap: &heap::HeapRelation) -> EngineResult<()> {
        match self.session.ctx.lock_nowait(LockTag::Relation(oid), LockMode::AccessExclusive) {
            Ok(_) => heap::truncate_end(&self.session.ctx, heap).map(|_| ()),
            Err(EngineError::LockNotAvailable { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn analyze_locked(&self, oid: Oid) -> EngineResult<()> {
        let table = self.locked_for_upkeep(oid)?;
        let heap = self.session.heap(&table)?;
        let counts = heap.counters().counts();
        let dead = heap.counters().dead_estimate();
        let csn = self.session.ctx.txns().snapshot(&self.session.ctx);
        let snapshot =
            Snapshot { csn, own: self.session.ctx.proc().xid(), command: CommandId(u32::MAX) };
        let blocks = 0..heap.block_count();
        let ring = self.session.ctx.ring(AccessStrategy::Vacuum);
        let rows = heap::count_rows(&self.session.ctx, heap, blocks, &snapshot, ring.as_ref());
        self.session.ctx.txns().release_snapshot(&self.session.ctx, csn);
        heap.counters().note_vacuum(counts, rows?, dead);
        table.stats.analyzed();
        Ok(())
    }
}
