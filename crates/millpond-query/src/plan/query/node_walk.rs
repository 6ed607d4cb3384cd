//! Looking at all nodes of a plan, and at their expressions.

use millpond_engine::catalog::IndexDef;
use millpond_engine::table::LockStrength;
use smallvec::{SmallVec, smallvec};

use super::node::{CteKind, Node, QueryPlan, Scan};
use super::slot_set::SlotSet;
use crate::analyze::tree::{Bound, Slot, WindowCall};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{Access, SortKey};

/// What is done to each expression of a node.
type Each<'e> = &'e mut dyn FnMut(&mut Expr) -> Result<()>;

/// Adds the slots that a node fills.
pub(super) fn produced(node: &Node, slots: &mut SlotSet) {
    let own = match node {
        Node::Scan(scan) => Some(scan.slot),
        Node::Sample(sample) => Some(sample.slot),
        Node::Values { slot, .. }
        | Node::Functions { slot, .. }
        | Node::Cte { slot, .. }
        | Node::WorkTable { slot, .. }
        | Node::Project { slot, .. }
        | Node::Append { slot, .. }
        | Node::SetOp { slot, .. } => Some(*slot),
        Node::Aggregate(aggregate) => Some(aggregate.slot),
        Node::Window { window, .. } => Some(window.slot),
        _ => None,
    };
    own.into_iter().for_each(|slot| slots.insert(slot));
    for input in inputs(node) {
        produced(input, slots);
    }
}

/// Calls `visit` for all scans of tables.
pub fn each_scan<'n>(node: &'n Node, visit: &mut dyn FnMut(&'n Scan)) {
    if let Node::Scan(scan) = node {
        visit(scan);
    }
    inputs(node).into_iter().for_each(|input| each_scan(input, visit));
}

/// The nodes below a node.
pub(crate) fn inputs(node: &Node) -> SmallVec<[&Node; 2]> {
    match node {
        Node::Result { .. }
        | Node::Scan(_)
        | Node::Sample(_)
        | Node::Values { .. }
        | Node::Functions { .. }
        | Node::Cte { .. }
        | Node::WorkTable { .. } => SmallVec::new(),
        Node::Project { input, .. }
        | Node::Filter { input, .. }
        | Node::Materialize { input }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Window { input, .. } => smallvec![&**input],
        Node::LockRows(lock) => smallvec![&lock.input],
        Node::NestedLoop(join) => smallvec![&join.outer, &join.inner],
        Node::HashJoin(join) => smallvec![&join.outer, &join.inner],
        Node::Limit(limit) => smallvec![&limit.input],
        Node::Aggregate(aggregate) => smallvec![&aggregate.input],
        Node::Append { inputs, .. } => inputs.iter().map(|(node, _)| node).collect(),
        Node::SetOp { left, right, .. } => smallvec![&left.0, &right.0],
    }
}

pub(super) fn inputs_mut(node: &mut Node) -> SmallVec<[&mut Node; 2]> {
    match node {
        Node::Result { .. }
        | Node::Scan(_)
        | Node::Sample(_)
        | Node::Values { .. }
        | Node::Functions { .. }
        | Node::Cte { .. }
        | Node::WorkTable { .. } => SmallVec::new(),
        Node::Project { input, .. }
        | Node::Filter { input, .. }
        | Node::Materialize { input }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Window { input, .. } => smallvec![&mut **input],
        Node::LockRows(lock) => smallvec![&mut lock.input],
        Node::NestedLoop(join) => smallvec![&mut join.outer, &mut join.inner],
        Node::HashJoin(join) => smallvec![&mut join.outer, &mut join.inner],
        Node::Limit(limit) => smallvec![&mut limit.input],
        Node::Aggregate(aggregate) => smallvec![&mut aggregate.input],
        Node::Append { inputs, .. } => inputs.iter_mut().map(|(node, _)| node).collect(),
        Node::SetOp { left, right, .. } => smallvec![&mut left.0, &mut right.0],
    }
}

/// Calls `each` for all expressions of a node and those below it.
pub(super) fn each_expr(node: &mut Node, each: Each<'_>) -> Result<()> {
    own_exprs(node, each)?;
    for input in inputs_mut(node) {
        each_expr(input, each)?;
    }
    Ok(())
}

fn own_exprs(node: &mut Node, each: Each<'_>) -> Result<()> {
    match node {
        Node::Cte { .. }
        | Node::WorkTable { .. }
        | Node::Materialize { .. }
        | Node::Append { .. }
        | Node::SetOp { .. } => Ok(()),
        Node::Result { filter } => filter.iter_mut().try_for_each(each),
        Node::Scan(scan) => {
            access_exprs(&mut scan.access, each)?;
            scan.filter.iter_mut().try_for_each(each)
        }
        Node::Sample(sample) => {
            each(&mut sample.percent)?;
            sample.seed.iter_mut().try_for_each(each)
        }
        Node::Values { rows, .. } => rows.iter_mut().flatten().try_for_each(each),
        Node::Functions { functions, .. } => {
            functions.iter_mut().flat_map(|function| &mut function.args).try_for_each(each)
        }
        Node::Project { exprs, .. } => exprs.iter_mut().try_for_each(each),
        Node::Filter { condition, .. } => each(condition),
        Node::NestedLoop(join) => join.on.iter_mut().try_for_each(each),
        Node::HashJoin(join) => {
            for (outer, inner) in &mut join.keys {
                each(outer)?;
                each(inner)?;
            }
            join.on.iter_mut().try_for_each(each)
        }
        Node::Sort { keys, bound, .. } => {
            sort_exprs(keys, each)?;
            let bounds = bound.iter_mut();
            bounds
                .flat_map(|b| std::iter::once(&mut b.limit).chain(&mut b.offset))
                .try_for_each(each)
        }
        Node::Limit(limit) => {
            if let Some(ties) = &mut limit.ties {
                sort_exprs(ties, each)?;
            }
            limit.limit.iter_mut().chain(&mut limit.offset).try_for_each(each)
        }
        Node::Distinct { keys, .. } => keys.iter_mut().try_for_each(each),
        Node::Aggregate(aggregate) => {
            aggregate.keys.iter_mut().try_for_each(&mut *each)?;
            for call in &mut aggregate.calls {
                call.args.iter_mut().chain(&mut call.filter).try_for_each(&mut *each)?;
                sort_exprs(&mut call.order_by, each)?;
            }
            Ok(())
        }
        Node::Window { window, .. } => {
            window.partition_by.iter_mut().try_for_each(&mut *each)?;
            sort_exprs(&mut window.order_by, each)?;
            for bound in [&mut window.frame.start, &mut window.frame.end] {
                if let Bound::Preceding(e) | Bound::Following(e) = bound {
                    each(e)?;
                }
            }
            for WindowCall { args, filter, .. } in &mut window.calls {
                args.iter_mut().chain(filter).try_for_each(&mut *each)?;
            }
            Ok(())
        }
        Node::LockRows(lock) => lock.exprs_mut().try_for_each(each),
    }
}

/// Calls `each` for the expressions of a node, without those of the nodes below it.
pub(crate) fn each_own(node: &Node, each: &mut dyn FnMut(&Expr)) {
    match node {
        Node::Cte { .. }
        | Node::WorkTable { .. }
        | Node::Materialize { .. }
        | Node::Append { .. }
        | Node::SetOp { .. } => {}
        Node::Result { filter } => filter.iter().for_each(each),
        Node::Scan(scan) => {
            match &scan.access {
                Access::Nothing | Access::Heap => {}
                Access::Point { key, .. } => key.iter().for_each(|part| each(&part.expr)),
                Access::Range(range) => range.parts().for_each(|part| each(&part.expr)),
                Access::Tids(tids) => tids.exprs().iter().for_each(&mut *each),
            }
            scan.filter.iter().for_each(each);
        }
        Node::Sample(sample) => sample.exprs().for_each(each),
        Node::Values { rows, .. } => rows.iter().flatten().for_each(each),
        Node::Functions { functions, .. } => {
            functions.iter().flat_map(|function| &function.args).for_each(each);
        }
        Node::Project { exprs, .. } => exprs.iter().for_each(each),
        Node::Filter { condition, .. } => each(condition),
        Node::NestedLoop(join) => join.on.iter().for_each(each),
        Node::HashJoin(join) => {
            join.keys.iter().flat_map(|(a, b)| [a, b]).chain(&join.on).for_each(each);
        }
        Node::Sort { keys, .. } => keys.iter().map(|key| &key.expr).for_each(each),
        Node::Limit(limit) => {
            let ties = limit.ties.iter().flatten().map(|key| &key.expr);
            limit.limit.iter().chain(&limit.offset).chain(ties).for_each(each);
        }
        Node::Distinct { keys, .. } => keys.iter().for_each(each),
        Node::Aggregate(aggregate) => {
            aggregate.keys.iter().for_each(&mut *each);
            for call in &aggregate.calls {
                let sort = call.order_by.iter().map(|key| &key.expr);
                call.args.iter().chain(&call.filter).chain(sort).for_each(&mut *each);
            }
        }
        Node::Window { window, .. } => {
            let sort = window.order_by.iter().map(|key| &key.expr);
            window.partition_by.iter().chain(sort).for_each(&mut *each);
            let calls = window.calls.iter();
            calls.flat_map(|call| call.args.iter().chain(&call.filter)).for_each(each);
        }
        Node::LockRows(lock) => lock.exprs().for_each(each),
    }
}

fn access_exprs(access: &mut Access, each: Each<'_>) -> Result<()> {
    match access {
        Access::Nothing | Access::Heap => Ok(()),
        Access::Point { key, .. } => key.iter_mut().try_for_each(|part| each(&mut part.expr)),
        Access::Range(range) => range.parts_mut().try_for_each(|part| each(&mut part.expr)),
        Access::Tids(tids) => tids.exprs_mut().iter_mut().try_for_each(each),
    }
}

fn sort_exprs(keys: &mut [SortKey], each: Each<'_>) -> Result<()> {
    keys.iter_mut().try_for_each(|key| each(&mut key.expr))
}

impl QueryPlan {
    /// How it locks rows, if it does.
    pub(crate) fn row_lock(&self) -> Option<LockStrength> {
        let mut strongest = None;
        self.each_row_lock(&mut |_, strength| strongest = strongest.max(Some(strength)));
        strongest
    }

    /// Calls `visit` for each slot whose rows it locks.
    pub(crate) fn each_row_lock(&self, visit: &mut dyn FnMut(Slot, LockStrength)) {
        // What locks rows may wait for them.
        if !self.waits {
            return;
        }
        self.each_node(&mut |node| {
            if let Node::LockRows(lock) = node {
                lock.locks.iter().for_each(|(slot, lock)| visit(*slot, lock.strength));
            }
        });
    }

    /// Calls `visit` for each index that it reads.
    pub fn each_index(&self, visit: &mut dyn FnMut(&IndexDef)) {
        self.each_node(&mut |node| {
            if let Node::Scan(scan) = node {
                scan.access.index().into_iter().for_each(&mut *visit);
            }
        });
    }

    /// Calls `visit` for each node, also in queries of WITH and in expressions.
    fn each_node(&self, visit: &mut dyn FnMut(&Node)) {
        fn of(node: &Node, visit: &mut dyn FnMut(&Node)) {
            visit(node);
            inputs(node).into_iter().for_each(|input| of(input, visit));
        }
        of(&self.root, visit);
        for cte in &self.ctes {
            match &cte.kind {
                CteKind::Plain(node, _) => of(node, visit),
                CteKind::Modify(modify) => of(&modify.input, visit),
                CteKind::Recursive { start, step, .. } => {
                    of(&start.0, visit);
                    of(&step.0, visit);
                }
            }
        }
        self.subplans.iter().for_each(|subplan| subplan.plan.each_node(visit));
    }
}
