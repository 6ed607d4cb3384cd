//! INSERT, UPDATE and DELETE of what a query gives.
//!
//! The query runs while its rows are changed: what the statement itself has stored is not visible
//! to it. A row that the query gives more than once is changed once.

use millpond_engine::lmgr::LockMode;
use millpond_engine::session::Session;
use millpond_engine::table::{RowBatch, RowBuf, RowOutcome};

use super::insert::{Vals, with_row_detail};
use super::{Datums, Each, Exec, damaged, emit};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Val};
use crate::plan::{ChangePlan, InsertPlan, Selected};
use crate::run::{self, Consumer, Context, SlotRow};
use crate::{Datum, Value};

impl Exec<'_> {
    /// Updates or deletes the rows of a query.
    pub(super) fn change_selected(
        &mut self,
        plan: &ChangePlan,
        selected: &Selected,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        self.begin_selected(selected)?;
        self.session.lock_table(&plan.table, LockMode::RowExclusive)?;
        self.lock_tables(&selected.plan)?;
        let goes_on = self.goes_on(selected);
        let (session, old) = (self.session, Vec::new());
        let mut changes = Changes { session, plan, selected, goes_on, old, each, count: 0 };
        self.with_work(params, |_, work| run::consume(&selected.plan, params, work, &mut changes))?;
        Ok(changes.count)
    }

    /// Inserts the rows of a query.
    pub(super) fn insert_selected(
        &mut self,
        plan: &InsertPlan,
        selected: &Selected,
        exprs: &[Expr],
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        self.begin_selected(selected)?;
        self.session.lock_table(&plan.table, LockMode::RowExclusive)?;
        self.lock_tables(&selected.plan)?;
        let (batch, unreturned) = (RowBatch::new(), Vec::new());
        self.with_work(params, |exec, work| {
            let mut inserts =
                Inserts { exec, plan, selected, exprs, each, batch, unreturned, count: 0 };
            run::consume(&selected.plan, params, work, &mut inserts)?;
            Ok(inserts.count)
        })
    }

    /// A change of more than one row needs permission to wait, because it can't be taken back half
    /// done.
    fn begin_selected(&self, selected: &Selected) -> Result<()> {
        if selected.can_begin_unwaiting && !selected.plan.waits {
            return Ok(());
        }
        self.need_wait()
    }

    /// Whether to look for another row after the first. Where the statement must not wait, its
    /// row is the only one. Elsewhere even a unique key may have two rows:
    /// [`Session::may_see_keys_twice`].
    fn goes_on(&self, selected: &Selected) -> bool {
        self.may_wait() || !selected.can_begin_unwaiting
    }
}

/// The values of a row.
fn values<'v>(exprs: &'v [Expr], cx: &'v Context<'_>) -> Result<Vals<'v>> {
    exprs.iter().map(|e| e.eval(&cx.env())).collect()
}

/// A statement that inserts the rows of a query.
struct Inserts<'i, 'e> {
    exec: &'i Exec<'i>,
    plan: &'i InsertPlan,
    selected: &'i Selected,
    exprs: &'i [Expr],
    each: Each<'e>,
    /// Rows that are still to be stored.
    batch: RowBatch,
    /// Those of them that RETURNING is about.
    unreturned: Vec<Vec<Value>>,
    count: u64,
}

impl Consumer for Inserts<'_, '_> {
    fn row(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        self.count += 1;
        let table = &self.plan.table;
        let is_only = self.selected.can_begin_unwaiting;
        let values = values(self.exprs, cx)?;
        let row: Datums<'_> = values.iter().map(Val::datum).collect();
        if self.plan.returning.is_some() {
            self.unreturned.push(row.iter().map(Datum::to_value).collect());
        }
        if is_only {
            let stored = self.exec.session.insert(table, &row);
            stored.map_err(|error| with_row_detail(error, &row))?;
        } else {
            self.exec.add_to_batch(table, &row, &mut self.batch)?;
        }
        drop(row);
        drop(values);
        if self.batch.is_empty() {
            self.give(cx)?;
        }
        Ok(self.exec.goes_on(self.selected))
    }

    fn end(&mut self, cx: &mut Context<'_>) -> Result<()> {
        if !self.batch.is_empty() {
            self.exec.session.insert_batch(&self.plan.table, &mut self.batch)?;
        }
        self.give(cx)
    }
}

impl Inserts<'_, '_> {
    /// What RETURNING says of rows that have been stored now.
    fn give(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let Some(returning) = &self.plan.returning else { return Ok(()) };
        for stored in self.unreturned.drain(..) {
            cx.set(self.selected.target, SlotRow::Values(stored))?;
            emit(returning, &cx.env(), self.each)?;
        }
        Ok(())
    }
}

/// A statement that updates or deletes the rows of a query.
struct Changes<'c, 'e> {
    session: &'c Session,
    plan: &'c ChangePlan,
    selected: &'c Selected,
    goes_on: bool,
    /// The bytes of the row that is being updated.
    old: Vec<u8>,
    each: Each<'e>,
    count: u64,
}

impl Consumer for Changes<'_, '_> {
    /// Changes the row that the query has found.
    fn row(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let target = self.selected.target;
        let mut found = RowBuf::default();
        match cx.row_mut(target)? {
            SlotRow::Stored(row) => {
                let tid = row.tid().ok_or_else(|| SqlError::internal("a row without a place"))?;
                found.set(tid, row.bytes());
            }
            _ => return Err(SqlError::internal("a row of no table is to be changed")),
        }
        if self.change_newest(cx)? {
            self.count += 1;
        }
        // A join goes on with the row as it was found.
        cx.set(target, SlotRow::Stored(found))?;
        Ok(self.goes_on)
    }
}

impl Changes<'_, '_> {
    /// Changes a row as it is, or, in READ COMMITTED, as it has become meanwhile if it still meets
    /// the condition.
    fn change_newest(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            match self.try_change(cx)? {
                RowOutcome::Done(_) => return Ok(true),
                RowOutcome::Gone => return Ok(false),
                RowOutcome::Changed if cx.holds(self.selected.recheck.as_ref())? => {}
                RowOutcome::Changed => {
                    self.session.end_turn();
                    return Ok(false);
                }
            }
        }
    }

    fn try_change(&mut self, cx: &mut Context<'_>) -> Result<RowOutcome> {
        let (target, table) = (self.selected.target, &self.plan.table);
        let Some(set) = &self.plan.set else {
            let mut row = cx.take_stored(target)?;
            let outcome = self.session.delete(table, &mut row);
            cx.set(target, SlotRow::Stored(row))?;
            let outcome = outcome?;
            if let (RowOutcome::Done(_), Some(returning)) = (outcome, &self.plan.returning) {
                emit(returning, &cx.env(), self.each)?;
            }
            return Ok(outcome);
        };
        let mut computed = Vec::with_capacity(set.len());
        cx.values(set.iter().map(|(_, e)| e), &mut computed)?;
        let mut row = cx.take_stored(target)?;
        self.old.clear();
        self.old.extend_from_slice(row.bytes());
        let mut new = Datums::with_capacity(table.columns.len());
        table.layout.decode(&self.old, |_, datum| new.push(datum)).map_err(damaged)?;
        for ((column, _), value) in set.iter().zip(&computed) {
            if let Some(slot) = new.get_mut(*column) {
                *slot = value.as_datum();
            }
        }
        let outcome = self.session.update(table, &mut row, &new);
        cx.set(target, SlotRow::Stored(row))?;
        let outcome = outcome.map_err(|error| with_row_detail(error, &new))?;
        if let (RowOutcome::Done(_), Some(returning)) = (outcome, &self.plan.returning) {
            let stored = new.iter().map(Datum::to_value).collect();
            cx.set(target, SlotRow::Values(stored))?;
            emit(returning, &cx.env(), self.each)?;
        }
        Ok(outcome)
    }
}
