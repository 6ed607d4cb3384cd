//! Plans made by hand over rows of VALUES.

mod aggregates;
mod joins;
mod keys;
mod rows;
mod spills;
mod windows;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::{Work, run};
use crate::analyze::tree::{
    AggregateCall, AggregateFunction, CteId, JoinKind, Slot, SubqueryKind, column,
};
use crate::error::SqlError;
use crate::expr::tests::with_params;
use crate::expr::{Arith, Compare, Expr, SubPlanCall, cast};
use crate::memory::{QueryMemory, Resources, SessionMemory};
use crate::plan::query::node::{CteKind, CtePlan, Node, QueryPlan, SlotKind, SubPlan};
use crate::plan::{Output, SortKey};
use crate::{DataType, Datum, Value};

fn col(slot: u16, place: usize) -> Expr {
    Expr::Column(column(Slot(slot), place))
}

fn int(value: i32) -> Expr {
    Expr::Const(Value::Int4(value))
}

fn compare(op: Compare, a: Expr, b: Expr) -> Expr {
    Expr::Compare(op, Box::new((a, b)))
}

fn equal(a: Expr, b: Expr) -> Expr {
    compare(Compare::Eq, a, b)
}

fn add(a: Expr, b: Expr) -> Expr {
    Expr::Arith(Arith::Add, Box::new((a, b)))
}

fn key(expr: Expr) -> SortKey {
    SortKey { expr, descending: false, nulls_first: false }
}

/// Rows of integers; `None` is NULL.
fn values(slot: u16, rows: &[&[Option<i32>]]) -> Node {
    let expr = |value: &Option<i32>| value.map_or(Expr::NULL, int);
    let rows = rows.iter().map(|row| row.iter().map(expr).collect()).collect();
    Node::Values { slot: Slot(slot), rows }
}

/// One column.
fn column_of(slot: u16, values_of: &[Option<i32>]) -> Node {
    let rows: Vec<_> = values_of.iter().map(std::slice::from_ref).collect();
    values(slot, &rows)
}

fn call(function: AggregateFunction, args: Vec<Expr>, ty: DataType) -> AggregateCall {
    AggregateCall { function, args, distinct: false, order_by: Vec::new(), filter: None, ty }
}

/// A plan with slots of up to four computed columns.
fn plan(root: Node, output: Vec<Expr>) -> QueryPlan {
    QueryPlan {
        root,
        output: Output::new(output, Vec::new()),
        slots: vec![SlotKind::Computed(4); 12].into(),
        window: 0..12,
        kept: Vec::new(),
        subplans: Vec::new(),
        ctes: Vec::new(),
        tables: Vec::new(),
        waits: false,
    }
}

fn resources(limit: usize) -> Arc<Resources> {
    let memory = SessionMemory::new(&QueryMemory::new(limit));
    memory.set_work(64 << 10, 1.0);
    Arc::new(Resources { memory, temp_files: Arc::default(), temp_space: Arc::default() })
}

/// The rows of a plan as PostgreSQL prints them, a row a string.
fn try_rows(plan: &QueryPlan) -> Result<Vec<String>, SqlError> {
    try_rows_waiting(plan, true)
}

/// The same, where the statement may wait or must not.
fn try_rows_waiting(plan: &QueryPlan, may_wait: bool) -> Result<Vec<String>, SqlError> {
    with_work(may_wait, |work| rows_of(plan, work))
}

fn rows_of(plan: &QueryPlan, work: &Work<'_>) -> Result<Vec<String>, SqlError> {
    let mut rows = Vec::new();
    run(plan, &[], work, &mut |env| {
        let mut row = Vec::new();
        for expr in &plan.output.exprs {
            row.push(match expr.eval(env)?.datum() {
                Datum::Null => "NULL".to_owned(),
                datum => cast::to_text(&datum),
            });
        }
        rows.push(row.join(" "));
        Ok(true)
    })?;
    Ok(rows)
}

/// A statement that does something, and after it holds nothing.
fn with_work<T>(
    may_wait: bool,
    run: impl FnOnce(&Work<'_>) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let resources = resources(64 << 20);
    let result = with_resources(&resources, may_wait, run)?;
    assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
    Ok(result)
}

/// A statement with memory and files of the test's choice.
fn with_resources<T>(
    resources: &Arc<Resources>,
    may_wait: bool,
    run: impl FnOnce(&Work<'_>) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    with_params(&[], |env| {
        run(&Work {
            session: None,
            facts: env.facts,
            resources,
            host: None,
            accelerator: None,
            threads: None,
            may_wait,
            left: Cell::new(crate::exec::MAX_ROWS_UNWAITING),
            param_count: 0,
            pool: RefCell::default(),
            ticks: Cell::new(0),
            timed_since: Cell::new(None),
        })
    })
}

#[track_caller]
fn gives(plan: &QueryPlan, expected: &[&str]) {
    assert_eq!(try_rows(plan).unwrap(), expected);
}

/// The same in any order.
#[track_caller]
fn gives_any(plan: &QueryPlan, expected: &[&str]) {
    let (mut found, mut expected) = (try_rows(plan).unwrap(), expected.to_vec());
    found.sort();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
