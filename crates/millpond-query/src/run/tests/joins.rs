//! Joins and subqueries.

use super::*;
use crate::plan::query::node::{HashJoin, NestedLoop};

const LEFT: &[Option<i32>] = &[Some(1), Some(2), None, Some(2), Some(4)];
const RIGHT: &[Option<i32>] = &[Some(2), None, Some(3), Some(2), Some(1)];

fn nested_loop(kind: JoinKind) -> QueryPlan {
    let join = NestedLoop::new(
        kind,
        column_of(0, LEFT),
        column_of(1, RIGHT),
        Some(equal(col(0, 0), col(1, 0))),
    );
    let output = match kind {
        JoinKind::Semi | JoinKind::Anti => vec![col(0, 0)],
        _ => vec![col(0, 0), col(1, 0)],
    };
    plan(Node::NestedLoop(Box::new(join)), output)
}

#[test]
fn nested_loop_joins_in_the_outer_order() {
    gives(&nested_loop(JoinKind::Inner), &["1 1", "2 2", "2 2", "2 2", "2 2"]);
    gives(
        &nested_loop(JoinKind::Left),
        &["1 1", "2 2", "2 2", "NULL NULL", "2 2", "2 2", "4 NULL"],
    );
    gives(&nested_loop(JoinKind::Semi), &["1", "2", "2"]);
    gives(&nested_loop(JoinKind::Anti), &["NULL", "4"]);
}

fn hash_join(kind: JoinKind, on: Option<Expr>) -> QueryPlan {
    let join = HashJoin::new(
        kind,
        (column_of(0, LEFT), column_of(1, RIGHT)),
        vec![(col(0, 0), col(1, 0))],
        on,
    );
    let output = match kind {
        JoinKind::Semi | JoinKind::Anti => vec![col(0, 0)],
        _ => vec![col(0, 0), col(1, 0)],
    };
    plan(Node::HashJoin(Box::new(join)), output)
}

#[test]
fn hash_join_never_matches_null() {
    let join = |kind| hash_join(kind, None);
    gives(&join(JoinKind::Inner), &["1 1", "2 2", "2 2", "2 2", "2 2"]);
    gives(&join(JoinKind::Left), &["1 1", "2 2", "2 2", "NULL NULL", "2 2", "2 2", "4 NULL"]);
    gives(&join(JoinKind::Right), &["1 1", "2 2", "2 2", "2 2", "2 2", "NULL 3", "NULL NULL"]);
    gives(
        &join(JoinKind::Full),
        &["1 1", "2 2", "2 2", "NULL NULL", "2 2", "2 2", "4 NULL", "NULL 3", "NULL NULL"],
    );
    gives(&join(JoinKind::Semi), &["1", "2", "2"]);
    gives(&join(JoinKind::Anti), &["NULL", "4"]);
}

#[test]
fn rows_of_a_hash_join_that_fail_the_rest_of_the_condition_have_no_match() {
    let join = |kind| hash_join(kind, Some(compare(Compare::Gt, col(0, 0), int(1))));
    gives(
        &join(JoinKind::Full),
        &[
            "1 NULL",
            "2 2",
            "2 2",
            "NULL NULL",
            "2 2",
            "2 2",
            "4 NULL",
            "NULL 3",
            "NULL 1",
            "NULL NULL",
        ],
    );
    gives(&join(JoinKind::Semi), &["2", "2"]);
    gives(&join(JoinKind::Anti), &["1", "NULL", "4"]);
}

/// A semi-join or an anti-join that gives its inner rows.
fn of_inner_rows(kind: JoinKind, on: Option<Expr>) -> QueryPlan {
    let mut swapped = hash_join(kind, on);
    let Node::HashJoin(join) = &mut swapped.root else { panic!() };
    std::mem::swap(&mut join.outer, &mut join.inner);
    join.keys = vec![(col(1, 0), col(0, 0))];
    join.gives_inner = true;
    swapped
}

#[test]
fn inner_rows_are_given_once_all_outer_rows_are_known() {
    let join = |kind| of_inner_rows(kind, None);
    gives(&join(JoinKind::Semi), &["1", "2", "2"]);
    // Those without a key come last.
    gives(&join(JoinKind::Anti), &["4", "NULL"]);
    let join = |kind| of_inner_rows(kind, Some(compare(Compare::Gt, col(0, 0), int(1))));
    gives(&join(JoinKind::Semi), &["2", "2"]);
    gives(&join(JoinKind::Anti), &["1", "4", "NULL"]);
}

#[test]
fn hash_join_with_an_empty_side() {
    for (kind, expected) in [
        (JoinKind::Inner, vec![]),
        (JoinKind::Left, vec!["1 NULL"]),
        (JoinKind::Right, vec![]),
        (JoinKind::Full, vec!["1 NULL"]),
        (JoinKind::Semi, vec![]),
        (JoinKind::Anti, vec!["1"]),
    ] {
        let mut plan = hash_join(kind, None);
        let Node::HashJoin(join) = &mut plan.root else { panic!() };
        (join.outer, join.inner) = (column_of(0, &[Some(1)]), column_of(1, &[]));
        gives(&plan, &expected);
    }
    for (kind, expected) in [(JoinKind::Semi, vec![]), (JoinKind::Anti, vec!["1"])] {
        let mut plan = of_inner_rows(kind, None);
        let Node::HashJoin(join) = &mut plan.root else { panic!() };
        (join.outer, join.inner) = (column_of(1, &[]), column_of(0, &[Some(1)]));
        gives(&plan, &expected);
    }
}

#[test]
fn large_hash_join_finds_all_rows_in_its_batches() {
    let rows = |slot| {
        let rows = (0..6000).map(|i| vec![int(i * 7919 % 6000)]).collect();
        Node::Values { slot: Slot(slot), rows }
    };
    let join =
        HashJoin::new(JoinKind::Inner, (rows(0), rows(1)), vec![(col(0, 0), col(1, 0))], None);
    let plan = plan(Node::HashJoin(Box::new(join)), vec![col(0, 0), col(1, 0)]);
    // Batches come one after the other.
    let mut found = try_rows(&plan).unwrap();
    let mut expected: Vec<String> =
        (0..6000).map(|i| i * 7919 % 6000).map(|i| format!("{i} {i}")).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn materialized_side_is_read_again_unless_it_depends_on_the_outer_row() {
    let join = |inner| {
        let inner = Node::Materialize { input: Box::new(inner) };
        let outer = column_of(0, &[Some(1), Some(2)]);
        let join = NestedLoop::new(JoinKind::Inner, outer, inner, None);
        plan(Node::NestedLoop(Box::new(join)), vec![col(0, 0), col(1, 0)])
    };
    gives(&join(column_of(1, &[Some(7), Some(8)])), &["1 7", "1 8", "2 7", "2 8"]);
    let lateral = Node::Values { slot: Slot(1), rows: vec![vec![add(col(0, 0), int(5))]] };
    gives(&join(lateral), &["1 6", "2 7"]);
}

#[test]
fn inner_side_of_a_left_join_sees_each_outer_row() {
    // A lateral side: one row for even numbers, none for odd ones.
    let even = equal(Expr::Arith(Arith::Rem, Box::new((col(0, 0), int(2)))), int(0));
    let inner = Node::Project {
        input: Box::new(Node::Result { filter: Some(even) }),
        slot: Slot(1),
        exprs: vec![add(col(0, 0), int(10))],
    };
    let join = NestedLoop::new(JoinKind::Left, column_of(0, LEFT), inner, None);
    let plan = plan(Node::NestedLoop(Box::new(join)), vec![col(0, 0), col(1, 0)]);
    gives(&plan, &["1 NULL", "2 12", "NULL NULL", "2 12", "4 14"]);
}

/// Rows of `outer`, each with the value of a subquery over `inner`.
fn with_subquery(
    kind: SubqueryKind,
    inner: &[Option<i32>],
    filter: Option<Expr>,
    args: Vec<Expr>,
) -> QueryPlan {
    let once = args.is_empty();
    let left = match &kind {
        SubqueryKind::Any(left, _) | SubqueryKind::All(left, _) => left.clone(),
        _ => Vec::new(),
    };
    let mut root = column_of(0, inner);
    if let Some(condition) = filter {
        root = Node::Filter { input: Box::new(root), condition };
    }
    let subplan =
        SubPlan { kind, plan: plan(root, vec![col(0, 0)]), first_arg: 0, once, shown: true };
    let call = Expr::SubPlan(Box::new(SubPlanCall { number: 0, column: 0, args, left }));
    let mut plan = plan(column_of(0, &[Some(1), Some(2), None]), vec![col(0, 0), call]);
    plan.subplans.push(subplan);
    plan
}

#[test]
fn subquery_has_one_value_at_most() {
    let scalar = |inner, filter, args| with_subquery(SubqueryKind::Scalar, inner, filter, args);
    gives(&scalar(&[Some(7)], None, vec![]), &["1 7", "2 7", "NULL 7"]);
    gives(&scalar(&[], None, vec![]), &["1 NULL", "2 NULL", "NULL NULL"]);
    let error = try_rows(&scalar(&[Some(7), Some(8)], None, vec![])).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "21000");
    assert_eq!(error.message, "more than one row returned by a subquery used as an expression");
    let correlated = equal(col(0, 0), Expr::Param(0));
    let rows = [Some(1), None, Some(3)];
    gives(&scalar(&rows, Some(correlated), vec![col(0, 0)]), &["1 1", "2 NULL", "NULL NULL"]);
}

#[test]
fn quantified_subqueries_have_three_values() {
    let any = |op, inner: &[Option<i32>]| {
        with_subquery(SubqueryKind::Any(vec![col(0, 0)], op), inner, None, vec![])
    };
    let all = |op, inner: &[Option<i32>]| {
        with_subquery(SubqueryKind::All(vec![col(0, 0)], op), inner, None, vec![])
    };
    use Compare::{Eq, Gt, Ne};
    gives(&any(Eq, &[Some(1), Some(3)]), &["1 true", "2 false", "NULL NULL"]);
    gives(&any(Eq, &[Some(1), None]), &["1 true", "2 NULL", "NULL NULL"]);
    gives(&any(Eq, &[]), &["1 false", "2 false", "NULL false"]);
    gives(&any(Gt, &[Some(1), None]), &["1 NULL", "2 true", "NULL NULL"]);
    gives(&all(Ne, &[Some(1), None]), &["1 false", "2 NULL", "NULL NULL"]);
    gives(&all(Ne, &[Some(1), Some(3)]), &["1 false", "2 true", "NULL NULL"]);
    gives(&all(Ne, &[]), &["1 true", "2 true", "NULL true"]);
    let exists =
        |filter| with_subquery(SubqueryKind::Exists, &[Some(2)], Some(filter), vec![col(0, 0)]);
    gives(&exists(equal(col(0, 0), Expr::Param(0))), &["1 false", "2 true", "NULL false"]);
}

#[test]
fn row_in_rows_with_nulls_has_three_values() {
    let inner: &[&[Option<i32>]] = &[&[Some(1), Some(2)], &[Some(3), None]];
    for once in [true, false] {
        let left = vec![col(0, 0), col(0, 1)];
        let kind = SubqueryKind::Any(left.clone(), Compare::Eq);
        let plan_of = plan(values(0, inner), vec![col(0, 0), col(0, 1)]);
        let subplan = SubPlan { kind, plan: plan_of, first_arg: 0, once, shown: true };
        let call =
            Expr::SubPlan(Box::new(SubPlanCall { number: 0, column: 0, args: vec![], left }));
        let outer: &[&[Option<i32>]] = &[
            &[Some(1), Some(2)],
            &[Some(1), Some(3)],
            &[Some(3), Some(3)],
            &[None, Some(2)],
            &[None, Some(9)],
            &[Some(2), None],
        ];
        let mut plan = plan(values(0, outer), vec![call]);
        plan.subplans.push(subplan);
        // (NULL, 9) may be (3, NULL).
        gives(&plan, &["true", "false", "NULL", "NULL", "NULL", "false"]);
    }
}
