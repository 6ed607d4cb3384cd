//! Running plans: the engine's scans and changes, driven by a plan's expressions.
//!
//! [`Exec`] lives for one statement. Its memory ([`Scratch`]) belongs to the connection and is used
//! again, so a warm statement by key allocates nothing here.
//!
//! Under [`Wait::Never`] a statement may only begin what it can take back. That is reads of bounded
//! size, and changes of a single row, which the engine refuses before its first change if they
//! would block. Everything else answers "would block" at once and is repeated where it may wait.

mod change;
mod insert;
pub(crate) mod key;
mod query;
mod results;
mod row_lock;
mod rows;
mod scanner;
mod select;
mod selected;
mod system;

use std::sync::Arc;

use millpond_buffer::Wait;
use millpond_engine::catalog::TableDef;
use millpond_engine::session::IndexScan;
use millpond_engine::session::Session;
use millpond_engine::table::{KeyRange, RowBuf};
use millpond_engine::timeout::Cancellation;
use smallvec::SmallVec;

pub use insert::with_row_detail;
pub(crate) use results::row_count;
pub(crate) use row_lock::lock_row;
pub(crate) use scanner::Scanner;
pub(crate) use selected::modify;

use crate::convert::would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Expr, Facts, Row, Val};
pub use crate::memory::Datums;
use crate::memory::{Resources, ValueRoom};
use crate::plan::external::Accelerator;
use crate::plan::{Output, Plan, Planned};
use crate::run::Pool;
pub use crate::run::planned_workers;
use crate::scan_threads::ScanThreads;
use crate::sink::RowSink;
use crate::{Datum, Value};

/// Rows that a statement may look at where it must not wait: more is a long statement.
pub(crate) const MAX_ROWS_UNWAITING: usize = 2000;
/// Blocks of a table that may be read through where the statement must not wait.
pub(crate) const MAX_BLOCKS_UNWAITING: u32 = 16;

/// Memory that statements use again.
#[derive(Debug, Default)]
pub struct Scratch {
    row: RowBuf,
    old: Vec<u8>,
    scan: IndexScan,
    range: KeyRange,
    ranges: key::KeyRanges,
    /// Of queries of several nodes.
    pool: Pool,
}

impl Scratch {
    /// Memory of the row that was read last, which the next one will use.
    pub fn row_bytes(&self) -> &[u8] {
        self.row.bytes()
    }
}

/// One statement in execution.
pub struct Exec<'c> {
    pub session: &'c Session,
    pub facts: &'c Facts<'c>,
    pub scratch: &'c mut Scratch,
    pub wait: Wait,
    /// What it keeps rows in.
    pub resources: &'c Arc<Resources>,
    /// Whether the statement has been told to stop.
    pub cancel: &'c Cancellation,
    /// A second executor for large inputs.
    pub accelerator: Option<&'c dyn Accelerator>,
    /// What large tables are scanned with beside the session's own thread.
    pub threads: &'c Arc<ScanThreads>,
    /// What system relations ask about the session.
    pub info: &'c dyn Fn() -> crate::query::SessionInfo,
}

/// Takes a row; says whether it wants more.
pub(crate) type Each<'e> = &'e mut dyn FnMut(&[Datum<'_>]) -> Result<bool>;

impl Exec<'_> {
    /// Runs a plan, and says how many rows it returned or changed.
    pub fn run(
        &mut self,
        planned: &Planned,
        params: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        self.run_each(planned, params, &mut |row| sink.row(row).map(|()| true))
    }

    /// The same, with the rows given to a function.
    pub(crate) fn run_each(
        &mut self,
        planned: &Planned,
        params: &[Value],
        each: Each<'_>,
    ) -> Result<u64> {
        if params.len() < planned.params.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement requires {}",
                    params.len(),
                    planned.params.len()
                ),
            ));
        }
        let _room = ValueRoom::enter(self.resources.memory.share());
        let done = match &planned.plan {
            Plan::Select(plan) => self.select(plan, params, each),
            Plan::Query(plan) => self.query(plan, params, each),
            Plan::Insert(plan) => self.insert(plan, params, each),
            Plan::Change(plan) => self.change(plan, params, each),
        };
        self.resources.memory.statement_ended();
        done
    }

    /// Whether a plan was made for values like these: see [`RangeEstimates`].
    ///
    /// [`RangeEstimates`]: crate::plan::RangeEstimates
    pub fn suits(&mut self, planned: &Planned, params: &[Value]) -> Result<bool> {
        if params.len() < planned.params.len() {
            return Ok(true);
        }
        let _room = ValueRoom::enter(self.resources.memory.share());
        let env = Env { row: Row::None, params, facts: self.facts, subplans: None };
        let Scratch { range: keys, ranges, .. } = &mut *self.scratch;
        for range in &planned.ranges {
            if !range.holds(self.session, &env, (&mut *ranges, &mut *keys))? {
                return Ok(false);
            }
        }
        ranges.trim();
        Ok(true)
    }

    fn may_wait(&self) -> bool {
        self.wait == Wait::Allowed
    }

    /// Long work: only where waiting is allowed.
    fn need_wait(&self) -> Result<()> {
        if self.may_wait() { Ok(()) } else { Err(would_block()) }
    }
}

/// From how many pages on it pays to look at a scan's expressions before its rows.
const LONG_SCAN_BLOCKS: u32 = 8;

/// Whether a scan of a whole table is long.
pub(crate) fn is_long_scan(session: &Session, table: &TableDef) -> Result<bool> {
    Ok(session.block_count(table)? >= LONG_SCAN_BLOCKS)
}

/// Whether a condition, if there is one, holds for a stored row.
#[inline]
fn passes(condition: Option<&Expr>, table: &TableDef, row: &[u8], env: &Env<'_>) -> Result<bool> {
    holds(condition, &env.with_row(Row::Stored(&table.layout, row)))
}

/// Whether a condition, if there is one, holds for the row of `env`.
#[inline]
fn holds(condition: Option<&Expr>, env: &Env<'_>) -> Result<bool> {
    match condition {
        None => Ok(true),
        Some(condition) => condition.holds(env),
    }
}

/// Computes the columns of a result from a row and hands them over.
pub(crate) fn emit(output: &Output, env: &Env<'_>, each: Each<'_>) -> Result<bool> {
    let Some(columns) = &output.plain else { return emit_exprs(&output.exprs, env, each) };
    let mut row = Datums::new();
    match env.row {
        Row::Stored(layout, bytes) => {
            for column in columns {
                row.push(layout.column(bytes, *column).map_err(damaged)?);
            }
        }
        Row::Scanned(layout, bytes, offsets) => {
            for column in columns {
                row.push(layout.column_noting(bytes, offsets, *column).map_err(damaged)?);
            }
        }
        Row::Slots(slots) => {
            for column in columns {
                row.push(slots.column(*column)?);
            }
        }
        Row::Datums(_) | Row::None => return emit_exprs(&output.exprs, env, each),
    }
    each(&row)
}

/// Computes a row and hands it over.
fn emit_exprs(exprs: &[Expr], env: &Env<'_>, each: Each<'_>) -> Result<bool> {
    let mut values = SmallVec::<[Val<'_>; 8]>::with_capacity(exprs.len());
    for expr in exprs {
        values.push(expr.eval(env)?);
    }
    let row: Datums<'_> = values.iter().map(Val::datum).collect();
    each(&row)
}

#[cold]
pub(crate) fn damaged(error: millpond_types::tuple::DamagedTuple) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, error.to_string())
}
