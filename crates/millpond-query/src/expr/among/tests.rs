use std::cell::Cell;

use millpond_types::array::{ArrayBuilder, Dimension};
use proptest::prelude::*;

use super::*;
use crate::expr::func::array::{ALL, ANY, comparison_code};
use crate::expr::tests::with_params;
use crate::expr::{Func, Row};

/// Values of one kind, of which some are equal.
fn value(kind: usize) -> BoxedStrategy<Value> {
    let text = || (0..30u8).prop_map(|n| char::from(b'a' + n % 26).to_string().repeat(n as usize));
    match kind {
        0 => (0..30i32).prop_map(Value::Int4).boxed(),
        1 => (-5..30i64).prop_map(Value::Int8).boxed(),
        2 => text().prop_map(Value::Text).boxed(),
        3 => (0..20i32).prop_map(|n| Value::Float8(f64::from(n) / 0.5 - 1.0)).boxed(),
        4 => Just(Value::Float8(f64::NAN)).boxed(),
        5 => (0..9i32).prop_map(|n| Value::Numeric(n.to_string().parse().unwrap())).boxed(),
        6 => (0..9u8).prop_map(|n| Value::Other(UUID, vec![n; 16].into())).boxed(),
        _ => (0..20i32).prop_map(Value::Date).boxed(),
    }
}

/// Constants, and the values that are looked for among them. NULL may be on both sides.
fn constants() -> impl Strategy<Value = (Vec<Value>, Vec<Value>)> {
    let kinds = prop_oneof![
        Just((0, 0)),
        Just((0, 1)),
        Just((1, 0)),
        Just((2, 2)),
        Just((3, 3)),
        Just((3, 4)),
        Just((5, 5)),
        Just((6, 6)),
        Just((7, 7)),
    ];
    let values = |kind| prop_oneof![20 => value(kind), 1 => Just(Value::Null)];
    kinds.prop_flat_map(move |(own, others)| {
        (prop::collection::vec(values(own), 1..25), prop::collection::vec(values(others), 20))
    })
}

/// `$value = ANY (array)` or `$value <> ALL (array)`.
fn of_elements(constants: &[Value], negated: bool) -> Option<Expr> {
    let length = constants.len() as u32;
    let mut builder = ArrayBuilder::new(&[Dimension { length, lower: 1 }]);
    constants.iter().try_for_each(|value| builder.push(&value.as_datum()))?;
    let (func, compare) = if negated { (&ALL, Compare::Ne) } else { (&ANY, Compare::Eq) };
    let element = match constants.iter().find(|value| !value.is_null())? {
        Value::Int4(_) => 1007,
        Value::Int8(_) => 1016,
        Value::Text(_) => 1009,
        _ => return None,
    };
    let array = Expr::Const(Value::Other(element, builder.finish()));
    let code = Expr::Const(Value::Int4(comparison_code(compare)));
    Some(Expr::Func(Func::new(func), vec![Expr::Column(0), array, code]))
}

proptest! {
    #[test]
    fn a_search_finds_what_a_look_at_each_finds((constants, values) in constants(), negated: bool) {
        let items: Vec<Expr> = constants.iter().cloned().map(Expr::Const).collect();
        let is_long = constants.len() >= LEAST && constants.iter().any(|value| !value.is_null());
        let list = Expr::In(Box::new(Expr::Column(0)), items, negated);
        let searched = Cell::new(0);
        for written in [Some(list), of_elements(&constants, negated)].into_iter().flatten() {
            with_params(&[], |env| {
                let folded = written.clone().folded(env).unwrap();
                assert_eq!(matches!(folded, Expr::Among(_)), is_long);
                for value in &values {
                    let row = [value.as_datum()];
                    let env = Env { row: Row::Datums(&row), ..*env };
                    assert_eq!(folded.truth(&env).unwrap(), written.truth(&env).unwrap());
                    searched.set(searched.get() + 1);
                }
            });
        }
        prop_assert!(searched.get() >= values.len());
    }
}

#[test]
fn constants_without_one_order_stay_as_they_are() {
    let all = |values: &mut dyn FnMut(i32) -> Value| {
        let items = (0..12).map(|n| Expr::Const(values(n))).collect();
        let written = Expr::In(Box::new(Expr::Column(0)), items, false);
        with_params(&[], |env| matches!(written.folded(env).unwrap(), Expr::Among(_)))
    };
    assert!(all(&mut Value::Int4));
    assert!(!all(&mut |_| Value::Null));
    assert!(!all(&mut |n| if n == 5 { Value::Int8(5) } else { Value::Int4(n) }));
    // Records have no order if a part is NULL.
    assert!(!all(&mut |n| Value::Other(2249, vec![n as u8; 4].into())));
}
