//! Which queries the query engine is to have, where there is one.

use super::PlannedQuery;
use super::node::{Node, QueryPlan};
use super::node_walk::{each_own, inputs};
use crate::DataType;
use crate::analyze::tree::{AggregateCall, AggregateFunction, JoinKind, Query};
use crate::expr::{Arith, Expr};
use crate::plan::select::LARGE_TABLE_ROWS;
use crate::system_relations::is_system;

/// As much work as to look up some 20,000 rows by key, one by one.
const MUCH_WORK: f64 = 130_000.0;

/// A plan of more nodes is not for the engine, whose own planning can't be interrupted.
const MOST_NODES: usize = 64;

impl PlannedQuery {
    /// Whether the engine is to have it. It must aggregate a large table or a join of such. The
    /// work must be worth the milliseconds that each run of the engine begins with. The engine must
    /// compute all that is in it as PostgreSQL does, in steps that are short enough for a cancel.
    pub(in crate::plan) fn is_for_engine(&self) -> bool {
        let is_much = self.read_through >= LARGE_TABLE_ROWS as f64 || self.cost >= MUCH_WORK;
        self.largest_table >= LARGE_TABLE_ROWS
            && is_much
            && !self.only_here
            && is_aggregate_of_tables(&self.plan)
    }
}

/// Whether a query has joins that the engine answers otherwise.
pub(super) fn has_peculiar_join(query: &Query) -> bool {
    let mut found = false;
    query.walk_joins(&mut |kind| found |= matches!(kind, JoinKind::Right | JoinKind::Full));
    found
}

/// Whether a plan aggregates tables and joins of tables, and computes only what the engine has.
fn is_aggregate_of_tables(plan: &QueryPlan) -> bool {
    if !plan.subplans.is_empty() || !plan.ctes.is_empty() || plan.waits {
        return false;
    }
    let (mut nodes, mut aggregates, mut shared) = (0, false, true);
    each_node(&plan.root, &mut |node| {
        nodes += 1;
        aggregates |= matches!(node, Node::Aggregate(_));
        shared &= is_shared(node);
    });
    aggregates
        && shared
        && nodes <= MOST_NODES
        && plan.output.exprs.iter().all(is_shared_expression)
}

fn each_node(node: &Node, visit: &mut dyn FnMut(&Node)) {
    visit(node);
    inputs(node).into_iter().for_each(|input| each_node(input, visit));
}

/// Whether the engine does what a node does.
fn is_shared(node: &Node) -> bool {
    let mut shared = match node {
        Node::Scan(scan) => !is_system(&scan.table),
        Node::Project { .. }
        | Node::Filter { .. }
        | Node::NestedLoop(_)
        | Node::HashJoin(_)
        | Node::Materialize { .. }
        | Node::Sort { .. }
        | Node::Distinct { .. } => true,
        Node::Limit(limit) => limit.ties.is_none(),
        Node::Aggregate(aggregate) => {
            aggregate.sets.is_none() && aggregate.calls.iter().all(is_shared_aggregate)
        }
        _ => false,
    };
    each_own(node, &mut |e| shared &= is_shared_expression(e));
    shared
}

fn is_shared_aggregate(call: &AggregateCall) -> bool {
    match call.function {
        AggregateFunction::Sum | AggregateFunction::Avg
            if matches!(call.ty, DataType::Other { .. }) =>
        {
            false
        }
        AggregateFunction::CountRows
        | AggregateFunction::Count
        | AggregateFunction::Sum
        | AggregateFunction::Min
        | AggregateFunction::Max
        | AggregateFunction::BoolAnd
        | AggregateFunction::BoolOr => true,
        AggregateFunction::Avg => !matches!(call.ty, DataType::Numeric { .. }),
        _ => false,
    }
}

/// Functions that mean the same in the engine, and whose work on one row is short.
const SHARED_FUNCTIONS: &[&str] = &[
    "abs",
    "date_mi_interval",
    "date_part",
    "date_pl_interval",
    "date_trunc",
    "extract",
    "length",
    "lower",
    "substr",
    "substring",
    "timestamp_mi_interval",
    "timestamp_pl_interval",
    "upper",
];

/// Whether the engine computes all parts of an expression as they are computed here. A cast that is
/// written out rounds, cuts or reads text in PostgreSQL's way, so it is not among them.
fn is_shared_expression(expr: &Expr) -> bool {
    let mut shared = true;
    expr.walk(&mut |e| {
        shared &= match e {
            Expr::Const(_)
            | Expr::Param(_)
            | Expr::Column(_)
            | Expr::Neg(_)
            | Expr::Compare(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(..)
            | Expr::IsBool(..)
            | Expr::Distinct(..)
            | Expr::In(..)
            | Expr::Case(..)
            | Expr::Coalesce(_)
            | Expr::Concat(_)
            | Expr::Like(_)
            | Expr::Cast(_, _, false) => true,
            // A quotient of two numbers of type numeric has fewer digits there.
            Expr::Arith(operator, _) => {
                matches!(operator, Arith::Add | Arith::Sub | Arith::Mul | Arith::Rem)
            }
            Expr::Func(func, _) => !func.is_only_here() && SHARED_FUNCTIONS.contains(&func.name()),
            _ => false,
        };
    });
    shared
}
