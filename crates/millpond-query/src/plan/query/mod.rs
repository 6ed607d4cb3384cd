//! From the typed query tree to a tree of nodes.
//!
//! A query is planned from the inside out. [`from`] makes a [`problem`] of FROM and WHERE: what is
//! to be joined, and the conditions. [`order`] decides in which order and how, and [`build`] makes
//! the nodes. [`select`] and [`body`] put grouping, windows, order and limits on top. [`finish`] at
//! the end replaces what is left of subqueries in expressions by calls of plans of their own.
//!
//! Planning is bounded: each choice is made once, without search; what it copies is counted.

mod accelerate;
mod body;
mod build;
mod conditions;
mod cte;
mod decorrelate;
mod demand;
mod depth;
mod equalities;
mod estimate;
pub(super) mod explain;
mod extremes;
mod finish;
mod first_groups;
mod first_of_union;
mod from;
pub(crate) mod gather;
mod implied;
mod kept_columns;
mod lock_rows;
mod method;
mod modification;
pub(crate) mod node;
pub(crate) mod node_walk;
mod order;
mod problem;
mod push_down;
mod search;
mod select;
pub(crate) mod shared_states;
mod shown;
mod slot_set;
mod strict;
mod sublink;
mod table_path;
mod unused;
mod unused_joins;
mod wanted;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use millpond_engine::catalog::TableDef;

pub(super) use self::estimate::bounds_rows;
use self::finish::Called;
use self::kept_columns::kept_columns;
use self::node::{CtePlan, Node, QueryPlan, SlotKind, SubPlan};
use self::slot_set::SlotSet;
use super::{Output, Planner, RangeEstimates, UsableIndexes};
use crate::analyze::tree::{Analyzed, CteId, Query, Slot, slot_of};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;

/// How many parts of expressions one statement's plan may be made of.
const MAX_PARTS: usize = 1 << 20;
/// How deep queries may be nested.
const MAX_DEPTH: usize = 100;
/// How often queries may be planned again, to see whether rows outside of them find theirs by key.
const MAX_TRIES: usize = 200;

/// The planning of one statement.
struct Planning<'a> {
    indexes: &'a UsableIndexes<'a>,
    ranges: &'a RangeEstimates<'a>,
    /// Of all slots what they hold. The analyzer's, then those added here.
    kinds: Vec<SlotKind>,
    /// How many parameters the statement has.
    params: usize,
    /// What the columns of a subquery stand for that has become a part of the query around it.
    substituted: HashMap<Slot, Vec<Expr>>,
    /// How often queries of WITH are read.
    cte_uses: HashMap<CteId, usize>,
    /// How deep the queries of WITH are that are run once.
    cte_depths: HashMap<CteId, usize>,
    /// How many recursive steps are around what is planned, and the queries of WITH within steps.
    steps: usize,
    step_ctes: HashSet<CteId>,
    /// The tables that it reads, with their rows, as far as known.
    tables: Vec<(Arc<TableDef>, i64)>,
    /// The rows of the largest of these tables.
    largest_table: i64,
    /// Groups of columns that the join that is being ordered makes equal.
    equal_columns: Rc<[Vec<usize>]>,
    waits: bool,
    /// What is wanted of what is being solved.
    read: wanted::Read,
    /// How many rows are wanted of the query that is planned next, in any order: a guess.
    rows_wanted: Option<f64>,
    /// Whether EXPLAIN shows the subqueries of what is being finished.
    shows: bool,
    parts: usize,
    depth: usize,
    tries: usize,
    /// Rows that are read without a key: a guess.
    read_through: f64,
    /// What the query last planned costs.
    cost: f64,
    level: Level,
}

/// What belongs to the plan that is being made: the statement's, or that of a subquery in an
/// expression.
#[derive(Default)]
struct Level {
    /// The columns of the queries around it that it uses.
    args: Vec<usize>,
    subplans: Vec<SubPlan>,
    ctes: Vec<CtePlan>,
    /// The queries that the subplans are of.
    called: HashMap<*const Query, Called>,
    /// The greatest depth of the subplans called by what is being finished.
    subplan_depth: usize,
}

impl Planner<'_> {
    /// Plans an analyzed query of a statement with that many parameters.
    pub(super) fn plan_analyzed(&self, analyzed: Analyzed, params: usize) -> Result<QueryPlan> {
        let Analyzed { mut query, mut slots } = analyzed;
        decorrelate::decorrelate(&mut query, &mut slots)?;
        let mut planning = self.planning(&query, slots, params);
        let mut plan = planning.plan(&query, true)?;
        planning.complete(&mut plan)?;
        if self.accelerated {
            let rows = |table: &TableDef| planning.indexes.live_rows(table) as f64;
            accelerate::mark(&mut plan, planning.is_much(), &rows);
        }
        gather::mark(&mut plan);
        Ok(plan)
    }
}

impl<'a> Planner<'a> {
    fn planning(&self, query: &Query, slots: Vec<SlotKind>, params: usize) -> Planning<'a> {
        let mut cte_uses = HashMap::new();
        query.walk_ctes(&mut |cte| *cte_uses.entry(cte).or_default() += 1);
        Planning {
            indexes: self.indexes,
            ranges: self.ranges,
            kinds: slots,
            params,
            substituted: HashMap::new(),
            cte_uses,
            cte_depths: HashMap::new(),
            steps: 0,
            step_ctes: HashSet::new(),
            tables: Vec::new(),
            largest_table: 0,
            equal_columns: Rc::default(),
            waits: false,
            read: wanted::Read::All,
            rows_wanted: None,
            shows: true,
            parts: 0,
            depth: 0,
            tries: 0,
            read_through: 0.0,
            cost: 0.0,
            level: Level::default(),
        }
    }
}

impl Planning<'_> {
    /// The plan of a query, which has slots of its own. `with_output` says whether its columns are
    /// wanted.
    fn plan(&mut self, query: &Query, with_output: bool) -> Result<QueryPlan> {
        self.indexes.session.check_cancel()?;
        let path = self.query(query, &[])?;
        let cost = path.cost;
        let (mut root, mut exprs) = (path.node, path.targets);
        if !with_output {
            exprs.clear();
        }
        let mut ctes = std::mem::take(&mut self.level.ctes);
        self.drop_unused(&mut root, &exprs, &mut ctes);
        self.level.ctes = ctes;
        let local = self.finish(&mut root, &mut exprs, SlotSet::default())?;
        let columns = if with_output { query.columns.clone() } else { Vec::new() };
        self.cost = cost;
        let kept = kept_columns(&root, &self.level.ctes, &exprs, (&local, &self.kinds));
        let plan = self.plan_of_level(root, Output::new(exprs, columns), &local)?;
        Ok(QueryPlan { kept, ..plan })
    }

    /// The plan of the current level, which ends. It has these slots.
    fn plan_of_level(&mut self, root: Node, output: Output, own: &SlotSet) -> Result<QueryPlan> {
        self.check_depth(&root)?;
        let level = std::mem::take(&mut self.level);
        // What it was told of queries around it stays for the caller.
        self.level.args = level.args;
        self.level.subplan_depth = level.subplan_depth;
        Ok(QueryPlan {
            root,
            output,
            // All plans of the statement get the same ones when no more are made.
            slots: Arc::default(),
            window: own.window(),
            kept: Vec::new(),
            subplans: level.subplans,
            ctes: level.ctes,
            tables: Vec::new(),
            waits: false,
        })
    }

    /// Adds to the statement's plan what is known of all of its parts.
    fn complete(&mut self, plan: &mut QueryPlan) -> Result<()> {
        if !self.level.args.is_empty() {
            return Err(SqlError::internal("a column of no relation"));
        }
        let tables = std::mem::take(&mut self.tables);
        plan.tables = tables.into_iter().map(|(table, _)| table).collect();
        plan.waits = self.waits;
        share_slots(plan, &Arc::from(self.kinds.as_slice()));
        demand::mark(plan, true);
        Ok(())
    }

    /// A new slot for computed rows.
    fn new_slot(&mut self, columns: usize) -> Result<Slot> {
        let slot = u16::try_from(self.kinds.len()).map_err(|_| too_complex())?;
        self.kinds.push(SlotKind::Computed(columns));
        Ok(Slot(slot))
    }

    /// An expression of the query tree, with the columns of subqueries replaced that have become
    /// parts of the query around them.
    fn resolve(&mut self, expr: &Expr) -> Result<Expr> {
        let mut parts = 0;
        expr.walk(&mut |_| parts += 1);
        self.count(parts)?;
        if self.substituted.is_empty() {
            return Ok(expr.clone());
        }
        self.substitute(expr.clone())
    }

    fn resolve_all(&mut self, exprs: &[Expr]) -> Result<Vec<Expr>> {
        exprs.iter().map(|e| self.resolve(e)).collect()
    }

    fn substitute(&mut self, expr: Expr) -> Result<Expr> {
        if let Expr::Column(column) = &expr {
            let (slot, place) = slot_of(*column);
            let Some(target) = self.substituted.get(&slot).and_then(|targets| targets.get(place))
            else {
                return Ok(expr);
            };
            let target = target.clone();
            let mut parts = 0;
            target.walk(&mut |_| parts += 1);
            self.count(parts)?;
            return self.substitute(target);
        }
        expr.map_parts(&mut |part| self.substitute(part))
    }

    /// Counts what the plan is made of.
    fn count(&mut self, parts: usize) -> Result<()> {
        self.indexes.session.check_cancel()?;
        self.parts += parts;
        if self.parts > MAX_PARTS { Err(too_complex()) } else { Ok(()) }
    }

    /// Runs something one level of nesting deeper.
    fn nested<R>(&mut self, run: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.depth >= MAX_DEPTH {
            return Err(too_complex());
        }
        self.indexes.session.check_cancel()?;
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// The slots of which an expression uses columns, also in queries inside of it.
    fn slots_of(&self, expr: &Expr) -> SlotSet {
        let mut slots = SlotSet::default();
        expr.walk_all(&mut |e| self.note_slots(e, &mut slots));
        slots
    }

    fn note_slots(&self, part: &Expr, slots: &mut SlotSet) {
        let Expr::Column(column) = part else { return };
        let (slot, place) = slot_of(*column);
        match self.substituted.get(&slot).and_then(|targets| targets.get(place)) {
            Some(target) => target.walk_all(&mut |e| self.note_slots(e, slots)),
            None => slots.insert(slot),
        }
    }

    /// The slots of queries around a query of which it uses columns.
    fn slots_around(&self, query: &Query) -> SlotSet {
        let (mut slots, mut own) = (SlotSet::default(), SlotSet::default());
        query.walk(&mut |e| self.note_slots(e, &mut slots));
        query.walk_slots(&mut |slot| own.insert(slot));
        slots.without(&own)
    }
}

#[cold]
fn too_complex() -> SqlError {
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("Write the statement with less nesting, or fewer subqueries.")
}

fn share_slots(plan: &mut QueryPlan, slots: &Arc<[SlotKind]>) {
    plan.slots = Arc::clone(slots);
    plan.subplans.iter_mut().for_each(|subplan| share_slots(&mut subplan.plan, slots));
}
