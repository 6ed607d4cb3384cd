//! Window functions. The answers are PostgreSQL's.

use WindowFunction as W;

use super::*;
use crate::analyze::tree::{
    Bound, Exclude, Frame, FrameMode, SetFunction, SetFunctionKind, Window, WindowCall,
    WindowFunction,
};
use crate::expr::Func;
use crate::expr::functions::Param;

fn window_call(function: WindowFunction, args: Vec<Expr>, ty: DataType) -> WindowCall {
    WindowCall { function, args, filter: None, ty }
}

fn sum() -> WindowCall {
    window_call(W::Aggregate(AggregateFunction::Sum), vec![col(0, 1)], DataType::Int8)
}

fn count(function: AggregateFunction) -> WindowCall {
    window_call(W::Aggregate(function), vec![col(0, 1)], DataType::Int8)
}

fn frame(mode: FrameMode, start: Bound, end: Bound) -> Frame {
    Frame { mode, start, end, exclude: Exclude::NoOthers }
}

fn default_frame() -> Frame {
    frame(FrameMode::Range, Bound::UnboundedPreceding, Bound::CurrentRow)
}

/// Partitions by the first column, ordered by the second, which is given before the results.
fn window(descending: bool, frame: Frame, calls: Vec<WindowCall>) -> QueryPlan {
    let order = SortKey { expr: col(0, 1), descending, nulls_first: descending };
    let partitions: [[Option<i32>; 4]; 2] =
        [[Some(1), Some(2), Some(2), Some(4)], [None, Some(3), Some(3), Some(9)]];
    let rows: Vec<[Option<i32>; 2]> = (1..)
        .zip(&partitions)
        .flat_map(|(number, values)| values.iter().map(move |value| [Some(number), *value]))
        .collect();
    let rows: Vec<&[Option<i32>]> = rows.iter().map(|row| row.as_slice()).collect();
    let keys = vec![key(col(0, 0)), order.clone()];
    let input = Node::Sort {
        input: Box::new(values(0, &rows)),
        keys,
        presorted: 0,
        bound: None,
        in_parts: false,
    };
    let output = std::iter::once(col(0, 1)).chain((0..calls.len()).map(|i| col(1, i))).collect();
    let window = Window {
        slot: Slot(1),
        partition_by: vec![col(0, 0)],
        order_by: vec![order],
        frame,
        calls,
    };
    plan(Node::Window { input: Box::new(input), window }, output)
}

#[test]
fn ranks() {
    let call = |function| window_call(function, vec![], DataType::Int8);
    let calls = vec![
        call(W::RowNumber),
        call(W::Rank),
        call(W::DenseRank),
        call(W::PercentRank),
        call(W::CumeDist),
        window_call(W::Ntile, vec![int(3)], DataType::Int4),
    ];
    gives(
        &window(false, default_frame(), calls),
        &[
            "1 1 1 1 0 0.25 1",
            "2 2 2 2 0.3333333333333333 0.75 1",
            "2 3 2 2 0.3333333333333333 0.75 2",
            "4 4 4 3 1 1 3",
            "3 1 1 1 0 0.5 1",
            "3 2 1 1 0 0.5 1",
            "9 3 3 2 0.6666666666666666 0.75 2",
            "NULL 4 4 3 1 1 3",
        ],
    );
}

#[test]
fn values_of_other_rows() {
    let call = |function, args| window_call(function, args, DataType::Int4);
    let v = || col(0, 1);
    let calls = vec![
        call(W::Lag, vec![v()]),
        call(W::Lead, vec![v(), int(2), int(-1)]),
        call(W::FirstValue, vec![v()]),
        call(W::LastValue, vec![v()]),
        call(W::NthValue, vec![v(), int(2)]),
    ];
    gives(
        &window(false, default_frame(), calls),
        &[
            "1 NULL 2 1 1 NULL",
            "2 1 4 1 2 2",
            "2 2 -1 1 2 2",
            "4 2 -1 1 4 2",
            "3 NULL 9 3 3 3",
            "3 3 NULL 3 3 3",
            "9 3 -1 3 9 3",
            "NULL 9 -1 3 NULL 3",
        ],
    );
    let error =
        try_rows(&window(false, default_frame(), vec![call(W::NthValue, vec![v(), int(0)])]));
    assert_eq!(error.unwrap_err().sqlstate.as_str(), "22016");
}

#[test]
fn frames_of_rows() {
    let near = frame(FrameMode::Rows, Bound::Preceding(int(1)), Bound::Following(int(1)));
    let min = window_call(W::Aggregate(AggregateFunction::Min), vec![col(0, 1)], DataType::Int4);
    let calls = vec![sum(), count(AggregateFunction::Count), min];
    gives(
        &window(false, near, calls),
        &[
            "1 3 2 1",
            "2 5 3 1",
            "2 8 3 2",
            "4 6 2 2",
            "3 6 2 3",
            "3 15 3 3",
            "9 12 2 3",
            "NULL 9 1 9",
        ],
    );
    let behind = frame(FrameMode::Rows, Bound::Following(int(2)), Bound::Following(int(3)));
    let calls = vec![sum(), count(AggregateFunction::CountRows)];
    gives(
        &window(false, behind, calls),
        &["1 6 2", "2 4 1", "2 NULL 0", "4 NULL 0", "3 9 2", "3 NULL 1", "9 NULL 0", "NULL NULL 0"],
    );
    let negative = frame(FrameMode::Rows, Bound::Preceding(int(-1)), Bound::CurrentRow);
    let error = try_rows(&window(false, negative, vec![sum()])).unwrap_err();
    assert_eq!(error.sqlstate.as_str(), "22013");
    assert_eq!(error.message, "frame starting offset must not be negative");
}

#[test]
fn frames_of_values_and_of_groups() {
    let calls = || vec![sum(), count(AggregateFunction::CountRows)];
    let range = || frame(FrameMode::Range, Bound::Preceding(int(1)), Bound::Following(int(2)));
    gives(
        &window(false, range(), calls()),
        &["1 5 3", "2 9 4", "2 9 4", "4 4 1", "3 6 2", "3 6 2", "9 9 1", "NULL NULL 1"],
    );
    gives(
        &window(true, range(), calls()),
        &["4 8 3", "2 5 3", "2 5 3", "1 5 3", "NULL NULL 1", "9 9 1", "3 6 2", "3 6 2"],
    );
    let groups = frame(FrameMode::Groups, Bound::Preceding(int(1)), Bound::CurrentRow);
    gives(
        &window(false, groups, calls()),
        &["1 1 1", "2 5 3", "2 5 3", "4 8 3", "3 6 2", "3 6 2", "9 15 3", "NULL 9 2"],
    );
}

#[test]
fn excluded_rows() {
    let with = |exclude, expected: &[&str]| {
        let whole = frame(FrameMode::Rows, Bound::UnboundedPreceding, Bound::UnboundedFollowing);
        let last = window_call(W::LastValue, vec![col(0, 1)], DataType::Int4);
        gives(&window(false, Frame { exclude, ..whole }, vec![sum(), last]), expected);
    };
    let rows =
        ["1 8 4", "2 7 4", "2 7 4", "4 5 2", "3 12 NULL", "3 12 NULL", "9 6 NULL", "NULL 15 9"];
    with(Exclude::CurrentRow, &rows);
    let rows =
        ["1 8 4", "2 5 4", "2 5 4", "4 5 2", "3 9 NULL", "3 9 NULL", "9 6 NULL", "NULL 15 9"];
    with(Exclude::Group, &rows);
    let rows =
        ["1 9 4", "2 7 4", "2 7 4", "4 9 4", "3 12 NULL", "3 12 NULL", "9 15 NULL", "NULL 15 NULL"];
    with(Exclude::Ties, &rows);
}

fn series(args: Vec<Value>) -> SetFunction {
    let ty = match args[0] {
        Value::Numeric(_) => crate::expr::types::NUMERIC,
        Value::Int8(_) => DataType::Int8,
        _ => DataType::Int4,
    };
    let types = vec![Param::Type(ty); args.len()];
    let func = Func::exactly("generate_series", &types).unwrap();
    let args = args.into_iter().map(Expr::Const).collect();
    SetFunction { kind: SetFunctionKind::Rows(func), args, columns: 1 }
}

fn functions(functions: Vec<SetFunction>, with_ordinality: bool) -> QueryPlan {
    let columns = functions.len() + usize::from(with_ordinality);
    let root = Node::Functions { slot: Slot(0), functions, with_ordinality };
    plan(root, (0..columns).map(|i| col(0, i)).collect())
}

#[test]
fn series_of_integers_and_numerics() {
    let ints = |ints: &[i32]| series(ints.iter().map(|int| Value::Int4(*int)).collect());
    let numerics = |texts: &[&str]| {
        series(texts.iter().map(|text| Value::Numeric(text.parse().unwrap())).collect())
    };
    gives(&functions(vec![ints(&[1, 3])], false), &["1", "2", "3"]);
    gives(&functions(vec![ints(&[3, 1, -2])], true), &["3 1", "1 2"]);
    gives(&functions(vec![ints(&[3, 1])], true), &[]);
    gives(&functions(vec![ints(&[i32::MAX - 1, i32::MAX])], false), &["2147483646", "2147483647"]);
    gives(&functions(vec![series(vec![Value::Int4(1), Value::Null])], false), &[]);
    gives(&functions(vec![numerics(&["1.0", "2.0", "0.4"])], false), &["1.0", "1.4", "1.8"]);
    // Side by side, to the end of the longest.
    let both = vec![ints(&[1, 3]), numerics(&["5", "6"])];
    gives(&functions(both, true), &["1 5 1", "2 6 2", "3 NULL 3"]);
    for (function, message) in [
        (ints(&[1, 2, 0]), "step size cannot equal zero"),
        (numerics(&["NaN", "2"]), "start value cannot be NaN"),
        (numerics(&["1", "Infinity"]), "stop value cannot be infinity"),
    ] {
        let error = try_rows(&functions(vec![function], false)).unwrap_err();
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("22023", message));
    }
}
