//! The catalog as a whole: it agrees with PostgreSQL's, and no function panics.

use std::collections::{HashMap, HashSet};

use millpond_types::Interval;
use millpond_types::other::{INTERVAL, JSON, JSONB, TIME, TIMETZ};
use proptest::prelude::*;

use super::catalog::{self, Param, Proc, Volatility};
use super::conditional::type_name;
use super::{Body, Func, call};
use crate::error::SqlState;
use crate::expr::Expr;
use crate::expr::tests::with_params;
use crate::{DataType, Datum, Numeric, Value};

fn name_of(param: Param) -> String {
    match param {
        Param::Type(ty) => type_name(ty),
        Param::Any => "\"any\"".to_owned(),
        Param::AnyElement => "anyelement".to_owned(),
        Param::AnyNonArray => "anynonarray".to_owned(),
        Param::Void => "void".to_owned(),
        #[allow(unreachable_patterns, reason = "more kinds of parameters are being added")]
        other => format!("{other:?}").to_lowercase(),
    }
}

fn describe(proc: &Proc) -> String {
    let mut args = proc.args;
    // The binder adds the name of the type.
    if proc.name == "pg_typeof" {
        args = &args[..1];
    }
    let args: Vec<String> = args.iter().map(|arg| name_of(*arg)).collect();
    format!(
        "{}\t{}\t{}\t{}\t{}\t{}\t{}",
        proc.oid,
        proc.name,
        args.join(","),
        name_of(proc.result),
        match proc.volatility {
            Volatility::Immutable => 'i',
            Volatility::Stable => 's',
            Volatility::Volatile => 'v',
        },
        if proc.strict { 't' } else { 'f' },
        if proc.variadic { "variadic" } else { "" },
    )
}

/// The file has PostgreSQL 15's functions. Most have `regtype` and `pg_node_tree` as text, and
/// `regclass` as oid.
#[test]
fn functions_are_declared_as_in_postgresql() {
    let file = include_str!("../answers/pg_proc.txt");
    let theirs: HashMap<u32, &str> = file
        .lines()
        .filter_map(|line| Some((line.split('\t').next()?.parse().ok()?, line)))
        .collect();
    let mut wrong = Vec::new();
    for proc in catalog::all().filter(|proc| proc.oid != 0) {
        let ours = describe(proc);
        match theirs.get(&proc.oid) {
            Some(line) if *line == ours => {}
            found => wrong.push(format!("{ours}\n{}", found.unwrap_or(&"is not there"))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_are_there_once() {
    let mut oids = HashSet::new();
    let mut signatures = HashSet::new();
    for proc in catalog::all() {
        assert!(proc.oid == 0 || oids.insert(proc.oid), "{}", proc.name);
        let args: Vec<String> = proc.args.iter().map(|arg| name_of(*arg)).collect();
        assert!(signatures.insert((proc.name, args, proc.variadic)), "{}", proc.name);
        assert!(!proc.variadic || !proc.args.is_empty(), "{}", proc.name);
    }
}

#[test]
fn names_that_are_absent_are_known() {
    assert!(catalog::is_known_name("lower"));
    assert!(catalog::is_known_name("pg_get_viewdef"));
    assert!(!catalog::is_known_name("nosuch"));
}

/// Values with the extremes of each type among them.
fn value(ty: DataType) -> BoxedStrategy<Value> {
    match ty {
        DataType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        DataType::Int2 => any::<i16>().prop_map(Value::Int2).boxed(),
        DataType::Int4 => prop_oneof![-3..5i32, Just(i32::MIN), Just(i32::MAX), any::<i32>(),]
            .prop_map(Value::Int4)
            .boxed(),
        DataType::Int8 => prop_oneof![-3..40i64, Just(i64::MIN), Just(i64::MAX), any::<i64>()]
            .prop_map(Value::Int8)
            .boxed(),
        DataType::Oid => any::<u32>().prop_map(|oid| Value::Int8(oid.into())).boxed(),
        DataType::Float4 => any::<f32>().prop_map(Value::Float4).boxed(),
        DataType::Float8 => prop_oneof![
            any::<f64>(),
            -2.0..2.0f64,
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(0.0),
            Just(-0.0),
        ]
        .prop_map(Value::Float8)
        .boxed(),
        DataType::Numeric { .. } => {
            "(-?[0-9]{1,12}(\\.[0-9]{0,9})?(e-?[0-9]{1,2})?|0|1|-1|NaN|Infinity|-Infinity)"
                .prop_map(|text| {
                    Value::Numeric(text.parse::<Numeric>().unwrap_or_else(|_| Numeric::nan()))
                })
                .boxed()
        }
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => prop_oneof![
            "[ -~]{0,12}",
            "[a-cé\u{1f600}\\\\%_(){}*+?.^$|=0-9 ]{0,12}",
            "\\PC{0,8}",
            "(hex|base64|escape|UTF8|LATIN1|NFC|NFKD|i|g|day|month|UTC)",
        ]
        .prop_map(Value::Text)
        .boxed(),
        DataType::Bytea => {
            proptest::collection::vec(any::<u8>(), 0..12).prop_map(Value::Bytea).boxed()
        }
        DataType::Date => prop_oneof![any::<i32>(), -1000..1000i32].prop_map(Value::Date).boxed(),
        DataType::Timestamp(_) => any::<i64>().prop_map(Value::Timestamp).boxed(),
        DataType::Timestamptz(_) => any::<i64>().prop_map(Value::Timestamptz).boxed(),
        DataType::Other { oid: INTERVAL, .. } => {
            let months = prop_oneof![-30..30i32, any::<i32>()];
            let days = prop_oneof![-100..100i32, any::<i32>()];
            let usecs = prop_oneof![-200_000_000_000..200_000_000_000i64, any::<i64>()];
            (months, days, usecs)
                .prop_map(|(months, days, usecs)| Interval { months, days, usecs }.into())
                .boxed()
        }
        DataType::Other { oid: TIME, .. } => {
            (0..=86_400_000_000i64).prop_map(crate::types::time::time_value).boxed()
        }
        DataType::Other { oid: TIMETZ, .. } => (0..=86_400_000_000i64, -57_599..57_600i32)
            .prop_map(|(usecs, west)| crate::types::time::timetz_value(usecs, west))
            .boxed(),
        ty @ DataType::Other { oid: JSON | JSONB, .. } => {
            const TEXTS: &[&str] =
                &["1", "-0.5", "true", "null", r#""a""#, "[1, [[]]]", r#"{"a": {"b": 1}}"#, "[]"];
            proptest::sample::select(TEXTS)
                .prop_map(move |text| {
                    crate::types::text::parse(ty, text, &Default::default()).unwrap()
                })
                .boxed()
        }
        ty => match ty.element() {
            Some(element) => {
                let elements = proptest::collection::vec(value(element), 0..5);
                elements.prop_map(move |elements| list(ty, &elements)).boxed()
            }
            None => Just(Value::Null).boxed(),
        },
    }
}

fn list(ty: DataType, elements: &[Value]) -> Value {
    crate::types::array::build_list(ty.oid(), elements.iter().map(Value::as_datum)).unwrap()
}

fn arguments(proc: &'static Proc) -> BoxedStrategy<Vec<Value>> {
    let of = |param: &Param| match param {
        Param::Type(ty) => value(*ty),
        Param::AnyArray | Param::AnyCompatibleArray => value(DataType::Int4.array().unwrap()),
        _ => value(DataType::Int4),
    };
    let args: Vec<BoxedStrategy<Value>> = proc.args.iter().map(of).collect();
    let nulls = proptest::collection::vec(proptest::bool::weighted(0.05), args.len());
    (args, nulls)
        .prop_map(|(args, nulls)| {
            let null = |(arg, null)| if null { Value::Null } else { arg };
            args.into_iter().zip(nulls).map(null).collect()
        })
        .boxed()
}

/// What takes no time, needs no session, and is no matter of a few bytes. Of objects of an unknown
/// class, PostgreSQL says itself that they are an internal error.
fn is_tame(proc: &Proc) -> bool {
    matches!(proc.body, Body::Datums(_) | Body::Exprs(_))
        && !matches!(proc.name, "factorial" | "repeat" | "lpad" | "rpad" | "format")
        && proc.name != "pg_describe_object"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_function_panics_or_answers_another_type(
        (proc, args) in proptest::sample::select(
            catalog::all().filter(|proc| is_tame(proc)).collect::<Vec<_>>()
        ).prop_flat_map(|proc| (Just(proc), arguments(proc)))
    ) {
        let exprs: Vec<Expr> = args.iter().cloned().map(Expr::Const).collect();
        let result = with_params(&[], |env| call(Func::new(proc), &exprs, env).map(crate::expr::Val::into_value));
        match result {
            Err(error) => prop_assert_ne!(
                error.sqlstate, SqlState::INTERNAL_ERROR, "{} {:?}", proc.name, args
            ),
            Ok(value) if value.is_null() => {}
            Ok(value) => {
                let datums: Vec<Datum<'_>> = args.iter().map(Value::as_datum).collect();
                prop_assert!(!proc.is_null_for(&datums));
                if let Param::Type(ty) = proc.result {
                    let own = crate::expr::cast::type_of(&value.as_datum());
                    // The value of an oid is a bigint, and those of other strings are text.
                    let held = match ty {
                        DataType::Oid => DataType::Int8,
                        DataType::Name | DataType::Char(_) | DataType::Varchar(_) => DataType::Text,
                        ty => ty,
                    };
                    prop_assert_eq!(own.map(DataType::oid), Some(held.oid()), "{}", proc.name);
                }
            }
        }
    }
}
