//! INSERT.

use millpond_engine::EngineError;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::Session;
use millpond_engine::table::{RowBatch, TableError};
use smallvec::SmallVec;

use super::{Datums, Each, Exec, emit};
use crate::error::{Result, SqlError};
use crate::expr::{Env, Expr, Row, Val, cast};
use crate::plan::{InsertPlan, InsertSource, Output};
use crate::{Datum, Value};

/// A good size for a batch of rows.
const BATCH_BYTES: usize = 64 << 10;

pub(super) type Vals<'a> = SmallVec<[Val<'a>; 8]>;

/// Adds PostgreSQL's detail to a not-null violation: the row that failed.
#[cold]
pub fn with_row_detail(error: EngineError, row: &[Datum<'_>]) -> SqlError {
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
        let env = Env { row: Row::None, params, facts: self.facts, subplans: None };
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
            InsertSource::Query(selected, exprs) => {
                self.insert_selected(plan, selected, exprs, params, each)
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
            add_to_batch(self.session, &plan.table, &row, &mut batch)?;
        }
        self.session.insert_batch(&plan.table, &mut batch)?;
        Ok(())
    }

    /// What RETURNING computes comes after the change, which can't be taken back any more.
    pub(super) fn wait_for_returning(&self, returning: Option<&Output>) -> Result<()> {
        if returning.is_some_and(|output| output.waits) { self.need_wait() } else { Ok(()) }
    }
}

/// Adds a row to a batch, and stores the batch when it is large enough.
pub(super) fn add_to_batch(
    session: &Session,
    table: &TableDef,
    row: &[Datum<'_>],
    batch: &mut RowBatch,
) -> Result<()> {
    session.add_to_batch(table, row, batch).map_err(|error| with_row_detail(error, row))?;
    if batch.byte_len() >= BATCH_BYTES {
        session.insert_batch(table, batch)?;
    }
    Ok(())
}
