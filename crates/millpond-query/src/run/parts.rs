//! What a node is made of: its inputs, its expressions, the slots that it fills. Also whether it
//! gives the same rows each time it is run.

use std::ops::Range;

use crate::analyze::tree::{Bound, JoinKind, SetFunctionKind, Slot, slot_of};
use crate::expr::Expr;
use crate::plan::Access;
use crate::plan::query::node::{CteKind, Node, QueryPlan};

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
        | Node::Distinct { input, .. }
        | Node::LockRows { input, .. } => add_output(input, out),
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
        Node::HashJoin(join) => {
            add_output(&join.outer, out);
            if !matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                add_output(&join.inner, out);
            }
        }
    }
}

/// Calls a function for each input of a node.
fn inputs<'n>(node: &'n Node, visit: &mut dyn FnMut(&'n Node)) {
    match node {
        Node::Result { .. }
        | Node::Scan(_)
        | Node::Values { .. }
        | Node::Functions { .. }
        | Node::Cte { .. }
        | Node::WorkTable { .. } => {}
        Node::Project { input, .. }
        | Node::Filter { input, .. }
        | Node::Materialize { input }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Window { input, .. }
        | Node::LockRows { input, .. } => visit(input),
        Node::Limit(limit) => visit(&limit.input),
        Node::Aggregate(aggregate) => visit(&aggregate.input),
        Node::NestedLoop(join) => {
            visit(&join.outer);
            visit(&join.inner);
        }
        Node::HashJoin(join) => {
            visit(&join.outer);
            visit(&join.inner);
        }
        Node::Append { inputs, .. } => inputs.iter().for_each(|(input, _)| visit(input)),
        Node::SetOp { left, right, .. } => {
            visit(&left.0);
            visit(&right.0);
        }
    }
}

/// Calls a function for each expression of a node, without those of its inputs.
fn expressions(node: &Node, visit: &mut dyn FnMut(&Expr)) {
    match node {
        Node::Cte { .. }
        | Node::WorkTable { .. }
        | Node::Materialize { .. }
        | Node::Append { .. }
        | Node::SetOp { .. } => {}
        Node::Result { filter } => filter.iter().for_each(visit),
        Node::Scan(scan) => {
            access(&scan.access, visit);
            scan.filter.iter().for_each(visit);
        }
        Node::Values { rows, .. } => rows.iter().flatten().for_each(visit),
        Node::Functions { functions, .. } => {
            functions.iter().flat_map(|function| &function.args).for_each(visit);
        }
        Node::Project { exprs, .. } => exprs.iter().for_each(visit),
        Node::Filter { condition, .. } => visit(condition),
        Node::LockRows { condition, .. } => condition.iter().for_each(visit),
        Node::Sort { keys, bound, .. } => {
            keys.iter().for_each(|key| visit(&key.expr));
            if let Some(bound) = bound {
                visit(&bound.limit);
                bound.offset.iter().for_each(&mut *visit);
            }
        }
        Node::Distinct { keys, .. } => keys.iter().for_each(visit),
        Node::Limit(limit) => {
            limit.limit.iter().chain(&limit.offset).for_each(&mut *visit);
            limit.ties.iter().flatten().for_each(|key| visit(&key.expr));
        }
        Node::Aggregate(aggregate) => {
            aggregate.keys.iter().for_each(&mut *visit);
            for call in &aggregate.calls {
                call.args.iter().chain(&call.filter).for_each(&mut *visit);
                call.order_by.iter().for_each(|key| visit(&key.expr));
            }
        }
        Node::Window { window, .. } => {
            window.partition_by.iter().for_each(&mut *visit);
            window.order_by.iter().for_each(|key| visit(&key.expr));
            for call in &window.calls {
                call.args.iter().chain(&call.filter).for_each(&mut *visit);
            }
            for bound in [&window.frame.start, &window.frame.end] {
                if let Bound::Preceding(offset) | Bound::Following(offset) = bound {
                    visit(offset);
                }
            }
        }
        Node::NestedLoop(join) => join.on.iter().for_each(visit),
        Node::HashJoin(join) => {
            for (outer, inner) in &join.keys {
                visit(outer);
                visit(inner);
            }
            join.on.iter().for_each(visit);
        }
    }
}

/// Whether a node or one of its inputs calls a volatile function, or has a query of its own that
/// might.
pub(super) fn is_volatile(node: &Node) -> bool {
    let mut volatile = false;
    expressions(node, &mut |expr| {
        expr.walk(&mut |part| volatile |= matches!(part, Expr::SubPlan(_)));
        volatile |= expr.is_volatile();
    });
    if let Node::Functions { functions, .. } = node {
        volatile |= functions
            .iter()
            .any(|function| matches!(function.kind, SetFunctionKind::Rows(f) if f.is_volatile()));
    }
    inputs(node, &mut |input| volatile = volatile || is_volatile(input));
    volatile
}

fn access(access: &Access, visit: &mut dyn FnMut(&Expr)) {
    match access {
        Access::Nothing | Access::Heap => {}
        Access::Point { key, .. } => key.iter().for_each(|part| visit(&part.expr)),
        Access::Range(range) => range.parts().for_each(|part| visit(&part.expr)),
    }
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
    expressions(node, &mut |expr| fixed &= is_expr_fixed(expr, plan, changes, Some(own)));
    inputs(node, &mut |input| fixed = fixed && is_fixed_within(input, plan, changes, own));
    fixed
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
    inputs(node, &mut |input| all_slots(input, out));
}
