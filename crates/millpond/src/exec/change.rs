//! UPDATE and DELETE.

use std::sync::Arc;

use millpond_engine::access::Tid;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::{RowBuf, RowOutcome};

use super::insert::{Vals, with_row_detail};
use super::{Datums, Each, Exec, Scanner, damaged, emit, passes};
use crate::error::Result;
use crate::expr::{Env, Expr, Row};
use crate::memory::Tuplestore;
use crate::plan::external::ExternalPlan;
use crate::plan::{Access, ChangePlan, Target};
use crate::{Datum, Value};

impl Exec<'_> {
    pub(super) fn change(
        &mut self,
        plan: &ChangePlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        self.wait_for_returning(plan.returning.as_ref())?;
        match &plan.rows {
            Target::Accessed { access, filter, condition } => {
                let env = Env { row: Row::None, params, facts: self.facts };
                self.begin_change(&plan.table, access)?;
                let mut old = std::mem::take(&mut self.scratch.old);
                let mut count = 0;
                let result = self.rows(&plan.table, access, &env, &mut |exec, row| {
                    if passes(filter.as_ref(), &plan.table, row.bytes(), &env)?
                        && exec.change_found(plan, condition.as_ref(), &env, row, &mut old, each)?
                    {
                        count += 1;
                    }
                    Ok(true)
                });
                self.scratch.old = old;
                result.map(|()| count)
            }
            Target::Selected(query) => self.change_selected(plan, query, params, each),
        }
    }

    /// Changes a row as it is, or, in READ COMMITTED, as it has become meanwhile if it still meets the condition.
    fn change_found(
        &mut self,
        plan: &ChangePlan,
        condition: Option<&Expr>,
        env: &Env<'_>,
        row: &mut RowBuf,
        old: &mut Vec<u8>,
        each: Each<'_>,
    ) -> Result<bool> {
        loop {
            match self.change_row(plan, None, env, row, old, each)? {
                RowOutcome::Done(_) => return Ok(true),
                RowOutcome::Gone => return Ok(false),
                RowOutcome::Changed if passes(condition, &plan.table, row.bytes(), env)? => {}
                RowOutcome::Changed => {
                    self.session.end_turn();
                    return Ok(false);
                }
            }
        }
    }

    fn change_selected(
        &mut self,
        plan: &ChangePlan,
        query: &ExternalPlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        self.need_wait()?;
        self.session.lock_table(&plan.table, LockMode::RowExclusive)?;
        let scanner = self.scanner(query)?;
        // All rows first: what is changed must not be read by the query that selects it.
        let mut found = Tuplestore::new(&self.resources(), "ModifyTable");
        let tables: Arc<Scanner> = Arc::clone(&scanner);
        query.run(tables, params, &mut self.locker(), &mut |row| {
            // A row without a place is of no row of the table.
            if matches!(row.first(), Some(Datum::Int8(_))) {
                found.push(row)?;
            }
            Ok(true)
        })?;
        let mut found = found.into_rows()?;
        // The row's place, its new values, and then the places of the rows that it was joined with.
        let computed = 1 + plan.set.as_ref().map_or(0, Vec::len);
        let env = Env { row: Row::None, params, facts: self.facts };
        let (mut row, mut old) = (RowBuf::default(), Vec::new());
        let mut count = 0;
        while let Some(selected) = found.next()? {
            let Some(Datum::Int8(place)) = selected.first() else { continue };
            let tid = Tid::from_u64(*place as u64);
            let mut values: Vec<Value> = selected.iter().map(Datum::to_value).collect();
            if !self.session.fetch(&plan.table, tid, &mut row)? {
                continue;
            }
            loop {
                let selected: Datums<'_> = values.iter().map(Value::as_datum).collect();
                match self.change_row(plan, Some(&selected), &env, &mut row, &mut old, each)? {
                    RowOutcome::Done(_) => count += 1,
                    RowOutcome::Gone => {}
                    RowOutcome::Changed => {
                        drop(selected);
                        let joined = values.split_off(computed.min(values.len()));
                        let newer = self.select_again(query, &scanner, params, &row, &joined)?;
                        if let Some(newer) = newer {
                            values = newer;
                            continue;
                        }
                        self.session.end_turn();
                    }
                }
                break;
            }
        }
        Ok(count)
    }

    /// Deletes a row, or stores it with new values, computed from what was selected with it or else from the row
    /// itself. Once that is done, RETURNING sees the row that is gone or the one that is new.
    fn change_row(
        &mut self,
        plan: &ChangePlan,
        selected: Option<&[Datum<'_>]>,
        env: &Env<'_>,
        row: &mut RowBuf,
        old: &mut Vec<u8>,
        each: Each<'_>,
    ) -> Result<RowOutcome> {
        let table = &plan.table;
        let Some(set) = &plan.set else {
            let outcome = self.session.delete(table, row)?;
            if let (RowOutcome::Done(_), Some(returning)) = (outcome, &plan.returning) {
                emit(returning, &env.with_row(Row::Stored(&table.layout, row.bytes())), each)?;
            }
            return Ok(outcome);
        };
        // The new values borrow from a copy, because the engine may replace the row's bytes.
        old.clear();
        old.extend_from_slice(row.bytes());
        let from = env.with_row(match selected {
            Some(selected) => Row::Datums(selected),
            None => Row::Stored(&table.layout, old),
        });
        let values = set.iter().map(|(_, e)| e.eval(&from)).collect::<Result<Vals<'_>>>()?;
        let mut new = Datums::with_capacity(table.columns.len());
        table.layout.decode(old, |_, datum| new.push(datum)).map_err(damaged)?;
        for ((column, _), value) in set.iter().zip(&values) {
            if let Some(slot) = new.get_mut(*column) {
                *slot = value.datum();
            }
        }
        let outcome =
            self.session.update(table, row, &new).map_err(|error| with_row_detail(error, &new))?;
        if let (RowOutcome::Done(_), Some(returning)) = (outcome, &plan.returning) {
            emit(returning, &env.with_row(Row::Datums(&new)), each)?;
        }
        Ok(outcome)
    }

    /// Asks the query again about a row that has become another meanwhile: what it selects with the newest version in the
    /// row's place, the only one in the table to be changed, all other tables as they were, and joined with the same rows.
    /// `None`: no longer that row.
    fn select_again(
        &self,
        query: &ExternalPlan,
        scanner: &Scanner,
        params: &[Value],
        row: &RowBuf,
        joined: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        let Some(tid) = row.tid() else { return Ok(None) };
        let mut found = None;
        let scanner = Arc::new(scanner.with_only(tid, row.bytes()));
        query.run(scanner, params, &mut self.locker(), &mut |row| {
            let values: Vec<Value> = row.iter().map(Datum::to_value).collect();
            if values.ends_with(joined) {
                found = Some(values);
            }
            Ok(found.is_none())
        })?;
        Ok(found)
    }

    /// A change of more than one row needs permission to wait, because it can't be taken back half done.
    fn begin_change(&mut self, table: &Arc<TableDef>, access: &Access) -> Result<()> {
        if !matches!(access, Access::Point { .. }) {
            self.need_wait()?;
        }
        self.session.lock_table(table, LockMode::RowExclusive)?;
        Ok(())
    }
}
