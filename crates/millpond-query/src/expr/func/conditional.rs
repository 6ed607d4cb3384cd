//! What PostgreSQL's grammar has as expressions of their own, and what looks at NULLs.

use super::Body;
use super::catalog::{ANY, INT4, Proc, TEXT, proc};
use super::value::body;
use crate::Datum;
use crate::error::Result;
use crate::expr::{Env, Expr, Val};
use crate::{DataType, Value};

use super::catalog::Param::AnyElement as ELEMENT;

pub(super) static PROCS: &[Proc] = &[
    proc(0, "greatest", &[ELEMENT], ELEMENT, Body::Exprs(greatest)).called_on_null().variadic(),
    proc(0, "least", &[ELEMENT], ELEMENT, Body::Exprs(least)).called_on_null().variadic(),
    proc(0, "nullif", &[ELEMENT, ELEMENT], ELEMENT, Body::Exprs(null_if)).called_on_null(),
    proc(
        438,
        "num_nulls",
        &[ANY],
        INT4,
        Body::Datums(|args, _| Ok(Value::Int4(count(args, true)))),
    )
    .called_on_null()
    .variadic(),
    proc(
        440,
        "num_nonnulls",
        &[ANY],
        INT4,
        Body::Datums(|args, _| Ok(Value::Int4(count(args, false)))),
    )
    .called_on_null()
    .variadic(),
    // The binder adds the second argument: the name of the first one's type.
    proc(1619, "pg_typeof", &[ANY, TEXT], TEXT, body!(|_value: Datum<'_>, ty: Option<&str>| ty))
        .stable()
        .called_on_null(),
];

fn count(args: &[Datum<'_>], null: bool) -> i32 {
    args.iter().filter(|arg| arg.is_null() == null).count() as i32
}

fn greatest<'a>(args: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    extreme(args, env, std::cmp::Ordering::is_gt)
}

fn least<'a>(args: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    extreme(args, env, std::cmp::Ordering::is_lt)
}

/// The greatest or least of the values that are not NULL.
fn extreme<'a>(
    args: &'a [Expr],
    env: &Env<'a>,
    better: fn(std::cmp::Ordering) -> bool,
) -> Result<Val<'a>> {
    let mut best: Val<'a> = Val::Borrowed(Datum::Null);
    for arg in args {
        let value = arg.eval(env)?;
        if value.is_null() {
            continue;
        }
        if best.is_null() || better(value.datum().sort_cmp(&best.datum())) {
            best = value;
        }
    }
    Ok(best)
}

fn null_if<'a>(args: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    let [value, other] = args else { return Ok(Val::Borrowed(Datum::Null)) };
    let (value, other) = (value.eval(env)?, other.eval(env)?);
    let equal = value.datum().sql_cmp(&other.datum()).is_some_and(|order| order.is_eq());
    Ok(if equal { Val::Borrowed(Datum::Null) } else { value })
}

/// The name of a type for `pg_typeof`.
pub(in crate::expr) fn type_name(ty: DataType) -> String {
    match ty {
        // A modifier is no part of the answer.
        DataType::Char(_) => "character".to_owned(),
        ty => ty.base().to_string(),
    }
}
