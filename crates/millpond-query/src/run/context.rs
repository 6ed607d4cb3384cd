//! What a running plan has around it.
//!
//! ```text
//! Work          the statement: session, facts, budget of rows, memory that is used again
//!   PlanEnv     the statement's plan: parameters, its subplans and queries of WITH
//!     Context   the rows in its slots
//!       PlanEnv   a subplan of it, with parameters and slots of its own
//! ```

use std::cell::{Cell, RefCell, RefMut};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_engine::session::Session;
use millpond_engine::table::RowBuf;
use millpond_engine::timeout::Cancellation;

use super::cte::CteData;
use super::kept::out_of_range;
use super::parts::Changes;
use super::pool::Pool;
use super::subplan::SubPlanData;
use super::{SlotRow, SlotRows, Slots, kept};
use crate::analyze::tree::Slot;
use crate::convert::would_block;
use crate::error::{Result, SqlError};
use crate::expr::{Env, Expr, Facts, Row};
use crate::memory::Resources;
use crate::plan::external::Accelerator;
use crate::plan::query::node::QueryPlan;
use crate::scan_threads::ScanThreads;
use crate::system_relations::Host;
use crate::types::FormatOptions;
use crate::{Datum, Value};

/// Where the statement must not wait, it reads the clock after this number of rounds at the latest.
const MOST_ROUNDS_UNTIMED: u32 = 128;

/// Rounds of all loops of a statement that must not wait. Not all of them look at a table's row.
const MAX_ROUNDS_UNWAITING: u32 = 8 * 1024;

/// The time of a statement that must not wait, from when it first reads the clock.
const MAX_TIME_UNWAITING: Duration = Duration::from_millis(5);

/// A second executor, and how it learns that the statement is to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accelerated<'w> {
    pub(crate) engine: &'w dyn Accelerator,
    pub(crate) cancel: &'w Cancellation,
}

/// A statement in execution.
pub(crate) struct Work<'w> {
    /// `None` in tests of plans without tables.
    pub(crate) session: Option<&'w Session>,
    pub(crate) facts: &'w Facts<'w>,
    pub(crate) resources: &'w Arc<Resources>,
    /// What system relations are computed from; `None` in tests of plans without tables.
    pub(crate) host: Option<&'w dyn Host>,
    pub(crate) accelerator: Option<Accelerated<'w>>,
    /// `None` in tests of plans without tables.
    pub(crate) threads: Option<&'w Arc<ScanThreads>>,
    pub(crate) may_wait: bool,
    /// How many more rows may be looked at where the statement must not wait.
    pub(crate) left: Cell<usize>,
    /// How many parameters the statement has.
    pub(crate) param_count: usize,
    pub(crate) pool: RefCell<Pool>,
    pub(crate) ticks: Cell<u32>,
    /// When the clock was first read. `None`: not yet.
    pub(crate) timed_since: Cell<Option<Instant>>,
}

impl<'w> Work<'w> {
    pub(crate) fn session(&self) -> Result<&'w Session> {
        self.session.ok_or_else(|| SqlError::internal("a table without a session"))
    }

    pub(super) fn pool(&self) -> Result<RefMut<'_, Pool>> {
        self.pool.try_borrow_mut().map_err(|_| SqlError::internal("scans are in use"))
    }

    /// Counts a row that is looked at. An error if the statement was told to stop, or has looked at
    /// too many where it must not wait.
    #[inline]
    pub(super) fn count_row(&self) -> Result<()> {
        if !self.may_wait {
            self.left.set(self.left.get().checked_sub(1).ok_or_else(would_block)?);
        }
        self.tick()
    }

    /// Counts a round of any loop. An error if the statement was told to stop, or if it must not
    /// wait and has gone on for too long.
    ///
    /// Each round asks, because one may take long: expressions can be costly.
    #[inline]
    pub(super) fn tick(&self) -> Result<()> {
        if let Some(session) = self.session {
            session.check_cancel()?;
        }
        if self.may_wait {
            return Ok(());
        }
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        // Early rounds, too: if each takes long, few are too many.
        let is_timed = ticks.is_multiple_of(MOST_ROUNDS_UNTIMED) || ticks.is_power_of_two();
        if is_timed { self.check_time(ticks) } else { Ok(()) }
    }

    #[cold]
    fn check_time(&self, ticks: u32) -> Result<()> {
        // Most statements that must not wait end sooner, and never read the clock.
        const FIRST_TIMED: u32 = 4;
        if ticks < FIRST_TIMED {
            return Ok(());
        }
        let now = Instant::now();
        let Some(since) = self.timed_since.get() else {
            self.timed_since.set(Some(now));
            return Ok(());
        };
        let is_late = now.duration_since(since) > MAX_TIME_UNWAITING;
        if is_late || ticks > MAX_ROUNDS_UNWAITING { Err(would_block()) } else { Ok(()) }
    }
}

/// What changes of a plan beside its nodes' states and rows.
#[derive(Default)]
pub(crate) struct PlanData {
    pub(super) subplans: Vec<RefCell<SubPlanData>>,
    pub(super) ctes: Vec<CteData>,
}

impl PlanData {
    pub(crate) fn new(plan: &QueryPlan, work: &Work<'_>) -> Self {
        Self {
            subplans: plan.subplans.iter().map(|_| RefCell::default()).collect(),
            ctes: plan.ctes.iter().map(|_| CteData::new(work)).collect(),
        }
    }
}

/// A plan with its parameters.
pub(crate) struct PlanEnv<'x> {
    pub(crate) work: &'x Work<'x>,
    pub(crate) plan: &'x QueryPlan,
    /// Those of the statement, then those that the queries around this one give it.
    pub(crate) params: &'x [Value],
    pub(crate) data: &'x PlanData,
    /// The plan that this is a subplan of.
    pub(crate) parent: Option<&'x PlanEnv<'x>>,
}

impl PlanEnv<'_> {
    /// What is different when the plan is run again.
    pub(super) fn changes(&self) -> Changes {
        let params = self.work.param_count..self.params.len();
        Changes { params, ctes: self.parent.is_some() }
    }
}

/// A plan with its rows.
pub(crate) struct Context<'x> {
    pub(crate) plan: &'x PlanEnv<'x>,
    pub(crate) rows: SlotRows,
}

impl<'x> Context<'x> {
    pub(crate) fn new(plan: &'x PlanEnv<'x>, mut rows: SlotRows) -> Self {
        rows.fit(&plan.plan.window);
        Self { plan, rows }
    }

    pub(crate) fn work(&self) -> &'x Work<'x> {
        self.plan.work
    }

    /// What expressions see.
    #[inline]
    pub(crate) fn env(&self) -> Env<'_> {
        Env {
            row: Row::Slots(self.slots()),
            params: self.plan.params,
            facts: self.plan.work.facts,
            subplans: Some(self.plan),
        }
    }

    /// How values become text.
    pub(super) fn format_options(&self) -> &FormatOptions {
        self.plan.work.facts.settings.format_options()
    }

    pub(super) fn slots(&self) -> Slots<'_> {
        Slots { kinds: &self.plan.plan.slots, rows: &self.rows }
    }

    /// Whether a condition, if there is one, holds.
    #[inline]
    pub(crate) fn holds(&self, condition: Option<&Expr>) -> Result<bool> {
        condition.map_or(Ok(true), |condition| condition.holds(&self.env()))
    }

    /// The values of some expressions.
    pub(crate) fn values<'e>(
        &self,
        exprs: impl Iterator<Item = &'e Expr>,
        into: &mut Vec<Value>,
    ) -> Result<()> {
        for expr in exprs {
            into.push(expr.eval(&self.env())?.into_value());
        }
        Ok(())
    }

    pub(super) fn value(&self, expr: &Expr) -> Result<Value> {
        Ok(expr.eval(&self.env())?.into_value())
    }

    /// Computes a row into a slot.
    pub(super) fn compute(&mut self, slot: Slot, exprs: &[Expr]) -> Result<()> {
        let mut values = kept::take_values(self.row_mut(slot)?);
        self.values(exprs.iter(), &mut values)?;
        self.set(slot, SlotRow::Values(values))
    }

    /// Makes values a slot's row.
    pub(super) fn set_datums(&mut self, slot: Slot, datums: &[Datum<'_>]) -> Result<()> {
        let row = self.row_mut(slot)?;
        let mut values = kept::take_values(row);
        values.extend(datums.iter().map(Datum::to_value));
        *row = SlotRow::Values(values);
        Ok(())
    }

    pub(crate) fn set(&mut self, slot: Slot, row: SlotRow) -> Result<()> {
        *self.row_mut(slot)? = row;
        Ok(())
    }

    pub(crate) fn row_mut(&mut self, slot: Slot) -> Result<&mut SlotRow> {
        self.rows.get_mut(slot).ok_or_else(out_of_range)
    }

    /// A table's row in its slot, for the next one.
    #[inline(always)]
    pub(crate) fn stored_mut(&mut self, slot: Slot) -> Result<&mut RowBuf> {
        if !matches!(self.rows.get(slot), Some(SlotRow::Stored(_))) {
            self.begin_stored(slot)?;
        }
        match self.row_mut(slot)? {
            SlotRow::Stored(row) => Ok(row),
            _ => Err(out_of_range()),
        }
    }

    #[cold]
    fn begin_stored(&mut self, slot: Slot) -> Result<()> {
        let row = self.work().pool()?.rows.pop().unwrap_or_default();
        self.set(slot, SlotRow::Stored(row))
    }

    /// Takes a table's row out of its slot: its memory is used for the next one.
    pub(crate) fn take_stored(&mut self, slot: Slot) -> Result<RowBuf> {
        let row = self.row_mut(slot)?;
        if let SlotRow::Stored(row) = row {
            return Ok(mem::take(row));
        }
        Ok(self.work().pool()?.rows.pop().unwrap_or_default())
    }
}
