//! Order, limits, queries of WITH.

use super::*;
use crate::analyze::tree::SetOperator;
use crate::plan::query::node::{Bound, Limit, NestedLoop};

fn sorted(bound: Option<(i32, Option<i32>)>, key: SortKey) -> QueryPlan {
    let bound = bound.map(|(limit, offset)| Bound { limit: int(limit), offset: offset.map(int) });
    let rows = values(
        0,
        &[&[Some(2), Some(1)], &[None, Some(2)], &[Some(1), Some(3)], &[Some(2), Some(4)]],
    );
    let root =
        Node::Sort { input: Box::new(rows), keys: vec![key], presorted: 0, bound, in_parts: false };
    plan(root, vec![col(0, 0), col(0, 1)])
}

#[test]
fn sort_is_stable_and_puts_nulls_where_they_are_wanted() {
    gives(&sorted(None, key(col(0, 0))), &["1 3", "2 1", "2 4", "NULL 2"]);
    let down = SortKey { expr: col(0, 0), descending: true, nulls_first: true };
    gives(&sorted(None, down), &["NULL 2", "2 1", "2 4", "1 3"]);
    gives(&sorted(Some((2, None)), key(col(0, 0))), &["1 3", "2 1"]);
    gives(&sorted(Some((1, Some(2))), key(col(0, 0))), &["1 3", "2 1", "2 4"]);
    gives(&sorted(Some((0, None)), key(col(0, 0))), &[]);
}

/// Rows of two columns by both of them, as a sort of all rows and as one that keeps some.
#[test]
fn first_rows_are_those_of_the_whole_order() {
    let cell = |i: i32| match i % 7 {
        0 => Expr::NULL,
        value => int(value - 3),
    };
    let rows: Vec<Vec<Expr>> = (0..97).map(|i| vec![cell(i * 5), cell(i * i + i / 3)]).collect();
    let sorted = |keys: &[SortKey], bound| {
        let input = Box::new(Node::Values { slot: Slot(0), rows: rows.clone() });
        let root = Node::Sort { input, keys: keys.to_vec(), presorted: 0, bound, in_parts: false };
        try_rows(&plan(root, vec![col(0, 0), col(0, 1)])).unwrap()
    };
    for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let down = SortKey { expr: col(0, 0), descending, nulls_first };
        for second in [col(0, 1), add(col(0, 1), int(1))] {
            let keys = [down.clone(), key(second)];
            let all = sorted(&keys, None);
            for count in [1, 2, 5, 40, 200] {
                let first = sorted(&keys, Some(Bound { limit: int(count), offset: None }));
                assert_eq!(first, all[..all.len().min(count as usize)], "{keys:?} {count}");
            }
        }
    }
}

/// Rows that come in the order of the first key, from a join: in batches they give what one sort
/// of all gives, and the join goes on after each.
#[test]
fn batches_of_presorted_rows_give_the_whole_order() {
    for rows_of_a_key in [1, 3, 50, 400, 1000] {
        let left: Vec<Vec<Expr>> = (0..600).map(|i| vec![int(i / rows_of_a_key)]).collect();
        let right: Vec<Vec<Expr>> = (0..5).map(|i| vec![int(i * 3 % 5)]).collect();
        let sorted = |presorted, bound| {
            let left = Node::Values { slot: Slot(0), rows: left.clone() };
            let right = Node::Values { slot: Slot(1), rows: right.clone() };
            let join = NestedLoop::new(JoinKind::Inner, left, right, None);
            let input = Box::new(Node::NestedLoop(Box::new(join)));
            let keys = vec![key(col(0, 0)), key(col(1, 0))];
            let root = Node::Sort { input, keys, presorted, bound, in_parts: false };
            try_rows(&plan(root, vec![col(0, 0), col(1, 0)])).unwrap()
        };
        let all = sorted(0, None);
        assert_eq!(all.len(), 3000);
        assert!(sorted(1, None) == all, "{rows_of_a_key}");
        // A batch that is sorted whole may come before one of which a few rows are kept.
        for count in [0, 1, 2, 31, 33, 100, 1025, 2001, 2999, 4000] {
            let mut first = sorted(1, Some(Bound { limit: int(count), offset: None }));
            // More may come of a batch that is sorted whole.
            first.truncate(count as usize);
            assert!(first == all[..all.len().min(count as usize)], "{rows_of_a_key} {count}");
        }
    }
}

#[test]
fn expressions_of_rows_that_are_not_wanted_may_fail() {
    let rows = [[Some(1), Some(1)], [Some(2), Some(0)]];
    let rows: Vec<_> = rows.iter().map(|row| &row[..]).collect();
    let quotient = Expr::Arith(Arith::Div, Box::new((int(1), col(0, 1))));
    let input = Box::new(values(0, &rows));
    let keys = vec![key(col(0, 0)), key(quotient)];
    let bound = Some(Bound { limit: int(1), offset: None });
    let error = try_rows(&plan(
        Node::Sort { input, keys, presorted: 0, bound, in_parts: false },
        vec![col(0, 0)],
    ))
    .unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "22012");
}

#[test]
fn large_sort_spills_and_gives_all_rows() {
    let rows: Vec<Vec<Expr>> = (0..5000).map(|i| vec![int(i * 7919 % 5000), int(i)]).collect();
    for bound in [None, Some(Bound { limit: int(10), offset: None })] {
        let count = if bound.is_some() { 10 } else { 5000 };
        let input = Box::new(Node::Values { slot: Slot(0), rows: rows.clone() });
        let root =
            Node::Sort { input, keys: vec![key(col(0, 0))], presorted: 0, bound, in_parts: false };
        let found = try_rows(&plan(root, vec![col(0, 0)])).unwrap();
        let expected: Vec<String> = (0..count).map(|i: i32| i.to_string()).collect();
        assert_eq!(found, expected);
    }
}

fn limited(limit: Option<Expr>, offset: Option<Expr>, ties: bool) -> QueryPlan {
    let ties = ties.then(|| vec![key(col(0, 0))]);
    let input = column_of(0, &[Some(1), Some(2), Some(2), Some(2), Some(3)]);
    plan(Node::Limit(Box::new(Limit { input, limit, offset, ties })), vec![col(0, 0)])
}

#[test]
fn limit_and_offset_and_ties() {
    gives(&limited(Some(int(2)), Some(int(1)), false), &["2", "2"]);
    gives(&limited(Some(int(2)), None, true), &["1", "2", "2", "2"]);
    gives(&limited(Some(int(1)), None, true), &["1"]);
    gives(&limited(Some(int(0)), None, true), &[]);
    gives(&limited(Some(Expr::NULL), Some(int(4)), false), &["3"]);
    gives(&limited(None, Some(int(9)), false), &[]);
    let error = try_rows(&limited(Some(int(-1)), None, false)).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "2201W");
}

fn cte(slot: u16, id: u16) -> Node {
    Node::Cte { slot: Slot(slot), cte: CteId(id), varies: false }
}

/// `WITH RECURSIVE r AS (VALUES (1) UNION [ALL] SELECT step FROM r WHERE r < 5)`
fn recursive(all: bool, step: Expr, condition: Option<Expr>, root: Node) -> QueryPlan {
    let mut input = Node::WorkTable { slot: Slot(1), cte: CteId(0) };
    if let Some(condition) = condition {
        input = Node::Filter { input: Box::new(input), condition };
    }
    let step = Node::Project { input: Box::new(input), slot: Slot(2), exprs: vec![step] };
    let start = (column_of(0, &[Some(1)]), Slot(0));
    let kind = CteKind::Recursive { start, step: (step, Slot(2)), all, step_ctes: Vec::new() };
    let mut plan = plan(root, vec![col(3, 0)]);
    plan.ctes.push(CtePlan {
        id: CteId(0),
        name: "r".to_owned(),
        kind,
        columns: vec!["x".to_owned()],
    });
    plan
}

#[test]
fn recursive_query_ends_when_a_round_is_empty() {
    let below = compare(Compare::Lt, col(1, 0), int(5));
    let next = || add(col(1, 0), int(1));
    gives(&recursive(true, next(), Some(below), cte(3, 0)), &["1", "2", "3", "4", "5"]);
    // 1, 2, 0, 1: what is there already ends it.
    let circle = Expr::Arith(Arith::Rem, Box::new((next(), int(3))));
    gives(&recursive(false, circle, None, cte(3, 0)), &["1", "2", "0"]);
    // One without an end, as far as it is read.
    let endless = recursive(true, int(1), None, cte(3, 0));
    let error = try_rows_waiting(&endless, false).unwrap_err();
    assert!(crate::convert::is_would_block(&error), "it goes on where it may wait: {error}");
    let limit = Limit { input: cte(3, 0), limit: Some(int(3)), offset: None, ties: None };
    gives(&recursive(true, next(), None, Node::Limit(Box::new(limit))), &["1", "2", "3"]);
}

#[test]
fn query_of_with_is_run_once_for_several_readers() {
    let join = crate::plan::query::node::NestedLoop::new(
        JoinKind::Inner,
        cte(3, 0),
        cte(4, 0),
        Some(compare(Compare::Lt, col(3, 0), col(4, 0))),
    );
    let mut plan = plan(Node::NestedLoop(Box::new(join)), vec![col(3, 0), col(4, 0)]);
    let kind = CteKind::Plain(column_of(0, &[Some(1), Some(2), Some(3)]), Slot(0));
    plan.ctes.push(CtePlan {
        id: CteId(0),
        name: "w".to_owned(),
        kind,
        columns: vec!["x".to_owned()],
    });
    gives(&plan, &["1 2", "1 3", "2 3"]);
}

const LEFT: &[Option<i32>] = &[Some(1), None, Some(2), Some(2), None, Some(2), Some(3)];
const RIGHT: &[Option<i32>] = &[Some(2), None, Some(4), Some(2)];

#[test]
fn set_operations_count_rows_with_all() {
    let operation = |operator, all| {
        let left = Box::new((column_of(0, LEFT), Slot(0)));
        let right = Box::new((column_of(1, RIGHT), Slot(1)));
        plan(Node::SetOp { slot: Slot(2), operator, all, left, right }, vec![col(2, 0)])
    };
    use SetOperator::{Except, Intersect};
    gives(&operation(Intersect, false), &["NULL", "2"]);
    gives(&operation(Intersect, true), &["NULL", "2", "2"]);
    gives(&operation(Except, false), &["1", "3"]);
    gives(&operation(Except, true), &["1", "NULL", "2", "3"]);
}

#[test]
fn union_is_append_with_distinct() {
    let append = || {
        let inputs = vec![(column_of(0, LEFT), Slot(0)), (column_of(1, RIGHT), Slot(1))];
        Node::Append { slot: Slot(2), inputs }
    };
    let all = ["1", "NULL", "2", "2", "NULL", "2", "3", "2", "NULL", "4", "2"];
    gives(&plan(append(), vec![col(2, 0)]), &all);
    let keys = vec![col(2, 0)];
    let hashed = Node::Distinct { input: Box::new(append()), keys: keys.clone(), sorted: false };
    gives(&plan(hashed, keys.clone()), &["1", "NULL", "2", "3", "4"]);
    let input = Node::Sort {
        input: Box::new(append()),
        keys: vec![key(col(2, 0))],
        presorted: 0,
        bound: None,
        in_parts: false,
    };
    let sorted = Node::Distinct { input: Box::new(input), keys: keys.clone(), sorted: true };
    gives(&plan(sorted, keys), &["1", "2", "3", "4", "NULL"]);
}
