//! Changing rows: INSERT, UPDATE, DELETE.

use std::sync::Arc;

use millpond_engine::EngineError;
use millpond_engine::access::Tid;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::{RowBatch, RowBuf, RowOutcome, TableError};
use smallvec::SmallVec;

use super::{Datums, Each, Exec, damaged, emit};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Expr, Row, Val, cast};
use crate::plan::{Access, DeletePlan, InsertPlan, InsertSource, ModifyPlan, Output, UpdatePlan};
use crate::{Datum, Value};

/// A good size for a batch of rows.
const BATCH_BYTES: usize = 64 << 10;

type Vals<'a> = SmallVec<[Val<'a>; 8]>;

/// Adds PostgreSQL's detail to a not-null violation: the row that failed.
#[cold]
pub(crate) fn with_row_detail(error: EngineError, row: &[Datum<'_>]) -> SqlError {
    let not_null = matches!(&error, EngineError::Table(TableError::NotNull { .. }));
    let error = SqlError::from(error);
    if !not_null {
        return error;
    }
    let shown: Vec<String> = row
        .iter()
        .map(|datum| match datum {
            Datum::Null => "null".to_owned(),
            Datum::Bool(b) => if *b { "t" } else { "f" }.to_owned(),
            datum => cast::to_text(datum),
        })
        .collect();
    error.detail(format!("Failing row contains ({}).", shown.join(", ")))
}

impl Exec<'_> {
    pub(super) fn insert(
        &mut self,
        plan: &InsertPlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        self.wait_for_returning(plan.returning.as_ref())?;
        let env = Env { row: Row::None, params, facts: self.facts };
        match &plan.source {
            InsertSource::Values(rows) => {
                let single = rows.len() == 1;
                if !single {
                    self.need_wait()?;
                }
                self.session.lock_table(&plan.table, LockMode::RowExclusive)?;
                if single || plan.returning.is_some() {
                    for exprs in rows {
                        self.insert_row(plan, exprs, &env, each)?;
                    }
                } else {
                    self.insert_rows(plan, rows, &env)?;
                }
                Ok(rows.len() as u64)
            }
            InsertSource::Query(query, exprs) => {
                self.need_wait()?;
                self.session.lock_table(&plan.table, LockMode::RowExclusive)?;
                self.insert_query(plan, query, exprs, params, each)
            }
        }
    }

    fn insert_row(
        &mut self,
        plan: &InsertPlan,
        exprs: &[Expr],
        env: &Env<'_>,
        each: Each<'_>,
    ) -> Result<()> {
        let values = exprs.iter().map(|e| e.eval(env)).collect::<Result<Vals<'_>>>()?;
        let row: Datums<'_> = values.iter().map(Val::datum).collect();
        self.session.insert(&plan.table, &row).map_err(|error| with_row_detail(error, &row))?;
        if let Some(returning) = &plan.returning {
            emit(returning, &env.with_row(Row::Datums(&row)), each)?;
        }
        Ok(())
    }

    fn insert_rows(&mut self, plan: &InsertPlan, rows: &[Vec<Expr>], env: &Env<'_>) -> Result<()> {
        let mut batch = RowBatch::new();
        for exprs in rows {
            let values = exprs.iter().map(|e| e.eval(env)).collect::<Result<Vals<'_>>>()?;
            let row: Datums<'_> = values.iter().map(Val::datum).collect();
            self.add_to_batch(&plan.table, &row, &mut batch)?;
        }
        self.session.insert_batch(&plan.table, &mut batch)?;
        Ok(())
    }

    /// Adds a row to a batch, and stores the batch when it is large enough.
    pub(crate) fn add_to_batch(
        &mut self,
        table: &TableDef,
        row: &[Datum<'_>],
        batch: &mut RowBatch,
    ) -> Result<()> {
        self.session
            .add_to_batch(table, row, batch)
            .map_err(|error| with_row_detail(error, row))?;
        if batch.byte_len() >= BATCH_BYTES {
            self.session.insert_batch(table, batch)?;
        }
        Ok(())
    }

    fn insert_query(
        &mut self,
        plan: &InsertPlan,
        query: &crate::plan::Planned,
        exprs: &[Expr],
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        // The whole result first: what is inserted must not be read by the query that it comes from.
        let mut found: Vec<Vec<Value>> = Vec::new();
        self.run_each(query, params, &mut |row| {
            found.push(row.iter().map(Datum::to_value).collect());
            Ok(true)
        })?;
        let env = Env { row: Row::None, params, facts: self.facts };
        let mut batch = RowBatch::new();
        for source in &found {
            let source: Vec<Datum<'_>> = source.iter().map(Value::as_datum).collect();
            let env = env.with_row(Row::Datums(&source));
            let values = exprs.iter().map(|e| e.eval(&env)).collect::<Result<Vals<'_>>>()?;
            let row: Datums<'_> = values.iter().map(Val::datum).collect();
            match &plan.returning {
                None => self.add_to_batch(&plan.table, &row, &mut batch)?,
                Some(returning) => {
                    self.session
                        .insert(&plan.table, &row)
                        .map_err(|error| with_row_detail(error, &row))?;
                    emit(returning, &env.with_row(Row::Datums(&row)), each)?;
                }
            }
        }
        if !batch.is_empty() {
            self.session.insert_batch(&plan.table, &mut batch)?;
        }
        Ok(found.len() as u64)
    }

    pub(super) fn update(
        &mut self,
        plan: &UpdatePlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        let env = Env { row: Row::None, params, facts: self.facts };
        self.wait_for_returning(plan.returning.as_ref())?;
        self.begin_change(&plan.table, &plan.access)?;
        let mut old = std::mem::take(&mut self.scratch.old);
        let mut count = 0;
        let result = self.rows(&plan.table, &plan.access, &env, &mut |exec, row| {
            if passes(plan.filter.as_ref(), &plan.table, row, &env)?
                && exec.update_row(plan, &env, row, &mut old, each)?
            {
                count += 1;
            }
            Ok(true)
        });
        self.scratch.old = old;
        result.map(|()| count)
    }

    fn update_row(
        &mut self,
        plan: &UpdatePlan,
        env: &Env<'_>,
        row: &mut RowBuf,
        old: &mut Vec<u8>,
        each: Each<'_>,
    ) -> Result<bool> {
        let table = &plan.table;
        loop {
            // The new values borrow from a copy, because the engine may replace the row's bytes.
            old.clear();
            old.extend_from_slice(row.bytes());
            let env = env.with_row(Row::Stored(&table.layout, old));
            let values =
                plan.set.iter().map(|(_, e)| e.eval(&env)).collect::<Result<Vals<'_>>>()?;
            let mut new = Datums::with_capacity(table.columns.len());
            table.layout.decode(old, |_, datum| new.push(datum)).map_err(damaged)?;
            for ((column, _), value) in plan.set.iter().zip(&values) {
                if let Some(slot) = new.get_mut(*column) {
                    *slot = value.datum();
                }
            }
            let outcome = self
                .session
                .update(table, row, &new)
                .map_err(|error| with_row_detail(error, &new))?;
            match outcome {
                RowOutcome::Done(_) => {
                    if let Some(returning) = &plan.returning {
                        emit(returning, &env.with_row(Row::Datums(&new)), each)?;
                    }
                    return Ok(true);
                }
                RowOutcome::Gone => return Ok(false),
                RowOutcome::Changed => {
                    if !passes(plan.condition.as_ref(), table, row, &env)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    pub(super) fn delete(
        &mut self,
        plan: &DeletePlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        let env = Env { row: Row::None, params, facts: self.facts };
        self.wait_for_returning(plan.returning.as_ref())?;
        self.begin_change(&plan.table, &plan.access)?;
        let mut count = 0;
        self.rows(&plan.table, &plan.access, &env, &mut |exec, row| {
            if passes(plan.filter.as_ref(), &plan.table, row, &env)?
                && exec.delete_row(plan, &env, row, each)?
            {
                count += 1;
            }
            Ok(true)
        })?;
        Ok(count)
    }

    fn delete_row(
        &mut self,
        plan: &DeletePlan,
        env: &Env<'_>,
        row: &mut RowBuf,
        each: Each<'_>,
    ) -> Result<bool> {
        loop {
            match self.session.delete(&plan.table, row)? {
                RowOutcome::Done(_) => {
                    if let Some(returning) = &plan.returning {
                        let env = env.with_row(Row::Stored(&plan.table.layout, row.bytes()));
                        emit(returning, &env, each)?;
                    }
                    return Ok(true);
                }
                RowOutcome::Gone => return Ok(false),
                RowOutcome::Changed => {
                    if !passes(plan.condition.as_ref(), &plan.table, row, env)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    pub(super) fn modify(
        &mut self,
        plan: &ModifyPlan,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        self.need_wait()?;
        self.session.lock_table(&plan.table, LockMode::RowExclusive)?;
        // All rows first: what is changed must not be read by the query that selects it.
        let mut found: Vec<(Tid, Vec<Value>)> = Vec::new();
        self.external(&plan.query, params, &mut |row| {
            if let Some(Datum::Int8(place)) = row.first() {
                let values = row.iter().map(Datum::to_value).collect();
                found.push((Tid::from_u64(*place as u64), values));
            }
            Ok(true)
        })?;
        let env = Env { row: Row::None, params, facts: self.facts };
        let mut row = std::mem::take(&mut self.scratch.row);
        let mut count = 0;
        let mut result = Ok(());
        for (tid, values) in &found {
            match self.modify_row(plan, &env, *tid, values, &mut row, each) {
                Ok(changed) => count += u64::from(changed),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.scratch.row = row;
        result.map(|()| count)
    }

    fn modify_row(
        &mut self,
        plan: &ModifyPlan,
        env: &Env<'_>,
        tid: Tid,
        selected: &[Value],
        row: &mut RowBuf,
        each: Each<'_>,
    ) -> Result<bool> {
        let table = &plan.table;
        if !self.session.fetch(table, tid, row)? {
            return Ok(false);
        }
        let old = row.bytes().to_vec();
        let selected: Vec<Datum<'_>> = selected.iter().map(Value::as_datum).collect();
        let from = env.with_row(Row::Datums(&selected));
        let mut values = Vals::new();
        for (_, e) in plan.set.iter().flatten() {
            values.push(e.eval(&from)?);
        }
        let mut new = Datums::with_capacity(table.columns.len());
        table.layout.decode(&old, |_, datum| new.push(datum)).map_err(damaged)?;
        for ((column, _), value) in plan.set.iter().flatten().zip(&values) {
            if let Some(slot) = new.get_mut(*column) {
                *slot = value.datum();
            }
        }
        let outcome = match &plan.set {
            Some(_) => self
                .session
                .update(table, row, &new)
                .map_err(|error| with_row_detail(error, &new))?,
            None => self.session.delete(table, row)?,
        };
        match outcome {
            RowOutcome::Done(_) => {
                if let Some(returning) = &plan.returning {
                    emit(returning, &env.with_row(Row::Datums(&new)), each)?;
                }
                Ok(true)
            }
            RowOutcome::Gone => Ok(false),
            RowOutcome::Changed => Err(SqlError::new(
                SqlState::SERIALIZATION_FAILURE,
                "could not serialize access due to concurrent update",
            )
            .hint("The statement selects its rows by a query; repeat it.")),
        }
    }

    /// What RETURNING computes comes after the change, which can't be taken back any more.
    fn wait_for_returning(&self, returning: Option<&Output>) -> Result<()> {
        if returning.is_some_and(|output| output.waits) { self.need_wait() } else { Ok(()) }
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

fn passes(condition: Option<&Expr>, table: &TableDef, row: &RowBuf, env: &Env<'_>) -> Result<bool> {
    match condition {
        None => Ok(true),
        Some(condition) => condition.holds(&env.with_row(Row::Stored(&table.layout, row.bytes()))),
    }
}
