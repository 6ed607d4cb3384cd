//! Groups.

use AggregateFunction as F;

use super::*;
use crate::analyze::tree::Regression;
use crate::plan::query::node::{Acceleration, Aggregate, Strategy};
use crate::plan::query::shared_states::shared_states;

const NUMERIC: DataType = crate::expr::types::NUMERIC;

/// Rows of two columns.
fn input() -> Node {
    values(
        0,
        &[
            &[Some(1), Some(10)],
            &[Some(2), Some(5)],
            &[None, Some(7)],
            &[Some(1), None],
            &[Some(2), Some(5)],
            &[None, Some(1)],
        ],
    )
}

fn aggregate(strategy: Strategy, keys: Vec<Expr>, calls: Vec<AggregateCall>) -> Aggregate {
    let (sets, grouping) = (None, Vec::new());
    let states = shared_states(&calls);
    Aggregate {
        input: input(),
        slot: Slot(1),
        keys,
        sets,
        calls,
        states,
        grouping,
        strategy,
        input_rows: 1.0,
        accelerated: Acceleration::No,
        in_parts: false,
    }
}

fn planned(aggregate: Aggregate) -> QueryPlan {
    let count = aggregate.keys.len() + aggregate.calls.len() + aggregate.grouping.len();
    plan(Node::Aggregate(Box::new(aggregate)), (0..count).map(|i| col(1, i)).collect())
}

fn all(calls: Vec<AggregateCall>) -> QueryPlan {
    planned(aggregate(Strategy::Plain, Vec::new(), calls))
}

#[test]
fn functions_over_all_rows() {
    let second = || vec![col(0, 1)];
    gives(
        &all(vec![
            call(F::CountRows, vec![], DataType::Int8),
            call(F::Count, second(), DataType::Int8),
            call(F::Sum, second(), DataType::Int8),
            call(F::Min, second(), DataType::Int4),
            call(F::Max, second(), DataType::Int4),
            call(F::Avg, second(), NUMERIC),
        ]),
        &["6 5 28 1 10 5.6000000000000000"],
    );
    gives(
        &all(vec![
            call(F::VarPop, second(), NUMERIC),
            call(F::VarSamp, second(), NUMERIC),
            call(F::StddevPop, second(), NUMERIC),
            call(F::StddevSamp, second(), NUMERIC),
        ]),
        &["8.6400000000000000 10.8000000000000000 2.9393876913398137 3.2863353450309967"],
    );
    gives(
        &all(vec![
            call(F::BitAnd, second(), DataType::Int4),
            call(F::BitOr, second(), DataType::Int4),
            call(F::BitXor, second(), DataType::Int4),
        ]),
        &["0 15 12"],
    );
    let as_float = |e: Expr| Expr::Cast(Box::new(e), DataType::Float8, true);
    let pair = || vec![as_float(col(0, 1)), as_float(col(0, 0))];
    gives(
        &all(vec![
            call(F::Regression(Regression::Count), pair(), DataType::Int8),
            call(F::Regression(Regression::Slope), pair(), DataType::Float8),
            call(F::Regression(Regression::R2), pair(), DataType::Float8),
            call(F::StddevPop, vec![as_float(col(0, 1))], DataType::Float8),
        ]),
        &["3 -5 1 2.939387691339814"],
    );
}

#[test]
fn distinct_and_order_and_filter_within_calls() {
    let text = |e: Expr| Expr::Cast(Box::new(e), DataType::Text, true);
    let joined =
        || call(F::StringAgg, vec![text(col(0, 1)), Expr::Const(Value::from(","))], DataType::Text);
    let ordered = AggregateCall { order_by: vec![key(col(0, 1))], ..joined() };
    let distinct = AggregateCall { distinct: true, ..joined() };
    let filter = Some(compare(Compare::Gt, col(0, 1), int(5)));
    let filtered = AggregateCall { filter, ..joined() };
    let count = AggregateCall { distinct: true, ..call(F::Count, vec![col(0, 1)], DataType::Int8) };
    gives(
        &all(vec![joined(), ordered, distinct, filtered, count]),
        &["10,5,7,5,1 1,5,5,7,10 1,10,5,7 10,7 4"],
    );
    let sorted = |function, args| AggregateCall {
        order_by: vec![key(col(0, 1))],
        ..call(function, args, DataType::Float8)
    };
    let half = || vec![Expr::Const(Value::Float8(0.5))];
    gives(
        &all(vec![
            sorted(F::PercentileCont, half()),
            sorted(F::PercentileDisc, half()),
            sorted(F::Mode, vec![]),
            sorted(F::PercentileCont, vec![Expr::Const(Value::Float8(0.6))]),
        ]),
        &["5 5 5 5.8"],
    );
}

#[test]
fn groups_have_null_as_a_value() {
    let calls = || {
        vec![
            call(F::CountRows, vec![], DataType::Int8),
            call(F::Sum, vec![col(0, 1)], DataType::Int8),
        ]
    };
    let hashed = aggregate(Strategy::Hashed, vec![col(0, 0)], calls());
    gives(&planned(hashed), &["1 2 10", "2 2 10", "NULL 2 8"]);
    let mut sorted = aggregate(Strategy::Sorted, vec![col(0, 0)], calls());
    let keys = vec![key(col(0, 0))];
    sorted.input = Node::Sort {
        input: Box::new(sorted.input),
        keys,
        presorted: 0,
        bound: None,
        in_parts: false,
    };
    gives(&planned(sorted), &["1 2 10", "2 2 10", "NULL 2 8"]);
}

#[test]
fn no_rows_are_one_group_only_without_keys() {
    let calls = || {
        vec![
            call(F::CountRows, vec![], DataType::Int8),
            call(F::Sum, vec![col(0, 1)], DataType::Int8),
        ]
    };
    let empty = |strategy, keys: Vec<Expr>, sets| {
        let input = values(0, &[]);
        planned(Aggregate { input, sets, ..aggregate(strategy, keys, calls()) })
    };
    gives(&empty(Strategy::Plain, vec![], None), &["0 NULL"]);
    gives(&empty(Strategy::Hashed, vec![col(0, 0)], None), &[]);
    gives(&empty(Strategy::Sorted, vec![col(0, 0)], None), &[]);
    let sets = Some(vec![vec![0], vec![], vec![]]);
    gives(&empty(Strategy::Hashed, vec![col(0, 0)], sets), &["NULL 0 NULL", "NULL 0 NULL"]);
}

#[test]
fn grouping_sets_say_which_keys_they_have() {
    // GROUP BY ROLLUP (a, b)
    let calls = vec![call(F::CountRows, vec![], DataType::Int8)];
    let mut rollup = aggregate(Strategy::Hashed, vec![col(0, 0), col(0, 1)], calls);
    rollup.sets = Some(vec![vec![0, 1], vec![0], vec![]]);
    rollup.grouping = vec![vec![0, 1], vec![1]];
    gives_any(
        &planned(rollup),
        &[
            "1 10 1 0 0",
            "2 5 2 0 0",
            "NULL 7 1 0 0",
            "1 NULL 1 0 0",
            "NULL 1 1 0 0",
            "1 NULL 2 1 1",
            "2 NULL 2 1 1",
            "NULL NULL 2 1 1",
            "NULL NULL 6 3 1",
        ],
    );
}

#[test]
fn array_has_all_values_in_their_order() {
    let array = DataType::Other { oid: 1007, typmod: -1 };
    let values = || call(F::ArrayAgg, vec![col(0, 1)], array);
    let ordered = AggregateCall { order_by: vec![key(col(0, 1))], ..values() };
    let none = AggregateCall { filter: Some(equal(col(0, 1), int(99))), ..values() };
    gives(&all(vec![values(), ordered, none]), &["{10,5,7,NULL,5,1} {1,5,5,7,10,NULL} NULL"]);
}
