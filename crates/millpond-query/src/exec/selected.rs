//! INSERT, UPDATE and DELETE of what a query gives.
//!
//! The query runs while its rows are changed: what the statement itself has stored is not visible
//! to it. A row that the query gives more than once is changed once.

use std::sync::Arc;

use millpond_engine::EngineError;
use millpond_engine::access::Tid;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::Session;
use millpond_engine::table::{RowBatch, RowBuf, RowOutcome, TableError};

use super::insert::{Vals, add_to_batch, with_row_detail};
use super::{Datums, Each, Exec, damaged, emit_exprs};
use crate::analyze::tree::Slot;
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Val};
use crate::plan::query::node::{Modify, RowChange};
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
        let mut changes = Changes {
            session: self.session,
            table: &plan.table,
            target: selected.target,
            set: plan.set.as_deref(),
            recheck: selected.recheck.as_ref(),
            returning: plan.returning.as_ref().map(|output| output.exprs.as_slice()),
            goes_on: self.goes_on(selected),
            old: Vec::new(),
            each,
            count: 0,
        };
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
        let mut inserts = Inserts {
            session: self.session,
            table: &plan.table,
            target: selected.target,
            exprs,
            returning: plan.returning.as_ref().map(|output| output.exprs.as_slice()),
            is_only: selected.can_begin_unwaiting,
            goes_on: self.goes_on(selected),
            each,
            batch: RowBatch::new(),
            unreturned: Vec::new(),
            count: 0,
        };
        self.with_work(params, |_, work| run::consume(&selected.plan, params, work, &mut inserts))?;
        Ok(inserts.count)
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

/// Runs a query of WITH that changes rows. `next` brings its next row into the slots; `each` takes
/// what it returns.
pub(crate) fn modify(
    modify: &Modify,
    cx: &mut Context<'_>,
    next: &mut dyn FnMut(&mut Context<'_>) -> Result<bool>,
    each: Each<'_>,
) -> Result<()> {
    let (session, table, target) = (cx.work().session()?, &modify.table, modify.target);
    let returning = modify.returned.as_deref();
    let (mut inserts, mut changes);
    let set = match &modify.change {
        RowChange::Insert(exprs) => {
            let (batch, unreturned) = (RowBatch::new(), Vec::new());
            let (is_only, goes_on, count) = (false, true, 0);
            inserts = Inserts {
                session,
                table,
                target,
                exprs,
                returning,
                is_only,
                goes_on,
                each,
                batch,
                unreturned,
                count,
            };
            return consume(&mut inserts, cx, next);
        }
        RowChange::Update(set) => Some(set.as_slice()),
        RowChange::Delete => None,
    };
    let (recheck, old) = (modify.recheck.as_ref(), Vec::new());
    let (goes_on, count) = (true, 0);
    changes =
        Changes { session, table, target, set, recheck, returning, goes_on, old, each, count };
    consume(&mut changes, cx, next)
}

fn consume(
    consumer: &mut dyn Consumer,
    cx: &mut Context<'_>,
    next: &mut dyn FnMut(&mut Context<'_>) -> Result<bool>,
) -> Result<()> {
    while next(cx)? && consumer.row(cx)? {}
    consumer.end(cx)
}

/// The values of a row.
fn values<'v>(exprs: &'v [Expr], cx: &'v Context<'_>) -> Result<Vals<'v>> {
    exprs.iter().map(|e| e.eval(&cx.env())).collect()
}

/// A statement that inserts the rows of a query.
struct Inserts<'i, 'e> {
    session: &'i Session,
    table: &'i Arc<TableDef>,
    target: Slot,
    exprs: &'i [Expr],
    returning: Option<&'i [Expr]>,
    /// There is one row at most.
    is_only: bool,
    goes_on: bool,
    each: Each<'e>,
    /// Rows that are still to be stored.
    batch: RowBatch,
    /// The bytes of those of them that RETURNING is about.
    unreturned: Vec<Vec<u8>>,
    count: u64,
}

impl Consumer for Inserts<'_, '_> {
    fn row(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        self.count += 1;
        let values = values(self.exprs, cx)?;
        let row: Datums<'_> = values.iter().map(Val::datum).collect();
        if self.is_only {
            let stored = self.session.insert(self.table, &row);
            let tid = stored.map_err(|error| with_row_detail(error, &row))?;
            if let Some(returning) = self.returning {
                let stored = stored_row(self.table, tid, &row)?;
                drop(row);
                drop(values);
                cx.set(self.target, SlotRow::Stored(stored))?;
                emit_exprs(returning, &cx.env(), self.each)?;
            }
            return Ok(self.goes_on);
        }
        add_to_batch(self.session, self.table, &row, &mut self.batch)?;
        if self.returning.is_some() {
            self.unreturned.push(encoded(self.table, &row)?);
        }
        drop(row);
        drop(values);
        if self.batch.is_empty() {
            self.give(cx)?;
        }
        Ok(self.goes_on)
    }

    fn end(&mut self, cx: &mut Context<'_>) -> Result<()> {
        if !self.batch.is_empty() {
            self.session.insert_batch(self.table, &mut self.batch)?;
        }
        self.give(cx)
    }
}

impl Inserts<'_, '_> {
    /// What RETURNING says of rows that have been stored now.
    fn give(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let Some(returning) = self.returning else { return Ok(()) };
        for (bytes, tid) in self.unreturned.drain(..).zip(self.batch.stored()) {
            let mut stored = RowBuf::new();
            stored.set(*tid, &bytes);
            cx.set(self.target, SlotRow::Stored(stored))?;
            emit_exprs(returning, &cx.env(), self.each)?;
        }
        Ok(())
    }
}

/// The bytes of a row of these values.
fn encoded(table: &TableDef, values: &[Datum<'_>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    table.layout.encode(values, &mut bytes).map_err(TableError::from).map_err(EngineError::from)?;
    Ok(bytes)
}

/// A row of these values that is at a place.
fn stored_row(table: &TableDef, tid: Tid, values: &[Datum<'_>]) -> Result<RowBuf> {
    let mut row = RowBuf::new();
    row.set(tid, &encoded(table, values)?);
    Ok(row)
}

/// A statement that updates or deletes the rows of a query.
struct Changes<'c, 'e> {
    session: &'c Session,
    table: &'c Arc<TableDef>,
    target: Slot,
    /// Columns with their new values; `None`: delete.
    set: Option<&'c [(usize, Expr)]>,
    recheck: Option<&'c Expr>,
    returning: Option<&'c [Expr]>,
    goes_on: bool,
    /// The bytes of the row that is being updated.
    old: Vec<u8>,
    each: Each<'e>,
    count: u64,
}

impl Consumer for Changes<'_, '_> {
    /// Changes the row that the query has found.
    fn row(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let target = self.target;
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
                RowOutcome::Changed if cx.holds(self.recheck)? => {}
                RowOutcome::Changed => {
                    self.session.end_turn();
                    return Ok(false);
                }
            }
        }
    }

    fn try_change(&mut self, cx: &mut Context<'_>) -> Result<RowOutcome> {
        let (target, table) = (self.target, self.table);
        let Some(set) = self.set else {
            let mut row = cx.take_stored(target)?;
            let outcome = self.session.delete(table, &mut row);
            cx.set(target, SlotRow::Stored(row))?;
            let outcome = outcome?;
            if let (RowOutcome::Done(_), Some(returning)) = (outcome, self.returning) {
                emit_exprs(returning, &cx.env(), self.each)?;
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
        if let (RowOutcome::Done(tid), Some(returning)) = (outcome, self.returning) {
            cx.set(target, SlotRow::Stored(stored_row(table, tid, &new)?))?;
            emit_exprs(returning, &cx.env(), self.each)?;
        }
        Ok(outcome)
    }
}
