//! Parts of aggregations, and the whole.
#![allow(clippy::unwrap_used, reason = "a test")]

use proptest::prelude::*;

use super::*;

/// Values of one type, and NULLs.
fn values() -> impl Strategy<Value = Vec<Value>> {
    let number = |text: String| Value::Numeric(text.parse().unwrap());
    prop_oneof![
        of((-5i32..5).prop_map(Value::Int4)),
        of(any::<i64>().prop_map(Value::Int8)),
        of("-?[0-9]{1,12}\\.[0-9]{0,6}".prop_map(number)),
        of("-?[0-2]\\.0{1,3}|NaN|Infinity".prop_map(number)),
        // Sums of these are exact.
        of((-900i32..900).prop_map(|n| Value::Float8(f64::from(n) / 8.0))),
        of((-900i32..900).prop_map(|n| Value::Float4(n as f32 / 8.0))),
    ]
}

fn of(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(prop_oneof![1 => Just(Value::Null), 5 => values], 0..40)
}

fn taken(function: F, values: &[Value]) -> Accumulator {
    let mut state = Accumulator::new(function);
    for value in values {
        state.add(function, value.as_datum(), Datum::Null).unwrap();
    }
    state
}

fn result(function: F, state: &Accumulator, is_float: bool) -> Value {
    let ty = match function {
        F::Count => DataType::Int8,
        _ if is_float => DataType::Float8,
        _ => DataType::Numeric { precision_scale: None },
    };
    state.finish(function, ty, &FormatOptions::default()).unwrap()
}

proptest! {
    /// A frame that moves over the values: what has left it is as if it had never come.
    #[test]
    fn a_value_taken_out_leaves_nothing(values in values(), steps in prop::collection::vec((0usize..3, 0usize..3), 1..40)) {
        let is_float = values.iter().any(|v| matches!(v, Value::Float4(_) | Value::Float8(_)));
        let variances = [F::VarPop, F::VarSamp, F::StddevPop, F::StddevSamp];
        for function in [F::Count, F::Sum, F::Avg].into_iter().chain(variances) {
            let (mut start, mut end) = (0, 0);
            let mut state = Accumulator::new(function);
            for &(leave, come) in &steps {
                for value in values.iter().skip(end).take(come) {
                    state.add(function, value.as_datum(), Datum::Null).unwrap();
                }
                end = (end + come).min(values.len());
                for _ in 0..leave.min(end - start) {
                    let is_out = state.take_out(function, values[start].as_datum());
                    start += 1;
                    if !is_out {
                        state = taken(function, &values[start..end]);
                    }
                }
                let fresh = taken(function, &values[start..end]);
                let (expected, found) =
                    (result(function, &fresh, is_float), result(function, &state, is_float));
                prop_assert_eq!(format!("{:?}", expected), format!("{:?}", found), "{:?}", function);
            }
        }
    }

    #[test]
    fn parts_give_what_the_whole_gives(values in values(), cuts in prop::collection::vec(0usize..40, 0..5)) {
        let is_float = values.iter().any(|v| matches!(v, Value::Float4(_) | Value::Float8(_)));
        let functions = [F::Count, F::Sum, F::Avg, F::Min, F::Max];
        let variances = [F::VarPop, F::VarSamp, F::StddevPop, F::StddevSamp];
        for function in functions.into_iter().chain(variances) {
            let whole = taken(function, &values);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (values.len() + 1)).collect();
            cuts.extend([0, values.len()]);
            cuts.sort_unstable();
            let mut ranges = cuts.windows(2);
            let first = ranges.next().unwrap();
            let mut state = taken(function, &values[first[0]..first[1]]);
            for range in ranges {
                let part = taken(function, &values[range[0]..range[1]]).part().unwrap();
                state.add_part(function, part.each_ref().map(Value::as_datum)).unwrap();
            }
            let (expected, found) =
                (result(function, &whole, is_float), result(function, &state, is_float));
            if let (Value::Float8(a), Value::Float8(b)) = (&expected, &found) {
                prop_assert!((a - b).abs() <= a.abs() * 1e-9 + 1e-9, "{:?}: {} {}", function, a, b);
                continue;
            }
            prop_assert_eq!(format!("{:?}", expected), format!("{:?}", found), "{:?}", function);
        }
    }
}
