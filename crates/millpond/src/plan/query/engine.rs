//! Which queries the query engine is to have, where there is one.

use super::PlannedQuery;
use super::node::{CteKind, Node, QueryPlan};
use super::node_walk::{each_own, inputs};
use crate::DataType;
use crate::analyze::tree::{AggregateFunction, JoinKind, Query, SetFunctionKind};
use crate::expr::Expr;
use crate::expr::functions::Param;
use crate::plan::select::LARGE_TABLE_ROWS;

/// As much work as to look up some 20,000 rows by key, one by one.
const MUCH_WORK: f64 = 130_000.0;

impl PlannedQuery {
    /// Whether the engine is to have it: its work is worth the milliseconds that each run of the
    /// engine begins with, and the engine answers it as PostgreSQL does.
    pub(in crate::plan) fn is_for_engine(&self) -> bool {
        let is_much = self.read_through >= LARGE_TABLE_ROWS as f64 || self.cost >= MUCH_WORK;
        self.largest_table >= LARGE_TABLE_ROWS
            && is_much
            && !stops_early(&self.plan.root)
            && !self.only_here
            && !has_peculiar_node(&self.plan)
    }
}

/// Whether a query has joins that the engine answers otherwise.
pub(super) fn has_peculiar_join(query: &Query) -> bool {
    let mut found = false;
    query.walk_joins(&mut |kind| found |= matches!(kind, JoinKind::Right | JoinKind::Full));
    found
}

/// Whether a function in FROM is `generate_series` of integers, which the engine has as well.
fn is_series_of_integers(kind: SetFunctionKind) -> bool {
    let SetFunctionKind::Rows(func) = kind else { return true };
    let integers = [DataType::Int4, DataType::Int8].map(Param::Type);
    let of_integers = |(_, ty): &(_, Param)| integers.contains(ty);
    func.name() == "generate_series"
        && func.columns().is_some_and(|columns| columns.iter().all(of_integers))
}

/// Whether no more rows are read than are returned: LIMIT ends the plan.
fn stops_early(root: &Node) -> bool {
    fn streams(node: &Node) -> bool {
        match node {
            Node::Scan(_) => true,
            Node::Project { input, .. } | Node::Filter { input, .. } => streams(input),
            Node::NestedLoop(join) => streams(&join.outer) && streams(&join.inner),
            _ => false,
        }
    }
    match root {
        Node::Limit(limit) => limit.limit.is_some() && streams(&limit.input),
        _ => false,
    }
}

/// Whether a plan has something that the engine answers otherwise, or not at all.
fn has_peculiar_node(plan: &QueryPlan) -> bool {
    let mut found = !plan.subplans.is_empty() || plan.waits;
    let mut see = |node: &Node| found |= is_peculiar(node);
    each_node(&plan.root, &mut see);
    for cte in &plan.ctes {
        match &cte.kind {
            CteKind::Plain(node, _) => each_node(node, &mut see),
            CteKind::Recursive { start, step, .. } => {
                each_node(&start.0, &mut see);
                each_node(&step.0, &mut see);
            }
        }
    }
    found || plan.output.exprs.iter().any(is_peculiar_expression)
}

fn each_node(node: &Node, visit: &mut dyn FnMut(&Node)) {
    visit(node);
    inputs(node).into_iter().for_each(|input| each_node(input, visit));
}

fn is_peculiar(node: &Node) -> bool {
    let mut peculiar = match node {
        Node::Window { .. } | Node::LockRows { .. } => true,
        Node::SetOp { all, .. } => *all,
        Node::Functions { functions, .. } => {
            functions.iter().any(|function| !is_series_of_integers(function.kind))
        }
        Node::Aggregate(aggregate) => aggregate.calls.iter().any(|call| match call.function {
            AggregateFunction::Avg => matches!(call.ty, DataType::Numeric { .. }),
            AggregateFunction::JsonList(_) | AggregateFunction::JsonObject(_) => true,
            _ => false,
        }),
        _ => false,
    };
    each_own(node, &mut |e| peculiar |= is_peculiar_expression(e));
    peculiar
}

/// Whether something is written as a cast to an integer, which rounds. Or it calls a function that
/// the engine does not have, or that means something else there.
fn is_peculiar_expression(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| {
        found |= match e {
            Expr::Cast(_, DataType::Int2 | DataType::Int4 | DataType::Int8, true) => true,
            Expr::Func(func, _) => func.is_only_here() || func.is_of_records(),
            _ => false,
        };
    });
    found
}
