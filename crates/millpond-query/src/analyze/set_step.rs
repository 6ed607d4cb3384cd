//! When the functions of a select list that return rows give them.
//!
//! Functions that are not within each other give their rows side by side. One that has another one
//! among its arguments is called for each row of that. What is grouped by comes before the groups,
//! what windows are over before the windows, and all else behind them.

use std::collections::HashMap;

use super::grouping::GroupBy;
use super::level::{Clause, Level};
use super::set_function::MOVE_IT;
use super::targets::Target;
use super::tree::{Distinct, FromItem, SetFunction, SetStep, Slot, column, slot_of};
use super::walk::Visit;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, beyond};
use crate::plan::SortKey;

/// A call in a select list or what is like it.
#[derive(Debug)]
pub(super) struct SetCall {
    /// Where its rows are, until it stands side by side with others.
    slot: Slot,
    function: SetFunction,
    at: u32,
    /// It is written in a window. In the select list the same call behind it is the same.
    of_window: bool,
}

/// When a call gives its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    From,
    BeforeWindows,
    Last,
}

/// Of each call's slot the slot and the first column that its rows have beside others.
type Places = HashMap<Slot, (Slot, usize)>;

/// Calls that stand side by side.
struct Step {
    phase: Phase,
    slot: Slot,
    members: Vec<usize>,
}

/// The steps behind the groups.
#[derive(Debug, Default)]
pub(super) struct SetSteps {
    pub(super) before_windows: Vec<SetStep>,
    pub(super) last: Vec<SetStep>,
}

impl SetSteps {
    /// Calls `visit` for each of their expressions.
    pub(super) fn exprs_mut(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        let mut all = self.before_windows.iter_mut().chain(&mut self.last);
        all.try_for_each(|step| step.exprs_mut(visit))
    }
}

/// What of a SELECT or an INSERT may use rows of functions.
#[derive(Default)]
pub(super) struct Clauses<'c> {
    pub(super) targets: &'c mut [Target],
    /// The values of a row of VALUES.
    pub(super) values: &'c mut [Expr],
    pub(super) order_by: &'c mut [SortKey],
    pub(super) distinct: Option<&'c mut Distinct>,
    pub(super) group_by: Option<&'c mut GroupBy>,
    pub(super) has_groups: bool,
    /// The order of rows matters, or which of them is the first: what functions give follows its
    /// row.
    pub(super) is_ordered: bool,
}

impl Clauses<'_> {
    fn exprs_mut(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.targets.iter_mut().try_for_each(|target| visit(&mut target.expr))?;
        self.values.iter_mut().try_for_each(&mut *visit)?;
        self.order_by.iter_mut().try_for_each(|key| visit(&mut key.expr))?;
        if let Some(Distinct::On(list)) = &mut self.distinct {
            list.iter_mut().try_for_each(&mut *visit)?;
        }
        let keys = self.group_by.as_mut().map(|group_by| group_by.keys_mut());
        keys.into_iter().flatten().try_for_each(visit)
    }
}

impl Level<'_> {
    /// The slot of a call. Clauses behind the select list mean a call there if it is the same.
    pub(super) fn set_call(
        &self,
        function: SetFunction,
        at: u32,
        binder: &Binder<'_>,
    ) -> Result<Slot> {
        let is_own = matches!(self.clause.get(), Clause::Targets | Clause::Row);
        if !is_own && binder.is_lifted() {
            return Err(beyond("an expression whose literals matter"));
        }
        let mut calls = self.set_calls.borrow_mut();
        for call in calls.iter_mut().filter(|call| call.function == function) {
            if !is_own || std::mem::take(&mut call.of_window) {
                return Ok(call.slot);
            }
        }
        let of_window = self.clause.get() == Clause::Window;
        let slot = self.analyzer.new_slot()?;
        self.analyzer.set_width(slot, function.columns);
        calls.push(SetCall { slot, function, at, of_window });
        Ok(slot)
    }

    /// Calls `visit` for an expression, and for the arguments of calls whose rows it uses.
    pub(super) fn walk_with_calls(&self, e: &Expr, visit: &mut dyn FnMut(&Expr)) {
        let calls = self.set_calls.borrow();
        let mut used = calls_of(e, &calls);
        e.walk(visit);
        while let Some(at) = used.pop() {
            for arg in &calls[at].function.args {
                arg.walk(visit);
                used.extend(calls_of(arg, &calls));
            }
        }
    }

    /// Whether a slot has rows of a function that have been called before the groups.
    pub(super) fn is_set_in_from(&self, slot: Slot) -> bool {
        self.sets_in_from.borrow().contains(&slot)
    }

    /// Puts the calls where they give their rows: into FROM, or behind the groups.
    pub(super) fn set_steps(
        &self,
        clauses: &mut Clauses<'_>,
        from: &mut Vec<FromItem>,
    ) -> Result<SetSteps> {
        let mut calls = self.set_calls.take();
        if calls.is_empty() {
            return Ok(SetSteps::default());
        }
        self.refuse_conditional(clauses, &mut calls)?;
        let (steps, places) = self.side_by_side(clauses, &calls)?;
        let mut moved = |e: &mut Expr| moved(e, &places);
        clauses.exprs_mut(&mut moved)?;
        for window in &mut self.collected.borrow_mut().windows {
            window.exprs_mut(&mut moved)?;
        }
        let mut functions: Vec<Option<SetFunction>> = Vec::with_capacity(calls.len());
        for call in calls {
            let mut function = call.function;
            function.args.iter_mut().try_for_each(&mut moved)?;
            functions.push(Some(function));
        }
        let mut sets = SetSteps::default();
        for Step { phase, slot, members } in steps {
            let functions = members.iter().filter_map(|at| functions[*at].take()).collect();
            match phase {
                Phase::From => {
                    self.sets_in_from.borrow_mut().push(slot);
                    let (with_ordinality, alias) = (false, "*SELECT*".to_owned());
                    from.push(FromItem::Functions { slot, functions, with_ordinality, alias });
                }
                Phase::BeforeWindows => sets.before_windows.push(SetStep { slot, functions }),
                Phase::Last => sets.last.push(SetStep { slot, functions }),
            }
        }
        Ok(sets)
    }

    /// Which calls stand side by side, in the order of the steps, and where their columns are then.
    fn side_by_side(
        &self,
        clauses: &mut Clauses<'_>,
        calls: &[SetCall],
    ) -> Result<(Vec<Step>, Places)> {
        let phases = self.phases(clauses, calls)?;
        let depths = depths(calls, &phases);
        let of_calls: Vec<(Phase, usize)> = phases.into_iter().zip(depths).collect();
        let mut order = of_calls.clone();
        order.sort_unstable();
        order.dedup();
        let (mut steps, mut places) = (Vec::with_capacity(order.len()), HashMap::new());
        for step in order {
            let members: Vec<usize> = (0..calls.len()).filter(|at| of_calls[*at] == step).collect();
            let slot = match members.as_slice() {
                [only] => calls[*only].slot,
                _ => self.analyzer.new_slot()?,
            };
            let mut width = 0;
            for at in &members {
                places.insert(calls[*at].slot, (slot, width));
                width += calls[*at].function.columns;
            }
            self.analyzer.set_width(slot, width);
            steps.push(Step { phase: step.0, slot, members });
        }
        Ok((steps, places))
    }

    fn phases(&self, clauses: &mut Clauses<'_>, calls: &[SetCall]) -> Result<Vec<Phase>> {
        let mut collected = self.collected.borrow_mut();
        let is_plain = !clauses.has_groups && !clauses.is_ordered && collected.windows.is_empty();
        let start = if is_plain { Phase::From } else { Phase::Last };
        let mut phases = vec![start; calls.len()];
        let mut mark = |e: &Expr, phase: Phase| {
            for at in calls_of(e, calls) {
                phases[at] = phases[at].min(phase);
            }
        };
        let keys = clauses.group_by.as_mut().map(|group_by| group_by.keys_mut());
        keys.into_iter().flatten().for_each(|key| mark(key, Phase::From));
        let of_windows = if clauses.has_groups { Phase::BeforeWindows } else { Phase::From };
        for window in &mut collected.windows {
            window.exprs_mut(&mut |e| {
                mark(e, of_windows);
                Ok(())
            })?;
        }
        // What a call has among its arguments must be there by then.
        for at in (0..calls.len()).rev() {
            for arg in &calls[at].function.args {
                for inner in calls_of(arg, calls) {
                    phases[inner] = phases[inner].min(phases[at]);
                }
            }
        }
        Ok(phases)
    }

    /// Refuses calls that would be made for some rows only.
    fn refuse_conditional(&self, clauses: &mut Clauses<'_>, calls: &mut [SetCall]) -> Result<()> {
        let mut found = None;
        let mut look = |e: &Expr, calls: &[SetCall]| {
            e.walk(&mut |part| {
                let word = match part {
                    Expr::Case(..) => "CASE",
                    Expr::Coalesce(..) => "COALESCE",
                    _ => return,
                };
                if let Some(at) = calls_of(part, calls).first() {
                    found = found.or(Some((word, calls[*at].at)));
                }
            });
        };
        clauses.exprs_mut(&mut |e| {
            look(e, calls);
            Ok(())
        })?;
        for call in &*calls {
            call.function.args.iter().for_each(|arg| look(arg, calls));
        }
        let Some((word, at)) = found else { return Ok(()) };
        let what = format!("set-returning functions are not allowed in {word}");
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what).hint(MOVE_IT);
        Err(self.analyzer.source.place(error, at))
    }
}

/// The calls whose rows an expression uses.
fn calls_of(e: &Expr, calls: &[SetCall]) -> Vec<usize> {
    let mut used = Vec::new();
    e.walk(&mut |part| {
        if let Expr::Column(c) = part {
            let slot = slot_of(*c).0;
            used.extend(calls.iter().position(|call| call.slot == slot));
        }
    });
    used
}

/// How many calls of the same phase are within each.
fn depths(calls: &[SetCall], phases: &[Phase]) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        let inner = call.function.args.iter().flat_map(|arg| calls_of(arg, calls));
        let inner = inner.filter(|inner| phases[*inner] == phases[at]);
        let depth = inner.filter_map(|inner| depths.get(inner)).map(|depth| depth + 1).max();
        depths.push(depth.unwrap_or(0));
    }
    depths
}

/// Makes an expression use the rows of calls where they stand side by side.
fn moved(e: &mut Expr, places: &Places) -> Result<()> {
    e.change(&mut |part| {
        if let Expr::Column(c) = part
            && let (slot, place) = slot_of(*c)
            && let Some((new, first)) = places.get(&slot)
        {
            *c = column(*new, first + place);
        }
        Ok(false)
    })
}
