//! SELECT on one table.

use std::sync::Arc;

use millpond_engine::access::Tid;
use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::{LockStrength, RowBuf, RowOutcome};

use super::{Each, Exec, emit, key, passes, row_count};
use crate::Value;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Expr, Facts, Row};
use crate::memory::Sorter;
use crate::plan::{Access, Aggregate, KeyPart, OnConflict, RowLock, SelectPlan, SortKey};

impl Exec<'_> {
    pub(super) fn select(
        &mut self,
        plan: &SelectPlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        let facts = self.facts;
        let env = Env { row: Row::None, params, facts };
        let is_bare = plan.table.is_none()
            && plan.filter.is_none()
            && plan.limit.is_none()
            && plan.offset.is_none();
        if plan.output.only_locks && is_bare {
            // It may be tried anywhere, since nothing is locked before it that would be locked again.
            let facts = Facts { only_locks: true, ..*facts };
            return nothing(plan, &Env { facts: &facts, ..env }, each);
        }
        if plan.output.waits {
            self.need_wait()?;
        }
        let Some(table) = &plan.table else { return nothing(plan, &env, each) };
        let mode = if plan.lock.is_some() { LockMode::RowShare } else { LockMode::AccessShare };
        self.session.lock_table(table, mode)?;
        if let (Access::Point { index, key: parts }, None, None) =
            (&plan.access, &plan.aggregates, plan.lock)
            && plan.limit.is_none()
            && plan.offset.is_none()
            && !self.session.may_see_keys_twice()
        {
            return self.select_by_key(plan, table, index, parts, &env, each);
        }
        if plan.aggregates.is_some() {
            return self.aggregate(plan, table, &env, each);
        }
        let limit = row_count(plan.limit.as_ref(), &env, false)?.unwrap_or(u64::MAX);
        let offset = row_count(plan.offset.as_ref(), &env, true)?.unwrap_or(0);
        if limit == 0 {
            return Ok(0);
        }
        if let Some(lock) = plan.lock
            && !locks_what_it_returns(plan, lock, limit, offset)
        {
            self.need_wait()?;
        }
        if !plan.sort.is_empty() {
            return match plan.lock {
                Some(lock) => self.sorted_locked(plan, table, lock, &env, (limit, offset), each),
                None => self.sorted(plan, table, &env, (limit, offset), each),
            };
        }
        let (mut seen, mut given) = (0u64, 0u64);
        self.filtered(plan, table, &env, &mut |env| {
            seen += 1;
            if seen <= offset {
                return Ok(true);
            }
            given += 1;
            Ok(emit(&plan.output, env, each)? && given < limit)
        })?;
        Ok(given)
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
        let values = key::values(parts, env)?;
        let Some(key) = key::exact(parts, &values) else { return Ok(0) };
        let row = &mut self.scratch.row;
        if !self.session.lookup(table, index, &key, row)?
            || !passes(plan.filter.as_ref(), table, row.bytes(), env)?
        {
            return Ok(0);
        }
        emit(&plan.output, &env.with_row(Row::Stored(&table.layout, row.bytes())), each)?;
        Ok(1)
    }

    /// All rows that a SELECT's WHERE lets through, locked if it says so.
    fn filtered(
        &mut self,
        plan: &SelectPlan,
        table: &Arc<TableDef>,
        env: &Env<'_>,
        take: &mut dyn FnMut(&Env<'_>) -> Result<bool>,
    ) -> Result<()> {
        if let (Access::Heap, None) = (&plan.access, plan.lock) {
            return self.scan_heap(table, &mut |bytes| {
                Ok(!passes(plan.filter.as_ref(), table, bytes, env)?
                    || take(&env.with_row(Row::Stored(&table.layout, bytes)))?)
            });
        }
        self.rows(table, &plan.access, env, &mut |exec, row| {
            if !passes(plan.filter.as_ref(), table, row.bytes(), env)? {
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
        loop {
            let locked = match lock.conflict {
                OnConflict::Wait => Some(self.session.lock_row(table, row, lock.strength)?),
                _ => self.session.try_lock_row(table, row, lock.strength)?,
            };
            match (locked, lock.conflict) {
                (Some(RowOutcome::Done(_)), _) => return Ok(true),
                (Some(RowOutcome::Gone), _) | (None, OnConflict::Skip) => return Ok(false),
                (Some(RowOutcome::Changed), _) => {
                    if !passes(plan.condition.as_ref(), table, row.bytes(), env)? {
                        self.session.end_turn();
                        return Ok(false);
                    }
                }
                (None, _) => {
                    return Err(SqlError::new(
                        SqlState::LOCK_NOT_AVAILABLE,
                        format!("could not obtain lock on row in relation \"{}\"", table.name),
                    ));
                }
            }
        }
    }

    /// Rows in an order that must be made, locked in that order and no more of them than are returned.
    fn sorted_locked(
        &mut self,
        plan: &SelectPlan,
        table: &Arc<TableDef>,
        lock: RowLock,
        env: &Env<'_>,
        (limit, offset): (u64, u64),
        each: Each<'_>,
    ) -> Result<u64> {
        let resources = self.resources();
        let compare = |a: &[Value], b: &[Value]| compare_keys(&plan.sort, a, b);
        let mut sorter = Sorter::new(&resources, plan.sort.len(), &compare);
        self.rows(table, &plan.access, env, &mut |_, row| {
            if let Some(tid) = row.tid()
                && passes(plan.filter.as_ref(), table, row.bytes(), env)?
            {
                let env = env.with_row(Row::Stored(&table.layout, row.bytes()));
                let keys = owned(plan.sort.iter().map(|key| &key.expr), &env)?;
                sorter.push(keys, vec![Value::Int8(tid.to_u64() as i64)])?;
            }
            Ok(true)
        })?;
        let (mut sorted, mut row) = (sorter.finish()?, RowBuf::default());
        let (mut seen, mut given) = (0u64, 0u64);
        while given < limit
            && let Some(place) = sorted.next()?
        {
            let [Value::Int8(place)] = place.as_slice() else { continue };
            if !self.session.fetch(table, Tid::from_u64(*place as u64), &mut row)? {
                continue;
            }
            if !self.lock_row(plan, table, env, &mut row, lock)? {
                continue;
            }
            seen += 1;
            if seen <= offset {
                continue;
            }
            given += 1;
            if !emit(&plan.output, &env.with_row(Row::Stored(&table.layout, row.bytes())), each)? {
                break;
            }
        }
        Ok(given)
    }

    fn aggregate(
        &mut self,
        plan: &SelectPlan,
        table: &Arc<TableDef>,
        env: &Env<'_>,
        each: Each<'_>,
    ) -> Result<u64> {
        let Some(aggregates) = &plan.aggregates else { return Ok(0) };
        let mut sums: Vec<_> = aggregates.iter().map(|_| Default::default()).collect();
        let counts = aggregates.iter().all(Aggregate::is_count_of_rows);
        if counts && plan.filter.is_none() && matches!(plan.access, Access::Heap) {
            self.count_heap(table, &mut |rows| {
                for (aggregate, sum) in aggregates.iter().zip(&mut sums) {
                    aggregate.add_rows(sum, rows);
                }
            })?;
        } else {
            self.filtered(plan, table, env, &mut |env| {
                for (aggregate, sum) in aggregates.iter().zip(&mut sums) {
                    aggregate.add(sum, env)?;
                }
                Ok(!plan.first_only)
            })?;
        }
        let mut values = Vec::with_capacity(aggregates.len());
        for (aggregate, sum) in aggregates.iter().zip(sums) {
            values.push(aggregate.finish(sum, env)?);
        }
        let limit = row_count(plan.limit.as_ref(), env, false)?.unwrap_or(1);
        let offset = row_count(plan.offset.as_ref(), env, true)?.unwrap_or(0);
        if limit == 0 || offset > 0 {
            return Ok(0);
        }
        let row: Vec<_> = values.iter().map(Value::as_datum).collect();
        each(&row)?;
        Ok(1)
    }

    fn sorted(
        &mut self,
        plan: &SelectPlan,
        table: &Arc<TableDef>,
        env: &Env<'_>,
        (limit, offset): (u64, u64),
        each: Each<'_>,
    ) -> Result<u64> {
        let resources = self.resources();
        let compare = |a: &[Value], b: &[Value]| compare_keys(&plan.sort, a, b);
        let mut sorter = Sorter::new(&resources, plan.sort.len(), &compare);
        self.filtered(plan, table, env, &mut |env| {
            let keys = owned(plan.sort.iter().map(|key| &key.expr), env)?;
            sorter.push(keys, owned(plan.output.exprs.iter(), env)?)?;
            Ok(true)
        })?;
        let (mut sorted, mut seen, mut given) = (sorter.finish()?, 0, 0);
        while given < limit
            && let Some(row) = sorted.next()?
        {
            seen += 1;
            if seen <= offset {
                continue;
            }
            let row: Vec<_> = row.iter().map(Value::as_datum).collect();
            given += 1;
            if !each(&row)? {
                break;
            }
        }
        Ok(given)
    }
}

/// Whether all rows that a statement has locked before it finds that it would block are among those that it returns when
/// it is repeated; nobody would give the lock of another row back. Nothing can block after the last row is locked. Without a
/// limit every row that meets the condition is returned, and one that is locked cannot cease to.
fn locks_what_it_returns(plan: &SelectPlan, lock: RowLock, limit: u64, offset: u64) -> bool {
    let is_one = matches!(plan.access, Access::Point { .. }) || (limit == 1 && offset == 0);
    is_one || (plan.limit.is_none() && lock.strength >= LockStrength::Share)
}

fn nothing(plan: &SelectPlan, env: &Env<'_>, each: Each<'_>) -> Result<u64> {
    if let Some(filter) = &plan.filter
        && !filter.holds(env)?
    {
        return Ok(0);
    }
    let limit = row_count(plan.limit.as_ref(), env, false)?.unwrap_or(1);
    let offset = row_count(plan.offset.as_ref(), env, true)?.unwrap_or(0);
    if limit == 0 || offset > 0 {
        return Ok(0);
    }
    emit(&plan.output, env, each)?;
    Ok(1)
}

fn owned<'e>(exprs: impl Iterator<Item = &'e Expr>, env: &Env<'_>) -> Result<Vec<Value>> {
    exprs.map(|e| Ok(e.eval(&env.with_row(env.row))?.into_value())).collect::<Result<_, SqlError>>()
}

fn compare_keys(sort: &[SortKey], a: &[Value], b: &[Value]) -> std::cmp::Ordering {
    for (key, (a, b)) in sort.iter().zip(a.iter().zip(b)) {
        let order = match (a.is_null(), b.is_null()) {
            (true, true) => continue,
            (true, false) if key.nulls_first => std::cmp::Ordering::Less,
            (true, false) => std::cmp::Ordering::Greater,
            (false, true) if key.nulls_first => std::cmp::Ordering::Greater,
            (false, true) => std::cmp::Ordering::Less,
            (false, false) => {
                let order = a.as_datum().sort_cmp(&b.as_datum());
                if key.descending { order.reverse() } else { order }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    std::cmp::Ordering::Equal
}
