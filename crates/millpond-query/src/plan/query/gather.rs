//! Which parts of a plan several cores may run: see [`run::gather`](crate::run).
//!
//! Such a part is a scan of a table's pages, with the filters, computed columns and joins that its
//! rows go through. The inner sides of these joins are hash tables or are found by an index.
//! Threads have no session, so no expression may ask anything of it. Whether the table is large
//! enough is decided when the plan runs, because a plan is kept and the table may grow.
//!
//! An aggregation or a sort of such a part may be run in parts, too: threads aggregate or sort what
//! they read, and the session puts their groups together or merges.
//!
//! What is read only as far as a LIMIT wants, or again for each row outside, stays with the
//! session.

use super::accelerate::is_work_of_threads;
use super::node::{
    Aggregate, CteKind, HashJoin, NestedLoop, Node, QueryPlan, Scan, Strategy, SubPlan,
};
use super::node_walk::{each_own, inputs_mut};
use crate::DataType;
use crate::analyze::tree::{AggregateCall, AggregateFunction, JoinKind, SubqueryKind};
use crate::expr::{Compare, Expr, SubPlanCall};
use crate::plan::Access;
use crate::system_relations::is_system;

/// Marks these parts.
pub(super) fn mark(plan: &mut QueryPlan) {
    if plan.waits || plan.modifications().next().is_some() {
        return;
    }
    let marking = Marking { subplans: &plan.subplans };
    marking.below(&mut plan.root, true);
    for cte in &mut plan.ctes {
        if let CteKind::Plain(node, _) = &mut cte.kind {
            marking.below(node, true);
        }
    }
    for subplan in plan.subplans.iter_mut().filter(|subplan| runs_once(subplan)) {
        mark(&mut subplan.plan);
    }
}

/// Whether a subquery runs for one row at most. One with a left side may run for each.
fn runs_once(subplan: &SubPlan) -> bool {
    match subplan.kind {
        // Its rows become a hash table.
        SubqueryKind::Any(_, Compare::Eq) => subplan.once,
        SubqueryKind::Any(..) | SubqueryKind::All(..) => false,
        _ => subplan.once,
    }
}

/// Whether the rows of a call may be taken in in parts, and then the parts in the order of their
/// rows. The result is the same; that of floats up to its last digits, as in PostgreSQL.
fn has_parts(call: &AggregateCall) -> bool {
    use AggregateFunction as F;
    let is_float = matches!(call.ty, DataType::Float4 | DataType::Float8);
    let is_exact = matches!(call.ty, DataType::Int8 | DataType::Numeric { .. });
    let has_parts = match call.function {
        F::Sum | F::Avg => is_exact || is_float,
        F::VarPop | F::VarSamp | F::StddevPop | F::StddevSamp => true,
        F::CountRows | F::Count | F::Min | F::Max | F::BoolAnd | F::BoolOr => true,
        F::BitAnd | F::BitOr | F::BitXor => true,
        _ => false,
    };
    has_parts && !call.distinct && call.order_by.is_empty() && call.args.len() <= 1
}

/// The scan whose rows go through a node that several cores may run.
pub(super) fn gathered_scan(node: &Node) -> Option<&Scan> {
    match node {
        Node::Scan(scan) if scan.gathers => Some(scan),
        Node::HashJoin(join) if join.gathers => driving_scan(&join.outer),
        Node::NestedLoop(join) if join.gathers => driving_scan(&join.outer),
        Node::Aggregate(aggregate) if aggregate.in_parts => driving_scan(&aggregate.input),
        Node::Sort { input, in_parts: true, .. } => driving_scan(input),
        _ => None,
    }
}

/// The scan whose rows go through a node.
pub(crate) fn driving_scan(node: &Node) -> Option<&Scan> {
    match node {
        Node::Scan(scan) => Some(scan),
        Node::Filter { input, .. } | Node::Project { input, .. } => driving_scan(input),
        Node::HashJoin(join) => driving_scan(&join.outer),
        Node::NestedLoop(join) => driving_scan(&join.outer),
        _ => None,
    }
}

struct Marking<'p> {
    subplans: &'p [SubPlan],
}

impl Marking<'_> {
    /// Marks what is at a node and below it. `is_drained`: all rows of the node are wanted.
    fn below(&self, node: &mut Node, is_drained: bool) {
        if is_drained && self.is_shared(node) && has_work(node) {
            match node {
                Node::Scan(scan) => scan.gathers = true,
                Node::HashJoin(join) => join.gathers = true,
                Node::NestedLoop(join) => join.gathers = true,
                _ => return inputs_mut(node).into_iter().for_each(|n| self.below(n, true)),
            }
            return self.inner_sides(node);
        }
        match node {
            Node::Limit(limit) => self.below(&mut limit.input, false),
            Node::NestedLoop(join) => {
                self.below(&mut join.outer, is_drained);
                if let Node::Materialize { input } = &mut join.inner {
                    self.below(input, is_drained);
                }
            }
            // Its rows come when the outer side has been read.
            Node::HashJoin(join) if join.gives_inner => {
                self.below(&mut join.inner, true);
                if self.is_probed(join) && self.is_shared(&join.outer) {
                    join.gathers = true;
                    return self.inner_sides(&mut join.outer);
                }
                self.below(&mut join.outer, true);
            }
            // Its last rows come when the outer side has been read: no thread has them.
            Node::HashJoin(join) if is_drained && self.can_give_unmatched(join) => {
                join.gathers = true;
                self.inner_sides(node);
            }
            Node::HashJoin(join) => {
                self.below(&mut join.outer, is_drained);
                self.below(&mut join.inner, true);
            }
            Node::Sort { input, keys, presorted: 0, in_parts, .. } => {
                *in_parts = self.is_shared(input) && keys.iter().all(|k| self.can_compute(&k.expr));
                // If a subquery of a key fails, the session sorts, and threads may still scan.
                self.below(input, true);
            }
            Node::Aggregate(aggregate) if self.can_aggregate(aggregate) => {
                aggregate.in_parts = true;
                // If a subquery fails, threads may still read.
                self.below(&mut aggregate.input, true);
            }
            Node::Aggregate(aggregate) => self.below(&mut aggregate.input, true),
            Node::SetOp { left, right, .. } => {
                self.below(&mut left.0, true);
                self.below(&mut right.0, true);
            }
            other => inputs_mut(other).into_iter().for_each(|n| self.below(n, is_drained)),
        }
    }

    /// Marks the sides of joins that fill hash tables: the session reads them before.
    fn inner_sides(&self, node: &mut Node) {
        match node {
            Node::Filter { input, .. } | Node::Project { input, .. } => self.inner_sides(input),
            Node::HashJoin(join) => {
                self.below(&mut join.inner, true);
                self.inner_sides(&mut join.outer);
            }
            Node::NestedLoop(join) => self.inner_sides(&mut join.outer),
            _ => {}
        }
    }

    /// Whether threads can aggregate what they read, so that the session puts their groups
    /// together.
    fn can_aggregate(&self, aggregate: &Aggregate) -> bool {
        let can_compute = |call: &AggregateCall| {
            has_parts(call) && call.args.iter().chain(&call.filter).all(|e| self.can_compute(e))
        };
        aggregate.sets.is_none()
            && aggregate.strategy != Strategy::Sorted
            && aggregate.keys.iter().all(|key| self.can_compute(key))
            && aggregate.calls.iter().all(can_compute)
            && self.is_shared(&aggregate.input)
    }

    /// Whether threads can do all that is done with the rows of one scan.
    fn is_shared(&self, node: &Node) -> bool {
        match node {
            Node::Scan(scan) => {
                matches!(scan.access, Access::Heap)
                    && !is_system(&scan.table)
                    && scan.filter.iter().all(|filter| self.can_compute(filter))
            }
            Node::Filter { input, condition } => {
                self.can_compute(condition) && self.is_shared(input)
            }
            Node::Project { input, exprs, .. } => {
                exprs.iter().all(|expr| self.can_compute(expr)) && self.is_shared(input)
            }
            Node::HashJoin(join) => {
                !join.gives_inner && self.is_probed(join) && self.is_shared(&join.outer)
            }
            Node::NestedLoop(join) => self.is_looked_up(join) && self.is_shared(&join.outer),
            _ => false,
        }
    }

    /// Whether an index finds the inner rows.
    fn is_looked_up(&self, join: &NestedLoop) -> bool {
        let Node::Scan(scan) = &join.inner else { return false };
        let mut can_compute = join.on.iter().all(|on| self.can_compute(on));
        each_own(&join.inner, &mut |expr| can_compute &= self.can_compute(expr));
        can_compute && scan.access.index().is_some() && !is_system(&scan.table)
    }

    fn is_probed(&self, join: &HashJoin) -> bool {
        matches!(join.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti)
            && self.can_probe(join)
    }

    /// Whether threads give the rows that match, and the session the inner rows without a match.
    fn can_give_unmatched(&self, join: &HashJoin) -> bool {
        matches!(join.kind, JoinKind::Right | JoinKind::Full)
            && self.can_probe(join)
            && self.is_shared(&join.outer)
    }

    fn can_probe(&self, join: &HashJoin) -> bool {
        join.keys.iter().all(|(outer, _)| self.can_compute(outer))
            && join.on.iter().all(|on| self.can_compute(on))
    }

    fn can_compute(&self, expr: &Expr) -> bool {
        // One with a left side has another value for each row.
        let is_computed = |call: &SubPlanCall| {
            let is_once = |plan: &SubPlan| plan.once;
            call.left.is_empty() && self.subplans.get(call.number).is_some_and(is_once)
        };
        is_work_of_threads(expr, &is_computed)
    }
}

/// Whether there is more to do with a row than to hand it on.
fn has_work(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => scan.filter.is_some(),
        Node::Project { input, .. } => has_work(input),
        _ => true,
    }
}
