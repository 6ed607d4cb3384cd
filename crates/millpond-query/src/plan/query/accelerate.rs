//! Which aggregations a second executor may run, where there is one, and what threads without a
//! session may compute.

use millpond_engine::catalog::TableDef;

use super::Planning;
use super::node::{Acceleration, Aggregate, CteKind, Node, QueryPlan, Strategy};
use super::node_walk::{each_own, each_scan, inputs, inputs_mut};
use crate::DataType;
use crate::analyze::tree::{AggregateCall, AggregateFunction, SystemColumn, slot_of};
use crate::expr::{Arith, Expr, SubPlanCall};
use crate::plan::select::LARGE_TABLE_ROWS;
use crate::system_relations::is_system;

/// As much work as to look up some 20,000 rows by key, one by one.
const MUCH_WORK: f64 = 130_000.0;

/// How many rows may be read for each that is aggregated or hashed. The estimate is 9 for TPC-H's
/// query 15, which takes two thirds of the time with the second executor, and 20 for query 11,
/// which takes twice the time.
const MOST_READ: f64 = 12.0;

/// More nodes are not for it: to translate them can't be interrupted.
const MOST_NODES: usize = 64;

impl Planning<'_> {
    /// Whether the work is worth the milliseconds that each run of the second executor begins with.
    pub(super) fn is_much(&self) -> bool {
        let is_much = self.read_through >= LARGE_TABLE_ROWS as f64 || self.cost >= MUCH_WORK;
        self.largest_table >= LARGE_TABLE_ROWS && is_much
    }
}

/// Marks the aggregations of tables and joins that compute only what the second executor has. Those
/// of subqueries that run for each row are not among them. `is_much` says whether the query as a
/// whole is enough work, and `rows` how many rows a table has.
pub(super) fn mark(plan: &mut QueryPlan, is_much: bool, rows: &dyn Fn(&TableDef) -> f64) {
    let pays = |aggregate: &Aggregate| is_much && pays(aggregate, rows);
    mark_plan(plan, &pays);
}

fn mark_plan(plan: &mut QueryPlan, pays: &dyn Fn(&Aggregate) -> bool) {
    mark_below(&mut plan.root, pays);
    for cte in &mut plan.ctes {
        if let CteKind::Plain(node, _) = &mut cte.kind {
            mark_below(node, pays);
        }
    }
    for subplan in plan.subplans.iter_mut().filter(|subplan| subplan.once) {
        mark_plan(&mut subplan.plan, pays);
    }
}

fn mark_below(node: &mut Node, pays: &dyn Fn(&Aggregate) -> bool) {
    if let Node::Aggregate(aggregate) = node
        && is_of_tables(aggregate)
    {
        let pays = pays(aggregate);
        aggregate.accelerated =
            if pays { Acceleration::Worthwhile } else { Acceleration::Possible };
        return;
    }
    inputs_mut(node).into_iter().for_each(|input| mark_below(input, pays));
}

/// Whether the second executor is faster at an aggregation. It aggregates and fills hash tables
/// faster than it reads, so this must happen to enough of the rows that are read. It reads whole
/// tables where a plan has an index, or looks rows up by key.
fn pays(aggregate: &Aggregate, rows: &dyn Fn(&TableDef) -> f64) -> bool {
    let (mut read, mut by_index) = (0.0, false);
    each_scan(&aggregate.input, &mut |scan| {
        read += rows(&scan.table);
        by_index |= scan.access.index().is_some();
    });
    let mut kept = aggregate.input_rows;
    each_node(&aggregate.input, &mut |node| match node {
        Node::Aggregate(inner) => kept = kept.max(inner.input_rows),
        Node::HashJoin(join) => {
            let mut hashed = 0.0;
            each_scan(&join.inner, &mut |scan| hashed += rows(&scan.table));
            kept = kept.max(hashed);
        }
        _ => {}
    });
    !by_index && kept * MOST_READ >= read
}

/// Whether it aggregates tables and joins of tables, in no order.
fn is_of_tables(aggregate: &Aggregate) -> bool {
    let (mut nodes, mut shared) = (0, true);
    each_node(&aggregate.input, &mut |node| {
        nodes += 1;
        shared &= is_shared(node);
    });
    shared && nodes <= MOST_NODES && is_shared_aggregation(aggregate)
}

fn each_node(node: &Node, visit: &mut dyn FnMut(&Node)) {
    visit(node);
    inputs(node).into_iter().for_each(|input| each_node(input, visit));
}

fn is_shared_aggregation(aggregate: &Aggregate) -> bool {
    aggregate.sets.is_none()
        && aggregate.strategy != Strategy::Sorted
        && aggregate.calls.iter().all(is_shared_aggregate)
        && aggregate.keys.iter().all(is_shared_expression)
}

/// Whether the second executor does what a node does.
fn is_shared(node: &Node) -> bool {
    let mut shared = match node {
        Node::Scan(scan) => !is_system(&scan.table),
        Node::Project { .. }
        | Node::Filter { .. }
        | Node::NestedLoop(_)
        | Node::HashJoin(_)
        | Node::Materialize { .. }
        | Node::Sort { bound: None, .. } => true,
        Node::Aggregate(aggregate) => return is_shared_aggregation(aggregate),
        _ => false,
    };
    each_own(node, &mut |e| shared &= is_shared_expression(e));
    shared
}

fn is_shared_aggregate(call: &AggregateCall) -> bool {
    let is_known = matches!(
        call.function,
        AggregateFunction::CountRows
            | AggregateFunction::Count
            | AggregateFunction::Sum
            | AggregateFunction::Avg
            | AggregateFunction::Min
            | AggregateFunction::Max
            | AggregateFunction::BoolAnd
            | AggregateFunction::BoolOr
    );
    is_known
        && call.order_by.is_empty()
        && !matches!(call.ty, DataType::Other { .. })
        && call.args.iter().chain(&call.filter).all(is_shared_expression)
}

/// Functions that a second executor may call: their work on one row is short, and they ask nothing
/// of the session.
const SHARED_FUNCTIONS: &[&str] = &[
    "abs",
    "date_mi_interval",
    "date_part",
    "date_pl_interval",
    "date_trunc",
    "extract",
    "length",
    "lower",
    // A text that is compared with a char(n) goes through it.
    "rtrim",
    "substr",
    "substring",
    "timestamp",
    "timestamp_mi_interval",
    "timestamp_pl_interval",
    "timestamptz",
    "upper",
];

/// Functions that depend on settings, and ask nothing else of the session.
const FUNCTIONS_OF_SETTINGS: &[&str] = &[
    "array_to_json",
    "array_to_string",
    "concat",
    "concat_ws",
    "format",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "row_to_json",
    "to_char",
    "to_date",
    "to_json",
    "to_jsonb",
    "to_timestamp",
];

/// Whether a second executor may compute all parts of an expression.
fn is_shared_expression(expr: &Expr) -> bool {
    may_compute(expr, &|_| false, Executor::Second)
}

/// Whether threads without a session may compute all parts of an expression. Some subqueries have
/// been computed before.
pub(super) fn is_work_of_threads(expr: &Expr, is_computed: &dyn Fn(&SubPlanCall) -> bool) -> bool {
    may_compute(expr, is_computed, Executor::Own)
}

/// What is to compute an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Executor {
    /// Threads of Millpond's own executor. What takes long there looks whether it is to stop.
    Own,
    /// A second executor.
    Second,
}

fn may_compute(
    expr: &Expr,
    is_computed: &dyn Fn(&SubPlanCall) -> bool,
    executor: Executor,
) -> bool {
    let is_own = executor == Executor::Own;
    let mut shared = true;
    expr.walk(&mut |e| {
        shared &= match e {
            Expr::SubPlan(call) => is_computed(call),
            // A row's bytes alone do not say where it is.
            Expr::Column(column) => SystemColumn::at_place(slot_of(*column).1).is_none(),
            Expr::Const(_)
            | Expr::Param(_)
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
            | Expr::Like(_)
            | Expr::Cast(..) => true,
            Expr::Arith(operator, _) => is_own || *operator != Arith::Power,
            Expr::Concat(_) | Expr::Among(_) => is_own,
            Expr::Func(func, _) if SHARED_FUNCTIONS.contains(&func.name()) => {
                is_own || !func.searches_by_pattern()
            }
            Expr::Func(func, _) => {
                is_own
                    && (func.depends_on_arguments()
                        || FUNCTIONS_OF_SETTINGS.contains(&func.name())
                        || e.as_array_of().is_some())
            }
            _ => false,
        };
    });
    shared
}
