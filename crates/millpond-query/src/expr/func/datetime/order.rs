//! Dates as they compare with time stamps.

use super::super::Body;
use super::super::catalog::{Proc, proc};
use super::super::value::wrong_arguments;
use super::{DATE, TIMESTAMP, TIMESTAMPTZ};
use crate::error::Result;
use crate::expr::{Env, Val, cast};
use crate::{DataType, Datum, Value};

/// A date's first moment. One that is before or behind all time stamps is not infinite.
pub(in crate::expr) static DATE_IN_ORDER: Proc =
    proc(0, "timestamp", &[DATE], TIMESTAMP, Body::Datums(in_order));

/// The same in the session's time zone.
pub(in crate::expr) static DATE_IN_ORDER_OF_ZONE: Proc =
    proc(0, "timestamptz", &[DATE], TIMESTAMPTZ, Body::Datums(in_order_of_zone)).stable();

/// Of a date that no time stamp has: below or above all finite time stamps, and not infinite.
fn beyond_all(args: &[Datum<'_>]) -> i64 {
    match args {
        // In a zone east of UTC the first date begins before all time stamps.
        [Datum::Date(days)] if *days < 0 => i64::MIN + 1,
        _ => i64::MAX - 1,
    }
}

fn in_order(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let moment = converted(args, DataType::Timestamp(None), env)?;
    Ok(moment.unwrap_or_else(|| Value::Timestamp(beyond_all(args))))
}

fn in_order_of_zone(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let moment = converted(args, DataType::Timestamptz(None), env)?;
    Ok(moment.unwrap_or_else(|| Value::Timestamptz(beyond_all(args))))
}

/// `None` for a date that no time stamp has.
fn converted(args: &[Datum<'_>], ty: DataType, env: &Env<'_>) -> Result<Option<Value>> {
    let [date] = args else { return Err(wrong_arguments(args.len())) };
    let options = env.facts.settings.format_options();
    let moment = cast::cast(Val::Borrowed(*date), ty, false, options);
    Ok(moment.ok().map(Val::into_value))
}
