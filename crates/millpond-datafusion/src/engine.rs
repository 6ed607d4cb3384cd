//! The executor: one for a database.

use std::sync::Arc;

use datafusion_execution::config::SessionConfig;
use datafusion_physical_plan::{ExecutionPlan, displayable};
use millpond_query::plan::external::{Accelerator, Aggregation, Each, Outcome, average};
use millpond_query::query::TableScanner;
use millpond_query::{Result, SqlError};
use millpond_types::{Datum, Value};

use super::column::{Column, columns};
use super::errors::Failure;
use super::run::{BATCH_ROWS, Run};
use super::threads::QueryThreads;
use super::translate::{ResultColumn, Translation, translate};

/// Apache DataFusion.
pub struct DataFusion {
    config: SessionConfig,
    /// How many parts of a plan are computed side by side.
    parts: usize,
    threads: Arc<QueryThreads>,
}

impl std::fmt::Debug for DataFusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataFusion").finish_non_exhaustive()
    }
}

impl DataFusion {
    /// Sets it up, with at most `query_threads` threads for all queries together. Their priority is
    /// lower by that many steps of `nice`.
    pub fn new(niceness: i32, query_threads: usize) -> Self {
        let parts = std::thread::available_parallelism().map_or(1, usize::from);
        let config = SessionConfig::new().with_target_partitions(parts).with_batch_size(BATCH_ROWS);
        Self { config, parts, threads: QueryThreads::new(parts, query_threads, niceness) }
    }

    /// Whether something of a run that has ended is still computed.
    #[cfg(test)]
    pub fn is_computing(&self) -> bool {
        self.threads.computing() > 0
    }

    /// Starts a run of a plan that reads from `scanner`.
    pub(crate) fn start(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        scanner: Arc<dyn TableScanner>,
    ) -> Result<Run, Failure> {
        Run::start(&self.config, plan, self.threads.team()?, scanner)
    }

    fn try_run(
        &self,
        aggregation: &Aggregation<'_>,
        scanner: Arc<dyn TableScanner>,
        each: Each<'_>,
    ) -> Result<(), Failure> {
        let Translation { plan, types, results } = translate(aggregation, &scanner, self.parts)?;
        tracing::debug!("an aggregation by\n{}", displayable(plan.as_ref()).indent(false));
        let mut run = self.start(plan, scanner)?;
        while let Some(batch) = run.next_batch()? {
            let columns = columns(&types, &batch)?;
            for row in 0..batch.num_rows() {
                let values = results.iter().map(|result| value(result, &columns, row));
                let values = values.collect::<Result<Vec<Value>, Failure>>()?;
                let datums: Vec<Datum<'_>> = values.iter().map(Value::as_datum).collect();
                each(&datums).map_err(Failure::Statement)?;
            }
        }
        Ok(())
    }
}

impl Accelerator for DataFusion {
    fn run(
        &self,
        aggregation: &Aggregation<'_>,
        scanner: Arc<dyn TableScanner>,
        each: Each<'_>,
    ) -> Result<Outcome> {
        match self.try_run(aggregation, scanner, each) {
            Ok(()) => Ok(Outcome::Done),
            Err(Failure::Declined) => {
                tracing::debug!("an aggregation is declined");
                Ok(Outcome::Declined)
            }
            Err(Failure::Statement(error)) => Err(error),
        }
    }
}

/// A value of a group.
fn value(result: &ResultColumn, columns: &[Column], row: usize) -> Result<Value, Failure> {
    let at = |column: usize| columns.get(column).map_or(Datum::Null, |column| column.datum(row));
    Ok(match *result {
        ResultColumn::Plain(column) => at(column).to_value(),
        ResultColumn::Float(column) => match at(column) {
            // PostgreSQL tells an overflow from a sum of infinities.
            Datum::Float8(sum) if !sum.is_finite() => return Err(Failure::Declined),
            sum => sum.to_value(),
        },
        ResultColumn::Scaled { sum, scale } => shown(at(sum), at(scale))?,
        ResultColumn::Average { sum, count, scale, ty } => {
            let sum = match scale {
                Some(scale) => shown(at(sum), at(scale))?,
                None => at(sum).to_value(),
            };
            match (sum, at(count)) {
                (Value::Null, _) | (_, Datum::Int8(0)) => Value::Null,
                (Value::Float8(sum), _) if !sum.is_finite() => return Err(Failure::Declined),
                (sum, Datum::Int8(count)) => average(&sum.as_datum(), count, ty)?,
                _ => return Err(SqlError::internal("a count that is no number").into()),
            }
        }
    })
}

/// A sum with fewer digits after the point than it was computed with: the others are zeros.
fn shown(sum: Datum<'_>, scale: Datum<'_>) -> Result<Value, Failure> {
    let (Datum::Numeric(sum), Datum::Int4(scale)) = (sum, scale) else { return Ok(Value::Null) };
    let scale = u16::try_from(scale).map_err(|_| Failure::Declined)?;
    sum.with_scale(scale).map(Value::Numeric).ok_or(Failure::Declined)
}
