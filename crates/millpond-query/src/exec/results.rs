//! What is made of a query's rows: aggregates, LIMIT, columns.

use super::{Each, Exec, emit};
use crate::Value;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Expr};
use crate::plan::{Aggregate, Results};
use crate::run::Accumulator;

/// Takes a row; says whether it wants more.
pub(super) type Take<'t> = &'t mut dyn FnMut(&Env<'_>) -> Result<bool>;
/// Gives all rows to a function, until it wants no more.
pub(super) type Rows<'r> = &'r mut dyn FnMut(&mut Exec<'_>, Take<'_>) -> Result<()>;

/// How many rows a query returns, and how many it passes over before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) limit: u64,
    pub(super) offset: u64,
}

impl Limits {
    pub(super) fn of(results: &Results, env: &Env<'_>) -> Result<Self> {
        let limit = row_count(results.limit.as_ref(), env, false)?.unwrap_or(u64::MAX);
        let offset = row_count(results.offset.as_ref(), env, true)?.unwrap_or(0);
        Ok(Self { limit, offset })
    }

    /// How many rows of a range of keys will be read, if all meet the condition.
    pub(super) fn wanted(self) -> usize {
        usize::try_from(self.limit.saturating_add(self.offset)).unwrap_or(usize::MAX)
    }

    /// Whether of a single row nothing is returned.
    pub(super) fn drop_only_row(self) -> bool {
        self.limit == 0 || self.offset > 0
    }
}

impl Exec<'_> {
    /// Returns rows in the order in which they come, as many as are wanted.
    pub(super) fn limited(
        &mut self,
        results: &Results,
        limits: Limits,
        each: Each<'_>,
        rows: Rows<'_>,
    ) -> Result<u64> {
        let (mut seen, mut given) = (0u64, 0u64);
        rows(self, &mut |env| {
            seen += 1;
            if seen <= limits.offset {
                return Ok(true);
            }
            given += 1;
            Ok(emit(&results.output, env, each)? && given < limits.limit)
        })?;
        Ok(given)
    }

    /// Returns the one row of aggregates.
    pub(super) fn aggregated(
        &mut self,
        results: &Results,
        aggregates: &[Aggregate],
        env: &Env<'_>,
        each: Each<'_>,
        rows: Rows<'_>,
    ) -> Result<u64> {
        let mut sums: Vec<_> = aggregates.iter().map(Aggregate::start).collect();
        rows(self, &mut |env| {
            for (aggregate, sum) in aggregates.iter().zip(&mut sums) {
                aggregate.add(sum, env)?;
            }
            Ok(true)
        })?;
        finish(results, aggregates, sums, env, each)
    }
}

/// Returns the results of aggregates that have seen all rows.
pub(super) fn finish(
    results: &Results,
    aggregates: &[Aggregate],
    sums: Vec<Accumulator>,
    env: &Env<'_>,
    each: Each<'_>,
) -> Result<u64> {
    let mut values = Vec::with_capacity(aggregates.len());
    for (aggregate, sum) in aggregates.iter().zip(&sums) {
        values.push(aggregate.finish(sum)?);
    }
    if Limits::of(results, env)?.drop_only_row() {
        return Ok(0);
    }
    let row: Vec<_> = values.iter().map(Value::as_datum).collect();
    each(&row)?;
    Ok(1)
}

/// A LIMIT's or OFFSET's value; `None` for none or NULL.
pub(crate) fn row_count(expr: Option<&Expr>, env: &Env<'_>, offset: bool) -> Result<Option<u64>> {
    let Some(expr) = expr else { return Ok(None) };
    match expr.eval(env)?.datum().as_i64() {
        None => Ok(None),
        Some(count) => match u64::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) if offset => Err(SqlError::new(
                SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE,
                "OFFSET must not be negative",
            )),
            Err(_) => Err(SqlError::new(
                SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE,
                "LIMIT must not be negative",
            )),
        },
    }
}
