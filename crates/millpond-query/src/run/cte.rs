//! Queries of WITH that are run once: their rows are kept, and each CTE Scan reads them.
//!
//! A query is run as far as its readers have come: one without an end may be read by a LIMIT. It
//! has slots of its own, beside those of the plan that it belongs to. A query that changes rows is
//! run to its end by its first reader; without one, when the statement has given all its rows.

use std::cell::RefCell;
use std::mem;

use super::context::{Context, PlanData, PlanEnv, Work};
use super::kept::{self, out_of_range};
use super::key_table::KeyTable;
use super::state::State;
use super::{SlotRow, SlotRows, datum_key};
use crate::analyze::tree::{CteId, Slot};
use crate::error::{Result, SqlError};
use crate::exec;
use crate::memory::{Cursor, Held, RowStore, row_bytes};
use crate::plan::query::node::{CteKind, CtePlan, Modify};
use crate::{Datum, Value};

/// What a query of WITH has come to.
pub(super) struct CteData {
    run: RefCell<CteRun>,
    /// Beside the rest, because the step reads it while it runs.
    work_table: RefCell<RowStore>,
}

struct CteRun {
    /// The states of the query, or of the start and the step.
    states: Option<(State, Option<State>)>,
    slots: SlotRows,
    rows: RowStore,
    /// The rows of this round, which the step sees in the next.
    next: RowStore,
    /// Keys of all rows, if equal ones are left out.
    seen: KeyTable,
    held: Held,
    key: Vec<u8>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    Step,
    End,
}

impl CteData {
    pub(super) fn new(work: &Work<'_>) -> Self {
        let store = |name| RowStore::new(work.resources, name);
        let run = CteRun {
            states: None,
            slots: SlotRows::default(),
            rows: store("CTE Scan"),
            next: store("Recursive Union"),
            seen: KeyTable::default(),
            held: Held::new(&work.resources.memory, "Recursive Union"),
            key: Vec::new(),
            phase: Phase::Start,
        };
        Self { run: RefCell::new(run), work_table: RefCell::new(store("Recursive Union")) }
    }
}

impl CteData {
    /// The query is run again. Its states stay: a scan of an index is the statement's until its
    /// end, and new states would take more of them each time.
    fn forget(&self) -> Result<()> {
        let in_use = |_| SqlError::internal("a query of WITH is being read");
        let mut run = self.run.try_borrow_mut().map_err(in_use)?;
        if let Some((start, step)) = &mut run.states {
            start.rescan();
            step.iter_mut().for_each(State::rescan);
        }
        run.rows.clear()?;
        run.next.clear()?;
        run.seen.clear();
        run.held.clear();
        run.phase = Phase::Start;
        self.work_table.try_borrow_mut().map_err(|_| SqlError::internal("a round ends"))?.clear()
    }
}

impl PlanData {
    /// Parameters have changed: all queries of WITH are run again.
    pub(super) fn forget_ctes(&mut self) -> Result<()> {
        self.ctes.iter().try_for_each(CteData::forget)
    }
}

impl PlanEnv<'_> {
    /// A round of a recursive query begins: the queries of WITH within its step are run again.
    fn forget_step_ctes(&self, step_ctes: &[CteId]) -> Result<()> {
        for (cte, data) in self.plan.ctes.iter().zip(&self.data.ctes) {
            if step_ctes.contains(&cte.id) {
                data.forget()?;
            }
        }
        Ok(())
    }
}

/// Runs the queries of WITH that change rows and have not been read. The last comes first: it may
/// read those before it.
pub(super) fn finish_modifications(owner: &PlanEnv<'_>) -> Result<()> {
    for (cte, data) in owner.plan.ctes.iter().zip(&owner.data.ctes).rev() {
        if matches!(cte.kind, CteKind::Modify(_)) {
            let in_use = |_| SqlError::internal("a query of WITH is being read");
            data.run.try_borrow_mut().map_err(in_use)?.read_on(owner, cte, data)?;
        }
    }
    Ok(())
}

/// The plan that a query of WITH belongs to.
fn owner<'x>(
    from: &'x PlanEnv<'x>,
    id: CteId,
) -> Result<(&'x PlanEnv<'x>, &'x CtePlan, &'x CteData)> {
    let mut owner = Some(from);
    while let Some(plan) = owner {
        let own = plan.plan.ctes.iter().zip(&plan.data.ctes).find(|(cte, _)| cte.id == id);
        if let Some((cte, data)) = own {
            return Ok((plan, cte, data));
        }
        owner = plan.parent;
    }
    Err(SqlError::internal("a query of WITH that is nowhere"))
}

/// CTE Scan: the next row at a cursor.
pub(super) fn scan(
    id: CteId,
    slot: Slot,
    cursor: &mut Cursor,
    cx: &mut Context<'_>,
) -> Result<bool> {
    let (owner, cte, data) = owner(cx.plan, id)?;
    let mut run = data
        .run
        .try_borrow_mut()
        .map_err(|_| SqlError::internal(format!("the query \"{}\" reads itself", cte.name)))?;
    loop {
        if let Some(row) = run.rows.next(cursor)? {
            cx.work().tick()?;
            cx.set_datums(slot, &row_bytes::read(row)?)?;
            return Ok(true);
        }
        if !run.read_on(owner, cte, data)? {
            return Ok(false);
        }
    }
}

/// WorkTable Scan: the next row of the round before.
pub(super) fn scan_work_table(
    id: CteId,
    slot: Slot,
    cursor: &mut Cursor,
    cx: &mut Context<'_>,
) -> Result<bool> {
    let (_, _, data) = owner(cx.plan, id)?;
    let rows = data.work_table.try_borrow().map_err(|_| SqlError::internal("a round ends"))?;
    let Some(row) = rows.next(cursor)? else { return Ok(false) };
    cx.work().tick()?;
    cx.set_datums(slot, &row_bytes::read(row)?)?;
    Ok(true)
}

impl CteRun {
    /// Adds a row, if there is one more.
    fn read_on(&mut self, owner: &PlanEnv<'_>, cte: &CtePlan, data: &CteData) -> Result<bool> {
        if self.phase == Phase::End {
            return Ok(false);
        }
        let mut cx = Context::new(owner, mem::take(&mut self.slots));
        let found = match &cte.kind {
            CteKind::Modify(modify) => self.modify(modify, &mut cx),
            kind => self.read_with(kind, data, &mut cx),
        };
        self.slots = cx.rows;
        found
    }

    /// Changes all rows, and keeps what is returned of them.
    fn modify(&mut self, modify: &Modify, cx: &mut Context<'_>) -> Result<bool> {
        let mut input = State::new(&modify.input, cx)?;
        let mut next = |cx: &mut Context<'_>| {
            cx.work().tick()?;
            input.next(&modify.input, cx)
        };
        let (rows, bytes) = (&mut self.rows, &mut self.key);
        let mut keep = |row: &[Datum<'_>]| {
            bytes.clear();
            row_bytes::push(row, bytes)?;
            rows.push(bytes)?;
            Ok(true)
        };
        exec::modify(modify, cx, &mut next, &mut keep)?;
        self.phase = Phase::End;
        Ok(self.rows.end() > 0)
    }

    fn read_with(&mut self, kind: &CteKind, data: &CteData, cx: &mut Context<'_>) -> Result<bool> {
        let (mut start, mut step) = match self.states.take() {
            Some(states) => states,
            None => match kind {
                CteKind::Plain(node, _) => (State::new(node, cx)?, None),
                CteKind::Recursive { start, step, .. } => {
                    (State::new(&start.0, cx)?, Some(State::new(&step.0, cx)?))
                }
                CteKind::Modify(_) => return Err(SqlError::internal("a query that changes rows")),
            },
        };
        let found = match (kind, &mut step) {
            (CteKind::Recursive { .. }, Some(step)) => {
                self.read_recursive(&mut start, step, kind, data, cx)
            }
            (CteKind::Plain(node, slot), _) => {
                let found = start.next(node, cx)?;
                if found {
                    self.keep(*slot, cx, false)?;
                } else {
                    self.phase = Phase::End;
                }
                Ok(found)
            }
            _ => Err(SqlError::internal("a state of another node")),
        };
        self.states = Some((start, step));
        found
    }

    fn read_recursive(
        &mut self,
        start: &mut State,
        step: &mut State,
        kind: &CteKind,
        data: &CteData,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        let CteKind::Recursive { start: first, step: more, all, step_ctes } = kind else {
            return Err(SqlError::internal("a query that is not recursive"));
        };
        loop {
            cx.work().tick()?;
            let found = match self.phase {
                Phase::Start => start.next(&first.0, cx)?.then_some(first.1),
                Phase::Step => step.next(&more.0, cx)?.then_some(more.1),
                Phase::End => return Ok(false),
            };
            if let Some(slot) = found {
                if *all || self.is_new(slot, cx)? {
                    self.keep(slot, cx, true)?;
                    return Ok(true);
                }
                continue;
            }
            if self.next.end() == 0 {
                self.phase = Phase::End;
                return Ok(false);
            }
            let mut work_table = data
                .work_table
                .try_borrow_mut()
                .map_err(|_| SqlError::internal("a round is being read"))?;
            mem::swap(&mut *work_table, &mut self.next);
            self.next.clear()?;
            self.phase = Phase::Step;
            drop(work_table);
            cx.plan.forget_step_ctes(step_ctes)?;
            step.rescan();
        }
    }

    /// Whether no row before was equal.
    fn is_new(&mut self, slot: Slot, cx: &Context<'_>) -> Result<bool> {
        self.key.clear();
        for value in kept::values(cx.slots(), slot)? {
            datum_key::push(&value.as_datum(), &mut self.key);
        }
        let key = self.seen.enter(&self.key, cx.work())?;
        self.held.grow(key.grown)?;
        Ok(key.is_new())
    }

    fn keep(&mut self, slot: Slot, cx: &Context<'_>, for_next: bool) -> Result<()> {
        let values = match cx.rows.get(slot).ok_or_else(out_of_range)? {
            SlotRow::Values(values) => values,
            _ => &kept::values(cx.slots(), slot)?,
        };
        let datums: Vec<Datum<'_>> = values.iter().map(Value::as_datum).collect();
        self.key.clear();
        row_bytes::push(&datums, &mut self.key)?;
        self.rows.push(&self.key)?;
        if for_next {
            self.next.push(&self.key)?;
        }
        Ok(())
    }
}
