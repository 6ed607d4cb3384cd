use std::cmp::Ordering;

use proptest::prelude::*;

use super::key::{KeyLayout, KeyOrder, NextColumn, RangeEnd, encode_sort_column, encode_sort_int};
use super::tuple::TupleLayout;
use super::*;

fn data_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::Bool),
        Just(DataType::Int2),
        Just(DataType::Int4),
        Just(DataType::Int8),
        Just(DataType::Float4),
        Just(DataType::Float8),
        Just(DataType::Numeric { precision_scale: None }),
        Just(DataType::Text),
        Just(DataType::Varchar(Some(20))),
        Just(DataType::Char(8)),
        Just(DataType::Bytea),
        Just(DataType::Date),
        Just(DataType::Timestamp(None)),
        Just(DataType::Timestamptz(None)),
    ]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        Just(f64::NAN),
        Just(-f64::NAN),
        Just(0.0),
        Just(-0.0),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        (-3i8..3).prop_map(f64::from),
    ]
}

fn number() -> impl Strategy<Value = Numeric> {
    let parse = |text: String| text.parse::<Numeric>().unwrap();
    prop_oneof![
        "-?[0-9]{1,12}(\\.[0-9]{1,12})?".prop_map(parse),
        "-?[0-9]{1,3}e-?[0-9]{1,2}".prop_map(parse),
        "-?[0-9](\\.[0-9])?".prop_map(parse),
        Just(Numeric::nan()),
        Just(Numeric::infinity()),
        Just(Numeric::neg_infinity()),
    ]
}

fn value(ty: DataType) -> BoxedStrategy<Value> {
    let small = -2i32..3;
    let plain = match ty {
        DataType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        DataType::Int2 => any::<i16>().prop_map(Value::Int2).boxed(),
        DataType::Int4 => prop_oneof![any::<i32>(), small].prop_map(Value::Int4).boxed(),
        DataType::Int8 => any::<i64>().prop_map(Value::Int8).boxed(),
        DataType::Float4 => float().prop_map(|v| Value::Float4(v as f32)).boxed(),
        DataType::Float8 => float().prop_map(Value::Float8).boxed(),
        DataType::Numeric { .. } => number().prop_map(Value::Numeric).boxed(),
        DataType::Text => "[a-c\u{0}é]{0,5}".prop_map(Value::Text).boxed(),
        DataType::Varchar(_) | DataType::Name => {
            "[a-c]{0,3}|.{0,200}".prop_map(Value::Text).boxed()
        }
        DataType::Char(_) => "[a-c\t ]{0,3}"
            .prop_map(|text| Value::Text(text.trim_end_matches(' ').to_owned()))
            .boxed(),
        DataType::Bytea => prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..5),
            proptest::collection::vec(0u8..2, 0..4)
        ]
        .prop_map(Value::Bytea)
        .boxed(),
        DataType::Date => any::<i32>().prop_map(Value::Date).boxed(),
        DataType::Timestamp(_) => any::<i64>().prop_map(Value::Timestamp).boxed(),
        DataType::Timestamptz(_) => any::<i64>().prop_map(Value::Timestamptz).boxed(),
        // No column has them; `types::other` tests them.
        DataType::Oid => any::<u32>().prop_map(|oid| Value::Int8(oid.into())).boxed(),
        DataType::Other { .. } => Just(Value::Null).boxed(),
    };
    prop_oneof![6 => plain, 1 => Just(Value::Null)].boxed()
}

fn order() -> impl Strategy<Value = KeyOrder> {
    (any::<bool>(), any::<bool>())
        .prop_map(|(descending, nulls_first)| KeyOrder { descending, nulls_first })
}

fn sql_order(a: &[Value], b: &[Value], orders: &[(DataType, KeyOrder)]) -> Ordering {
    for ((a, b), (_, order)) in a.iter().zip(b).zip(orders) {
        let ordering = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if order.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if order.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let ordering = a.sql_cmp(b).unwrap();
                if order.descending { ordering.reverse() } else { ordering }
            }
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

fn datums(row: &[Value]) -> Vec<Datum<'_>> {
    row.iter().map(Value::as_datum).collect()
}

type KeyCase = (Vec<(DataType, KeyOrder)>, Vec<Value>, Vec<Value>);

fn two_keys() -> impl Strategy<Value = KeyCase> {
    proptest::collection::vec((data_type(), order()), 1..4).prop_flat_map(|columns| {
        let row = Vec::from_iter(columns.iter().map(|(ty, _)| value(*ty)));
        // Half of the time the second row repeats the start of the first.
        (Just(columns), row.clone(), row, 0usize..6).prop_map(|(columns, a, mut b, same)| {
            let same = same.min(a.len() - 1);
            b[..same].clone_from_slice(&a[..same]);
            (columns, a, b)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn key_order_is_sql_order((columns, a, b) in two_keys()) {
        let layout = KeyLayout::new(columns.iter().copied());
        let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
        layout.encode(&datums(&a), &mut key_a).unwrap();
        layout.encode(&datums(&b), &mut key_b).unwrap();
        let wanted = sql_order(&a, &b, &columns);
        prop_assert_eq!(key_a.cmp(&key_b), wanted, "{:?} {:?}", key_a, key_b);

        for count in 0..=columns.len() {
            let mut prefix = Vec::new();
            layout.encode(&datums(&a[..count]), &mut prefix).unwrap();
            prop_assert_eq!(layout.prefix_length(&key_a, count), Some(prefix.len()));
        }
        prop_assert_eq!(layout.prefix_length(&key_a, columns.len() + 1), None);

        let sort_key = |row: &[Value]| {
            let mut key = Vec::new();
            for (value, (_, order)) in row.iter().zip(&columns) {
                encode_sort_column(&value.as_datum(), *order, &mut key);
            }
            key
        };
        prop_assert_eq!(sort_key(&a).cmp(&sort_key(&b)), wanted);
    }

    #[test]
    fn integers_have_the_sort_keys_of_their_values(
        value in any::<i64>(),
        descending in any::<bool>(),
        nulls_first in any::<bool>(),
    ) {
        let order = KeyOrder { descending, nulls_first };
        for (datum, width) in [
            (Datum::Int2(value as i16), IntWidth::Two),
            (Datum::Int4(value as i32), IntWidth::Four),
            (Datum::Int8(value), IntWidth::Eight),
        ] {
            let (mut of_value, mut of_int) = (Vec::new(), Vec::new());
            encode_sort_column(&datum, order, &mut of_value);
            let int = Int { value: datum.as_i64().unwrap(), width };
            encode_sort_int(int, order, &mut of_int);
            prop_assert_eq!(of_value, of_int);
        }
    }

    #[test]
    fn range_holds_what_sql_selects((columns, a, b) in two_keys(), inclusive in any::<bool>(), which in 0..5) {
        let layout = KeyLayout::new(columns.iter().copied());
        let last = columns.len() - 1;
        let equal = datums(&b[..last]);
        let end = RangeEnd { value: b[last].as_datum(), inclusive };
        prop_assume!(!end.value.is_null() || which > 2);
        let (from, to) = match which {
            0 => (Some(end), None),
            1 => (None, Some(end)),
            2 => (Some(end), Some(end)),
            _ => (None, None),
        };
        let next = if which == 4 { NextColumn::Any } else { NextColumn::Value { from, to } };
        let (mut lower, mut upper, mut key) = (Vec::new(), Vec::new(), Vec::new());
        layout.range(&equal, next, &mut lower, &mut upper).unwrap();
        layout.encode(&datums(&a), &mut key).unwrap();
        let same_prefix = sql_order(&a[..last], &b[..last], &columns) == Ordering::Equal;
        let compared = a[last].sql_cmp(&b[last]);
        let above = from.is_none() || compared.is_some_and(|o| o.is_gt() || inclusive && o.is_eq());
        let below = to.is_none() || compared.is_some_and(|o| o.is_lt() || inclusive && o.is_eq());
        let is_in_next = which == 4 || above && below && !a[last].as_datum().is_null();
        let selected = same_prefix && is_in_next;
        prop_assert_eq!(lower <= key && key < upper, selected, "{:?} {:?} {:?}", lower, key, upper);
    }

    #[test]
    fn rows_round_trip((columns, row, _) in two_keys()) {
        let layout = TupleLayout::new(columns.iter().map(|(ty, _)| *ty));
        let mut bytes = Vec::new();
        layout.encode(&datums(&row), &mut bytes).unwrap();
        layout.verify(&bytes).unwrap();
        let same = |a: &Datum<'_>, b: &Datum<'_>| a.sort_cmp(b) == Ordering::Equal && a.is_null() == b.is_null();
        for (column, value) in row.iter().enumerate() {
            prop_assert!(same(&layout.column(&bytes, column).unwrap(), &value.as_datum()));
        }
        let mut count = 0;
        layout.decode(&bytes, |column, datum| {
            assert!(same(&datum, &row[column].as_datum()));
            count += 1;
        }).unwrap();
        prop_assert_eq!(count, row.len());
    }

    #[test]
    fn damaged_rows_are_errors(
        columns in proptest::collection::vec(data_type(), 1..5),
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let layout = TupleLayout::new(columns.iter().copied());
        let _ = layout.verify(&bytes);
        for column in 0..columns.len() {
            let _ = layout.column(&bytes, column);
        }
    }
}

#[test]
fn a_prefix_has_the_strings_that_begin_with_it() {
    let texts = ["", "k", "k\u{1}", "kä", "kä\u{10ffff}", "kz", "l", "ka", "K", "k k"];
    for order in [KeyOrder::ASC, KeyOrder::DESC] {
        let columns = [(DataType::Int4, KeyOrder::ASC), (DataType::Text, order)];
        let layout = KeyLayout::new(columns.into_iter().chain([(DataType::Bool, order)]));
        for prefix in texts.into_iter().skip(1) {
            let (mut lower, mut upper) = (Vec::new(), Vec::new());
            let next = NextColumn::Prefix(prefix);
            layout.range(&[Datum::Int4(1)], next, &mut lower, &mut upper).unwrap();
            let is_within = |first, text| {
                [Datum::Bool(true), Datum::Bool(false), Datum::Null].map(|last| {
                    let mut key = Vec::new();
                    layout.encode(&[Datum::Int4(first), text, last], &mut key).unwrap();
                    lower <= key && key < upper
                })
            };
            for text in texts {
                let begins = text.starts_with(prefix);
                assert_eq!(is_within(1, Datum::Text(text)), [begins; 3], "{prefix:?} {text:?}");
                assert_eq!(is_within(2, Datum::Text(text)), [false; 3]);
            }
            assert_eq!(is_within(1, Datum::Null), [false; 3]);
        }
    }
}

#[test]
fn postgres_numbers_round_trip() {
    for ty in [
        DataType::Bool,
        DataType::Int8,
        DataType::Numeric { precision_scale: None },
        DataType::Numeric { precision_scale: Some((10, 2)) },
        DataType::Numeric { precision_scale: Some((3, -5)) },
        DataType::Varchar(None),
        DataType::Varchar(Some(40)),
        DataType::Char(84),
        DataType::Timestamptz(None),
    ] {
        assert_eq!(DataType::from_oid(ty.oid(), ty.typmod()), Some(ty));
    }
    assert_eq!(DataType::Varchar(Some(40)).typmod(), 44);
    assert_eq!(DataType::Numeric { precision_scale: Some((10, 2)) }.typmod(), 655_366);
    assert_eq!(DataType::from_oid(142, -1), None);
    for typmod in [i32::MIN, i32::MIN + 3, -1, 3] {
        assert_eq!(DataType::from_oid(1043, typmod), Some(DataType::Varchar(None)));
    }
    assert_eq!(DataType::Char(84).to_string(), "character(84)");
}

#[test]
fn long_values_and_old_rows() {
    let layout = TupleLayout::new([DataType::Text, DataType::Int4]);
    let text = "x".repeat(5000);
    let mut bytes = Vec::new();
    layout.encode(&[Datum::Text(&text), Datum::Int4(7)], &mut bytes).unwrap();
    assert_eq!(layout.column(&bytes, 1).unwrap(), Datum::Int4(7));
    assert_eq!(layout.column(&bytes, 0).unwrap(), Datum::Text(&text));
    let wider = TupleLayout::new([DataType::Text, DataType::Int4, DataType::Bool]);
    assert_eq!(wider.column(&bytes, 2).unwrap(), Datum::Null);
    assert_eq!(wider.column(&bytes, 1).unwrap(), Datum::Int4(7));
}
