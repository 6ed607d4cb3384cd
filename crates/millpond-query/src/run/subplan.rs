//! Queries within expressions.

use std::mem;

use super::context::{Context, PlanData, PlanEnv};
use super::key_table::KeyTable;
use super::state::State;
use super::{SlotRows, SubPlans, datum_key, parts};
use crate::analyze::tree::SubqueryKind;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Compare, Env, Expr, SubPlanCall};
use crate::memory::{Held, bytes_of};
use crate::plan::query::node::SubPlan;
use crate::types::array::build_list;
use crate::{DataType, Value};

/// What a subplan has come to.
#[derive(Default)]
pub(super) struct SubPlanData {
    started: Option<Started>,
    rows: SlotRows,
    params: Vec<Value>,
    /// The result of one that is run once.
    result: Option<Value>,
    /// The only row of one of which several columns are wanted, as it was found last.
    row: Vec<Value>,
    found: Option<FoundRows>,
}

struct Started {
    root: State,
    data: PlanData,
    /// It gives the same rows each time.
    is_fixed: bool,
    /// A statement may have thousands of subplans.
    _held: Held,
}

/// The rows of the right side of an IN whose query is the same for all rows.
struct FoundRows {
    /// Those without NULL.
    keys: KeyTable,
    with_nulls: Vec<Vec<Value>>,
    /// All of them, if they have several columns. A row with a NULL in one of them is another one
    /// than all of these if the other columns say so.
    rows: Vec<Vec<Value>>,
    _held: Held,
}

impl SubPlans for PlanEnv<'_> {
    fn call(&self, call: &SubPlanCall, env: &Env<'_>) -> Result<Value> {
        let (Some(subplan), Some(data)) =
            (self.plan.subplans.get(call.number), self.data.subplans.get(call.number))
        else {
            return Err(SqlError::internal("a subplan out of range"));
        };
        let mut data =
            data.try_borrow_mut().map_err(|_| SqlError::internal("a subplan within itself"))?;
        data.call(self, subplan, call, env)
    }
}

impl SubPlanData {
    fn call(
        &mut self,
        around: &PlanEnv<'_>,
        subplan: &SubPlan,
        call: &SubPlanCall,
        env: &Env<'_>,
    ) -> Result<Value> {
        if call.column > 0 {
            return Ok(self.row.get(call.column).cloned().unwrap_or_default());
        }
        if let Some(result) = &self.result {
            return Ok(result.clone());
        }
        let mut left = Left { exprs: &call.left, env, values: None };
        if let Some(found) = &self.found {
            return Ok(boolean(found.contains(&mut left)?));
        }
        let mut params = mem::take(&mut self.params);
        if self.started.is_none() {
            // The statement's own parameters never change.
            params.extend(around.params.iter().take(subplan.first_arg).cloned());
            params.resize(subplan.first_arg, Value::Null);
        }
        params.truncate(subplan.first_arg);
        for arg in &call.args {
            params.push(arg.eval(env)?.into_value());
        }
        let result = self.run(around, subplan, &params, &mut left, call.args.is_empty());
        self.params = params;
        result
    }

    fn run(
        &mut self,
        around: &PlanEnv<'_>,
        subplan: &SubPlan,
        params: &[Value],
        left: &mut Left<'_>,
        has_no_args: bool,
    ) -> Result<Value> {
        let (work, plan) = (around.work, &subplan.plan);
        let mut started = match self.started.take() {
            Some(mut started) => {
                started.root.rescan();
                started.data.forget_ctes()?;
                started
            }
            None => {
                let data = PlanData::new(plan, work);
                let env = PlanEnv { work, plan, params, data: &data, parent: Some(around) };
                let cx = Context::new(&env, SlotRows::default());
                let mut held = Held::new(&work.resources.memory, "SubPlan");
                held.grow(cx.rows.bytes())?;
                let root = State::new(&plan.root, &cx)?;
                self.rows = cx.rows;
                let is_fixed =
                    subplan.once && has_no_args && parts::is_subplan_fixed(plan, around.changes());
                Started { root, data, is_fixed, _held: held }
            }
        };
        let Started { root, data, is_fixed, .. } = &mut started;
        let env = PlanEnv { work, plan, params, data, parent: Some(around) };
        let cx = Context::new(&env, mem::take(&mut self.rows));
        let mut run = Run { root, subplan, cx };
        let result = if *is_fixed && matches!(subplan.kind, SubqueryKind::Any(_, Compare::Eq)) {
            let found = run.find_all();
            found.and_then(|found| self.found.insert(found).contains(left)).map(boolean)
        } else {
            let result = run.result(left, &mut self.row);
            if let (true, true, Ok(result)) = (*is_fixed, left.exprs.is_empty(), &result) {
                self.result = Some(result.clone());
            }
            result
        };
        self.rows = run.cx.rows;
        self.started = Some(started);
        result
    }
}

/// What a row of a subplan is compared with. It is computed for the first row: without one it may
/// not fail.
struct Left<'l> {
    exprs: &'l [Expr],
    env: &'l Env<'l>,
    values: Option<Vec<Value>>,
}

impl Left<'_> {
    fn values(&mut self) -> Result<&[Value]> {
        if self.values.is_none() {
            let values = self.exprs.iter().map(|e| Ok(e.eval(self.env)?.into_value()));
            self.values = Some(values.collect::<Result<_>>()?);
        }
        Ok(self.values.as_deref().unwrap_or_default())
    }
}

/// A subplan that is run.
struct Run<'r> {
    root: &'r mut State,
    subplan: &'r SubPlan,
    cx: Context<'r>,
}

impl Run<'_> {
    fn next(&mut self) -> Result<bool> {
        self.root.next(&self.subplan.plan.root, &mut self.cx)
    }

    /// The row that [`Run::next`] has found.
    fn row(&self, into: &mut Vec<Value>) -> Result<()> {
        into.clear();
        self.cx.values(self.subplan.plan.output.exprs.iter(), into)
    }

    /// The result. `kept` becomes the row of which other columns are wanted.
    fn result(&mut self, left: &mut Left<'_>, kept: &mut Vec<Value>) -> Result<Value> {
        match &self.subplan.kind {
            SubqueryKind::Exists => Ok(Value::Bool(self.next()?)),
            SubqueryKind::Scalar => Ok(self.only_row()?.into_iter().next().unwrap_or_default()),
            SubqueryKind::Column(_) => {
                *kept = self.only_row()?;
                Ok(kept.first().cloned().unwrap_or_default())
            }
            SubqueryKind::Array(ty) => self.array(*ty),
            SubqueryKind::Any(_, op) => self.quantified(left, *op, true),
            SubqueryKind::All(_, op) => self.quantified(left, *op, false),
        }
    }

    /// The only row; nothing without one.
    fn only_row(&mut self) -> Result<Vec<Value>> {
        let mut row = Vec::new();
        if !self.next()? {
            return Ok(row);
        }
        self.row(&mut row)?;
        if self.next()? {
            return Err(SqlError::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            ));
        }
        Ok(row)
    }

    /// The values of all rows as an array, which is empty without a row.
    fn array(&mut self, ty: DataType) -> Result<Value> {
        let mut held = Held::new(&self.cx.work().resources.memory, "SubPlan");
        let (mut values, mut row) = (Vec::new(), Vec::new());
        while self.next()? {
            self.cx.work().tick()?;
            self.row(&mut row)?;
            held.grow(bytes_of(&row))?;
            values.append(&mut row);
        }
        Ok(build_list(ty.oid(), values.iter().map(Value::as_datum))?)
    }

    /// Whether the comparison holds for some row (or, not `any`, for all rows).
    fn quantified(&mut self, left: &mut Left<'_>, op: Compare, any: bool) -> Result<Value> {
        let (mut result, mut row) = (Some(!any), Vec::new());
        while self.next()? {
            self.cx.work().tick()?;
            self.row(&mut row)?;
            match compare_rows(op, left.values()?, &row) {
                Some(holds) if holds == any => return Ok(Value::Bool(any)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(boolean(result))
    }

    fn find_all(&mut self) -> Result<FoundRows> {
        let mut held = Held::new(&self.cx.work().resources.memory, "SubPlan");
        let (mut keys, mut with_nulls, mut rows) = (KeyTable::default(), Vec::new(), Vec::new());
        let (mut row, mut key) = (Vec::new(), Vec::new());
        while self.next()? {
            self.cx.work().tick()?;
            self.row(&mut row)?;
            if row.len() > 1 {
                held.grow(bytes_of(&row))?;
                rows.push(row.clone());
            }
            if row.iter().any(Value::is_null) {
                // More rows of NULL alone say nothing new.
                if with_nulls.is_empty() || row.len() > 1 {
                    held.grow(bytes_of(&row))?;
                    with_nulls.push(row.clone());
                }
                continue;
            }
            key.clear();
            row.iter().for_each(|value| datum_key::push(&value.as_datum(), &mut key));
            held.grow(keys.enter(&key, self.cx.work())?.grown)?;
        }
        Ok(FoundRows { keys, with_nulls, rows, _held: held })
    }
}

impl FoundRows {
    fn contains(&self, left: &mut Left<'_>) -> Result<Option<bool>> {
        if self.keys.is_empty() && self.with_nulls.is_empty() {
            return Ok(Some(false));
        }
        Ok(self.compared(left.values()?))
    }

    fn compared(&self, left: &[Value]) -> Option<bool> {
        let mut key = Vec::new();
        left.iter().for_each(|value| datum_key::push(&value.as_datum(), &mut key));
        if self.keys.find(&key).is_some() {
            return Some(true);
        }
        let candidates = match left {
            [Value::Null] => return None,
            _ if left.iter().any(Value::is_null) => &self.rows,
            _ => &self.with_nulls,
        };
        let is_unknown =
            candidates.iter().any(|row| compare_rows(Compare::Eq, left, row).is_none());
        if is_unknown { None } else { Some(false) }
    }
}

/// Compares two rows as SQL does: `None` is unknown.
pub(super) fn compare_rows(op: Compare, left: &[Value], right: &[Value]) -> Option<bool> {
    let pairs = || left.iter().zip(right).map(|(a, b)| a.sql_cmp(b));
    if let Compare::Eq | Compare::Ne = op {
        let differs = pairs().any(|order| order.is_some_and(|order| order.is_ne()));
        let is_unknown = !differs && pairs().any(|order| order.is_none());
        return (!is_unknown).then_some(differs == (op == Compare::Ne));
    }
    for order in pairs() {
        match order {
            None => return None,
            Some(order) if order.is_ne() => return Some(op.holds(order)),
            Some(_) => {}
        }
    }
    Some(op.holds(std::cmp::Ordering::Equal))
}

fn boolean(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::Bool)
}
