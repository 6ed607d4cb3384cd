//! UPDATE and DELETE of the rows of one access path.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::{RowBuf, RowOutcome};

use super::insert::{Vals, with_row_detail};
use super::{Datums, Each, Exec, damaged, emit, passes};
use crate::Value;
use crate::error::Result;
use crate::expr::{Env, Expr, Row};
use crate::plan::{Access, ChangePlan, Target};
use crate::run::Folded;

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
                let env = Env { row: Row::None, params, facts: self.facts, subplans: None };
                self.begin_change(&plan.table, access)?;
                let mut old = std::mem::take(&mut self.scratch.old);
                let (mut count, mut folded) = (0, Folded::default());
                let result =
                    self.rows(&plan.table, (access, usize::MAX), &env, &mut |exec, row| {
                        let filter = folded.of_env(filter.as_ref(), &env)?;
                        if passes(filter, &plan.table, row.bytes(), &env)?
                            && exec.change_found(
                                plan,
                                condition.as_ref(),
                                &env,
                                row,
                                &mut old,
                                each,
                            )?
                        {
                            count += 1;
                        }
                        Ok(true)
                    });
                self.scratch.old = old;
                result.map(|()| count)
            }
            Target::Selected(selected) => self.change_selected(plan, selected, params, each),
        }
    }

    /// Changes a row as it is, or, in READ COMMITTED, as it has become meanwhile if it still meets
    /// the condition.
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
            match self.change_row(plan, env, row, old, each)? {
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

    /// Deletes a row, or stores it with new values, computed from the row itself. Once that is
    /// done, RETURNING sees the row that is gone or the one that is new.
    fn change_row(
        &mut self,
        plan: &ChangePlan,
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
        let from = env.with_row(Row::Stored(&table.layout, old));
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

    /// A change of more than one row needs permission to wait, because it can't be taken back half
    /// done.
    fn begin_change(&mut self, table: &Arc<TableDef>, access: &Access) -> Result<()> {
        if !matches!(access, Access::Point { .. }) {
            self.need_wait()?;
        }
        self.session.lock_table(table, LockMode::RowExclusive)?;
        Ok(())
    }
}
