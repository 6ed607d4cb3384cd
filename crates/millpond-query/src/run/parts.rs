//! What a node is made of: its inputs, its expressions, the slots that it fills. Also whether it
//! gives the same rows each time it is run.

use std::ops::Range;

use crate::analyze::tree::{JoinKind, Slot, slot_of};
use crate::expr::{Expr, Func};
use crate::plan::query::node::{CteKind, Node, QueryPlan};
use crate::plan::query::node_walk::{each_own, inputs};

/// The slots in which a node's rows are.
pub(super) fn output(node: &Node) -> Vec<Slot> {
    let mut slots = Vec::new();
    add_output(node, &mut slots);
    slots
}

fn add_output(node: &Node, out: &mut Vec<Slot>) {
    match node {
        Node::Result { .. } => {}
        Node::Scan(scan) => out.push(scan.slot),
        Node::Sample(sample) => out.push(sample.slot),
        Node::Values { slot, .. }
        | Node::Functions { slot, .. }
        | Node::Cte { slot, .. }
        | Node::WorkTable { slot, .. }
        | Node::Project { slot, .. }
        | Node::Append { slot, .. }
        | Node::SetOp { slot, .. } => out.push(*slot),
        Node::Aggregate(aggregate) => out.push(aggregate.slot),
        Node::Filter { input, .. }
        | Node::Materialize { input }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. } => add_output(input, out),
        Node::LockRows(lock) => add_output(&lock.input, out),
        Node::Limit(limit) => add_output(&limit.input, out),
        Node::Window { input, window } => {
            add_output(input, out);
            out.push(window.slot);
        }
        Node::NestedLoop(join) => {
            add_output(&join.outer, out);
            if !matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                add_output(&join.inner, out);
            }
        }
        Node::HashJoin(join) if join.gives_inner => add_output(&join.inner, out),
        Node::HashJoin(join) => {
            add_output(&join.outer, out);
            if !matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                add_output(&join.inner, out);
            }
        }
    }
}

/// Whether a node or one of its inputs calls a volatile function, or has a query of its own that
/// might.
pub(super) fn is_volatile(node: &Node) -> bool {
    let mut volatile = false;
    each_own(node, &mut |expr| {
        expr.walk(&mut |part| volatile |= matches!(part, Expr::SubPlan(_)));
        volatile |= expr.is_volatile();
    });
    if let Node::Functions { functions, .. } = node {
        volatile |=
            functions.iter().any(|function| function.kind.func().is_some_and(Func::is_volatile));
    }
    volatile || inputs(node).into_iter().any(is_volatile)
}

/// What may be different when a plan is run again.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    /// These parameters.
    pub(super) params: Range<usize>,
    /// The rows of the queries of WITH.
    pub(super) ctes: bool,
}

/// Whether a node gives the same rows each time it is run. Then it uses no row from outside of it,
/// no parameter that changes, and no work table. (A volatile function is not a reason to run it
/// again.)
pub(super) fn is_fixed(node: &Node, plan: &QueryPlan, changes: &Changes) -> bool {
    let mut own = Vec::new();
    all_slots(node, &mut own);
    is_fixed_within(node, plan, changes, &own)
}

/// The same for a subplan without arguments. Of parameters it sees those of the statement alone.
pub(super) fn is_subplan_fixed(plan: &QueryPlan, changes: Changes) -> bool {
    let changes = Changes { params: 0..0, ..changes };
    let mut fixed = is_fixed(&plan.root, plan, &changes);
    for expr in &plan.output.exprs {
        fixed = fixed && is_expr_fixed(expr, plan, &changes, None);
    }
    fixed
        && plan.ctes.iter().all(|cte| match &cte.kind {
            CteKind::Plain(node, _) => is_fixed(node, plan, &changes),
            // Its step uses its work table.
            CteKind::Recursive { .. } => !changes.ctes,
            CteKind::Modify(_) => true,
        })
}

fn is_fixed_within(node: &Node, plan: &QueryPlan, changes: &Changes, own: &[Slot]) -> bool {
    let mut fixed = match node {
        Node::WorkTable { .. } => false,
        Node::Cte { varies, .. } => !changes.ctes && !varies,
        _ => true,
    };
    each_own(node, &mut |expr| fixed &= is_expr_fixed(expr, plan, changes, Some(own)));
    fixed && inputs(node).into_iter().all(|input| is_fixed_within(input, plan, changes, own))
}

/// The same for an expression over the rows of some slots; over any without them.
pub(super) fn is_expr_fixed(
    expr: &Expr,
    plan: &QueryPlan,
    changes: &Changes,
    own: Option<&[Slot]>,
) -> bool {
    let mut fixed = true;
    expr.walk(&mut |part| match part {
        Expr::Column(column) => {
            fixed &= own.is_none_or(|own| own.contains(&slot_of(*column).0));
        }
        Expr::Param(number) => fixed &= !changes.params.contains(number),
        Expr::SubPlan(call) => {
            let subplan = plan.subplans.get(call.number);
            let is_fixed = |plan| is_subplan_fixed(plan, changes.clone());
            fixed = fixed && subplan.is_some_and(|subplan| is_fixed(&subplan.plan));
        }
        _ => {}
    });
    fixed
}

/// All slots that a node and its inputs fill.
fn all_slots(node: &Node, out: &mut Vec<Slot>) {
    match node {
        Node::Append { inputs, .. } => out.extend(inputs.iter().map(|(_, slot)| *slot)),
        Node::SetOp { left, right, .. } => out.extend([left.1, right.1]),
        _ => {}
    }
    add_output(node, out);
    inputs(node).into_iter().for_each(|input| all_slots(input, out));
}
