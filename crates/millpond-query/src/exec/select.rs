//! SELECT on one table.

use std::borrow::Cow;
use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::{LockStrength, RowBuf};
use millpond_types::ColumnOffsets;

use super::results::{self, Limits, Take};
use super::{Each, Exec, emit, holds, is_long_scan, key, passes};
use crate::Value;
use crate::error::Result;
use crate::expr::{Env, Facts, Row};
use crate::plan::{Access, Aggregate, KeyPart, RowLock, SelectPlan};
use crate::run::Folded;

impl Exec<'_> {
    pub(super) fn select(
        &mut self,
        plan: &SelectPlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        let facts = self.facts;
        let env = Env { row: Row::None, params, facts, subplans: None };
        let results = &plan.results;
        let is_whole = results.limit.is_none() && results.offset.is_none();
        let is_bare = plan.table.is_none() && plan.filter.is_none() && is_whole;
        if results.output.only_locks && is_bare {
            // It may be tried anywhere, since nothing is locked before it that would be locked
            // again.
            let facts = Facts { only_locks: true, ..*facts };
            return nothing(plan, &Env { facts: &facts, ..env }, each);
        }
        if results.output.waits {
            self.need_wait()?;
        }
        let Some(table) = &plan.table else { return nothing(plan, &env, each) };
        let mode = if plan.lock.is_some() { LockMode::RowShare } else { LockMode::AccessShare };
        self.session.lock_table(table, mode)?;
        if let (Access::Point { index, key: parts }, None, None) =
            (&plan.access, &results.aggregates, plan.lock)
            && is_whole
            && !self.session.may_see_keys_twice()
        {
            return self.select_by_key(plan, table, index, parts, &env, each);
        }
        if let Some(aggregates) = &results.aggregates {
            return self.aggregate(plan, aggregates, table, &env, each);
        }
        let limits = Limits::of(results, &env)?;
        if limits.limit == 0 {
            return Ok(0);
        }
        if let Some(lock) = plan.lock
            && !locks_what_it_returns(plan, lock, limits)
        {
            self.need_wait()?;
        }
        self.limited(results, limits, each, &mut |exec, take| {
            exec.filtered(plan, (table, limits.wanted()), &env, take)
        })
    }

    /// The hot path: one row by its key.
    #[inline]
    fn select_by_key(
        &mut self,
        plan: &SelectPlan,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        parts: &[KeyPart],
        env: &Env<'_>,
        each: Each<'_>,
    ) -> Result<u64> {
        let mut held = key::KeyVals::new();
        let Some(key) = key::exact(parts, env, &mut held)? else { return Ok(0) };
        let row = &mut self.scratch.row;
        if !self.session.lookup(table, index, &key, row)?
            || !passes(plan.filter.as_ref(), table, row.bytes(), env)?
        {
            return Ok(0);
        }
        emit(&plan.results.output, &env.with_row(Row::Stored(&table.layout, row.bytes())), each)?;
        Ok(1)
    }

    /// All rows that a SELECT's WHERE lets through, locked if it says so. About `wanted` of them
    /// will be read.
    fn filtered(
        &mut self,
        plan: &SelectPlan,
        (table, wanted): (&Arc<TableDef>, usize),
        env: &Env<'_>,
        take: Take<'_>,
    ) -> Result<()> {
        if let (Access::Heap, None) = (&plan.access, plan.lock) {
            let mut filter = plan.filter.as_ref();
            let folded;
            if let Some(written) = filter
                && is_long_scan(self.session, table)?
            {
                folded = written.clone().folded(env)?;
                filter = Some(&folded);
            }
            let offsets = ColumnOffsets::default();
            return self.scan_heap(table, &mut |bytes| {
                offsets.clear();
                let env = env.with_row(Row::Scanned(&table.layout, bytes, &offsets));
                Ok(!holds(filter, &env)? || take(&env)?)
            });
        }
        let mut filter = Folded::default();
        self.rows(table, (&plan.access, wanted), env, &mut |exec, row| {
            let filter = filter.of_env(plan.filter.as_ref(), env)?;
            if !passes(filter, table, row.bytes(), env)? {
                return Ok(true);
            }
            if let Some(lock) = plan.lock
                && !exec.lock_row(plan, table, env, row, lock)?
            {
                return Ok(true);
            }
            take(&env.with_row(Row::Stored(&table.layout, row.bytes())))
        })
    }

    /// Locks a row; false when it is gone, no longer what was asked for, or to be skipped.
    fn lock_row(
        &mut self,
        plan: &SelectPlan,
        table: &Arc<TableDef>,
        env: &Env<'_>,
        row: &mut RowBuf,
        lock: RowLock,
    ) -> Result<bool> {
        super::lock_row(self.session, table, row, lock, &mut |row| {
            passes(plan.condition.as_ref(), table, row.bytes(), env)
        })
    }

    fn aggregate(
        &mut self,
        plan: &SelectPlan,
        aggregates: &[Aggregate],
        table: &Arc<TableDef>,
        env: &Env<'_>,
        each: Each<'_>,
    ) -> Result<u64> {
        let counts = aggregates.iter().all(Aggregate::is_count_of_rows);
        if counts && plan.filter.is_none() && matches!(plan.access, Access::Heap) {
            let mut sums: Vec<_> = aggregates.iter().map(Aggregate::start).collect();
            self.count_heap(table, &mut |rows| {
                for (aggregate, sum) in aggregates.iter().zip(&mut sums) {
                    aggregate.add_rows(sum, rows);
                }
            })?;
            return results::finish(&plan.results, aggregates, sums, env, each);
        }
        let mut aggregates = Cow::Borrowed(aggregates);
        if matches!(plan.access, Access::Heap) && is_long_scan(self.session, table)? {
            let folded = aggregates.iter().map(|aggregate| aggregate.folded(env));
            aggregates = Cow::Owned(folded.collect::<Result<_>>()?);
        }
        self.aggregated(&plan.results, &aggregates, env, each, &mut |exec, take| {
            let wanted = if plan.first_only { 1 } else { usize::MAX };
            exec.filtered(plan, (table, wanted), env, &mut |env| Ok(take(env)? && !plan.first_only))
        })
    }
}

/// Whether a statement that would block, and is repeated, returns all rows that it has locked by
/// then. Nothing would give back the lock of another row. Nothing can block after the last row is
/// locked. Without a limit every row that meets the condition is returned, and one that is locked
/// cannot cease to.
fn locks_what_it_returns(plan: &SelectPlan, lock: RowLock, limits: Limits) -> bool {
    let is_first_only = limits.limit == 1 && limits.offset == 0;
    let is_one = matches!(plan.access, Access::Point { .. }) || is_first_only;
    is_one || (plan.results.limit.is_none() && lock.strength >= LockStrength::Share)
}

fn nothing(plan: &SelectPlan, env: &Env<'_>, each: Each<'_>) -> Result<u64> {
    if let Some(filter) = &plan.filter
        && !filter.holds(env)?
    {
        return Ok(0);
    }
    if Limits::of(&plan.results, env)?.drop_only_row() {
        return Ok(0);
    }
    emit(&plan.results.output, env, each)?;
    Ok(1)
}
