//! Reading: rows by access path, SELECT on top of them.

use std::sync::Arc;

use millpond_engine::access::Tid;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::{Direction, RowBuf, RowOutcome};

use super::{Each, Exec, MAX_BLOCKS_UNWAITING, MAX_ROWS_UNWAITING, Scanner, emit, key, row_count};
use crate::Value;
use crate::advisory::{Advisory, Key};
use crate::convert::would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Facts, Row};
use crate::plan::external::ExternalPlan;
use crate::plan::{Access, IndexRange, OnConflict, RowLock, SelectPlan, SortKey};

/// Takes a row's bytes and place; says whether to go on.
type EachRow<'e> = &'e mut dyn FnMut(&mut Exec<'_>, &mut RowBuf) -> Result<bool>;

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
            // The hot path.
            let values = key::values(parts, &env)?;
            let Some(key) = key::exact(parts, &values) else { return Ok(0) };
            let row = &mut self.scratch.row;
            if !self.session.lookup(table, index, &key, row)? {
                return Ok(0);
            }
            let env = env.with_row(Row::Stored(&table.layout, row.bytes()));
            if let Some(filter) = &plan.filter
                && !filter.holds(&env)?
            {
                return Ok(0);
            }
            emit(&plan.output, &env, each)?;
            return Ok(1);
        }
        if plan.aggregates.is_some() {
            return self.aggregate(plan, table, &env, each);
        }
        let limit = row_count(plan.limit.as_ref(), &env, false)?.unwrap_or(u64::MAX);
        let offset = row_count(plan.offset.as_ref(), &env, true)?.unwrap_or(0);
        if limit == 0 {
            return Ok(0);
        }
        if let (Some(lock), false) = (plan.lock, plan.sort.is_empty()) {
            return self.sorted_locked(plan, table, lock, &env, (limit, offset), each);
        }
        if !plan.sort.is_empty() {
            return self.sorted(plan, table, &env, limit, offset, each);
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

    /// All rows that a SELECT's WHERE lets through, locked if it says so.
    fn filtered(
        &mut self,
        plan: &SelectPlan,
        table: &Arc<TableDef>,
        env: &Env<'_>,
        take: &mut dyn FnMut(&Env<'_>) -> Result<bool>,
    ) -> Result<()> {
        if let (Access::Heap, None) = (&plan.access, plan.lock) {
            return self.scan_heap(table, &mut |_, bytes| {
                let env = env.with_row(Row::Stored(&table.layout, bytes));
                match &plan.filter {
                    Some(filter) if !filter.holds(&env)? => Ok(true),
                    _ => take(&env),
                }
            });
        }
        self.rows(table, &plan.access, env, &mut |exec, row| {
            let passes = {
                let env = env.with_row(Row::Stored(&table.layout, row.bytes()));
                match &plan.filter {
                    Some(filter) => filter.holds(&env)?,
                    None => true,
                }
            };
            if !passes {
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
                    let env = env.with_row(Row::Stored(&table.layout, row.bytes()));
                    if let Some(condition) = &plan.condition
                        && !condition.holds(&env)?
                    {
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
        let mut found: Vec<(Vec<Value>, RowBuf)> = Vec::new();
        self.rows(table, &plan.access, env, &mut |_, row| {
            let env = env.with_row(Row::Stored(&table.layout, row.bytes()));
            let passes = match &plan.filter {
                Some(filter) => filter.holds(&env)?,
                None => true,
            };
            if passes {
                let keys = owned(plan.sort.iter().map(|key| &key.expr), &env)?;
                found.push((keys, row.clone()));
            }
            Ok(true)
        })?;
        found.sort_by(|(a, _), (b, _)| compare_keys(&plan.sort, a, b));
        let (mut seen, mut given) = (0u64, 0u64);
        for (_, mut row) in found {
            if given == limit {
                break;
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
        self.filtered(plan, table, env, &mut |env| {
            for (aggregate, sum) in aggregates.iter().zip(&mut sums) {
                aggregate.add(sum, env)?;
            }
            Ok(!plan.first_only)
        })?;
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
        limit: u64,
        offset: u64,
        each: Each<'_>,
    ) -> Result<u64> {
        let mut found: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        self.filtered(plan, table, env, &mut |env| {
            let keys = owned(plan.sort.iter().map(|key| &key.expr), env)?;
            found.push((keys, owned(plan.output.exprs.iter(), env)?));
            Ok(true)
        })?;
        found.sort_by(|(a, _), (b, _)| compare_keys(&plan.sort, a, b));
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let take = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut given = 0;
        for (_, row) in found.iter().skip(skip).take(take) {
            let row: Vec<_> = row.iter().map(Value::as_datum).collect();
            given += 1;
            if !each(&row)? {
                break;
            }
        }
        Ok(given)
    }

    /// Calls a function for every row of an access path.
    pub(super) fn rows(
        &mut self,
        table: &Arc<TableDef>,
        access: &Access,
        env: &Env<'_>,
        each: EachRow<'_>,
    ) -> Result<()> {
        let mut row = std::mem::take(&mut self.scratch.row);
        let result = match access {
            Access::Nothing => Ok(()),
            Access::Point { index, key: parts } => {
                self.point(table, index, parts, env, &mut row, each)
            }
            Access::Range(range) => self.range(table, range, env, &mut row, each),
            Access::Heap => self.heap_rows(table, &mut row, each),
        };
        self.scratch.row = row;
        result
    }

    fn point(
        &mut self,
        table: &Arc<TableDef>,
        index: &Arc<millpond_engine::catalog::IndexDef>,
        parts: &[crate::plan::KeyPart],
        env: &Env<'_>,
        row: &mut RowBuf,
        each: EachRow<'_>,
    ) -> Result<()> {
        if self.session.may_see_keys_twice() {
            return self.rows_of_key(table, index, parts, env, row, each);
        }
        let values = key::values(parts, env)?;
        let Some(key) = key::exact(parts, &values) else { return Ok(()) };
        if self.session.lookup(table, index, &key, row)? {
            each(self, row)?;
        }
        Ok(())
    }

    /// All rows that have a key which should be one row's: see [`Session::may_see_keys_twice`].
    ///
    /// [`Session::may_see_keys_twice`]: millpond_engine::Session::may_see_keys_twice
    #[cold]
    fn rows_of_key(
        &mut self,
        table: &Arc<TableDef>,
        index: &Arc<millpond_engine::catalog::IndexDef>,
        parts: &[crate::plan::KeyPart],
        env: &Env<'_>,
        row: &mut RowBuf,
        each: EachRow<'_>,
    ) -> Result<()> {
        // They might be changed, and what has changed one row can't be taken back.
        self.need_wait()?;
        let plan = IndexRange {
            index: Arc::clone(index),
            equal: parts.to_vec(),
            list: None,
            from: None,
            to: None,
            direction: Direction::Forward,
        };
        self.range(table, &plan, env, row, each)
    }

    fn range(
        &mut self,
        table: &Arc<TableDef>,
        plan: &IndexRange,
        env: &Env<'_>,
        row: &mut RowBuf,
        each: EachRow<'_>,
    ) -> Result<()> {
        let mut range = std::mem::take(&mut self.scratch.range);
        let mut left = MAX_ROWS_UNWAITING;
        let result = match &plan.list {
            None => match key::range(plan, env, &mut range) {
                Ok(true) => self.one_range(table, plan, &range, row, &mut left, each).map(|_| ()),
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            },
            Some(list) => self.list(table, plan, list, env, &mut range, row, &mut left, each),
        };
        self.scratch.range = range;
        result
    }

    #[allow(clippy::too_many_arguments, reason = "the state of one scan")]
    fn list(
        &mut self,
        table: &Arc<TableDef>,
        plan: &IndexRange,
        list: &[crate::plan::KeyPart],
        env: &Env<'_>,
        range: &mut millpond_engine::table::KeyRange,
        row: &mut RowBuf,
        left: &mut usize,
        each: EachRow<'_>,
    ) -> Result<()> {
        let equal_values = key::values(&plan.equal, env)?;
        let list_values = key::values(list, env)?;
        let Some(mut equal) = key::exact(&plan.equal, &equal_values) else { return Ok(()) };
        let descending = plan.direction == Direction::Backward;
        for value in key::list(list, &list_values, descending) {
            equal.push(value);
            key::prefix(plan, &equal, range)?;
            equal.pop();
            if !self.one_range(table, plan, range, row, left, each)? {
                break;
            }
        }
        Ok(())
    }

    fn one_range(
        &mut self,
        table: &Arc<TableDef>,
        plan: &IndexRange,
        range: &millpond_engine::table::KeyRange,
        row: &mut RowBuf,
        left: &mut usize,
        each: EachRow<'_>,
    ) -> Result<bool> {
        let mut scan = std::mem::take(&mut self.scratch.scan);
        let mut run = || -> Result<bool> {
            self.session.start_index_scan(table, &plan.index, range, plan.direction, &mut scan)?;
            while scan.next(self.session, row)? {
                if !self.may_wait() {
                    *left = left.checked_sub(1).ok_or_else(would_block)?;
                }
                if !each(self, row)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let result = run();
        self.scratch.scan = scan;
        result
    }

    /// All rows of a table, each copied before it is looked at, so that the table can be changed meanwhile.
    fn heap_rows(
        &mut self,
        table: &Arc<TableDef>,
        row: &mut RowBuf,
        each: EachRow<'_>,
    ) -> Result<()> {
        self.check_heap_size(table)?;
        let mut scan = self.session.heap_scan(table)?;
        let mut page: Vec<(Tid, usize)> = Vec::new();
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            page.clear();
            bytes.clear();
            let more = scan.next_page(self.session, &mut |tid, tuple| {
                bytes.extend_from_slice(tuple);
                page.push((tid, bytes.len()));
                Ok(())
            })?;
            let mut start = 0;
            for (tid, end) in &page {
                row.set(*tid, &bytes[start..*end]);
                start = *end;
                if !each(self, row)? {
                    return Ok(());
                }
            }
            if !more {
                return Ok(());
            }
            self.session.check_cancel()?;
        }
    }

    /// All rows of a table, in place.
    pub(super) fn scan_heap(
        &mut self,
        table: &Arc<TableDef>,
        each: &mut dyn FnMut(Tid, &[u8]) -> Result<bool>,
    ) -> Result<()> {
        self.check_heap_size(table)?;
        let mut scan = self.session.heap_scan(table)?;
        let mut outcome: Result<bool> = Ok(true);
        loop {
            let more = scan.next_page(self.session, &mut |tid, tuple| {
                if let Ok(true) = outcome {
                    outcome = each(tid, tuple);
                }
                Ok(())
            })?;
            match outcome {
                Ok(true) if more => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error),
            }
            self.session.check_cancel()?;
        }
    }

    fn check_heap_size(&self, table: &TableDef) -> Result<()> {
        if self.may_wait() || self.session.block_count(table)? <= MAX_BLOCKS_UNWAITING {
            return Ok(());
        }
        Err(would_block())
    }

    pub(super) fn external(
        &mut self,
        plan: &ExternalPlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        self.need_wait()?;
        let scanner = self.scanner(plan)?;
        let mut count = 0;
        plan.run(scanner, params, &mut self.locker(), &mut |row| {
            count += 1;
            each(row)
        })?;
        Ok(count)
    }

    /// What the query engine's functions lock by.
    pub(super) fn locker(&self) -> impl FnMut(Advisory, Key) -> Result<Value> + use<'_> {
        let (session, notices) = (self.session, self.facts.notices);
        move |function, key| function.call(session, key, notices)
    }

    /// What the query engine reads a plan's tables through.
    pub(crate) fn scanner(&mut self, plan: &ExternalPlan) -> Result<Arc<Scanner>> {
        for table in plan.tables() {
            self.session.lock_table(table, LockMode::AccessShare)?;
        }
        Ok(Arc::new(Scanner::new(self.session, plan.tables(), self.cancel.clone(), (self.info)())?))
    }
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

fn owned<'e>(
    exprs: impl Iterator<Item = &'e crate::expr::Expr>,
    env: &Env<'_>,
) -> Result<Vec<Value>> {
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
