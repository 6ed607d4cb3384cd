//! `in_range`, by which windows with RANGE find the ends of their frames, as functions.

use super::Body;
use super::catalog::{
    BOOL, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, Param, Proc, TIMESTAMPTZ, proc,
};
use super::datetime::{INTERVAL, TIME, TIMESTAMP, TIMETZ};
use super::value::wrong_arguments;
use crate::error::Result;
use crate::expr::{Env, Val, cast};
use crate::run::in_range;
use crate::{DataType, Datum, Value};

/// Whether a value is at most (or, without the last flag, at least) another one plus (or, with the
/// flag before it, minus) an offset.
const fn of(oid: u32, args: &'static [Param]) -> Proc {
    proc(oid, "in_range", args, BOOL, Body::Datums(is_in_range))
}

pub(super) static PROCS: &[Proc] = &[
    of(4126, &[INT8, INT8, INT8, BOOL, BOOL]),
    of(4127, &[INT4, INT4, INT8, BOOL, BOOL]),
    of(4128, &[INT4, INT4, INT4, BOOL, BOOL]),
    of(4129, &[INT4, INT4, INT2, BOOL, BOOL]),
    of(4130, &[INT2, INT2, INT8, BOOL, BOOL]),
    of(4131, &[INT2, INT2, INT4, BOOL, BOOL]),
    of(4132, &[INT2, INT2, INT2, BOOL, BOOL]),
    of(4133, &[DATE, DATE, INTERVAL, BOOL, BOOL]),
    of(4134, &[TIMESTAMP, TIMESTAMP, INTERVAL, BOOL, BOOL]),
    of(4135, &[TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL, BOOL, BOOL]).stable(),
    of(4136, &[INTERVAL, INTERVAL, INTERVAL, BOOL, BOOL]),
    of(4137, &[TIME, TIME, INTERVAL, BOOL, BOOL]),
    of(4138, &[TIMETZ, TIMETZ, INTERVAL, BOOL, BOOL]),
    of(4139, &[FLOAT8, FLOAT8, FLOAT8, BOOL, BOOL]),
    of(4140, &[FLOAT4, FLOAT4, FLOAT8, BOOL, BOOL]),
    of(4141, &[NUMERIC, NUMERIC, NUMERIC, BOOL, BOOL]),
];

fn is_in_range(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [value, base, offset, Datum::Bool(minus), Datum::Bool(less)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let options = env.facts.settings.format_options();
    // Dates compare as time stamps, so each has to be one.
    let moment = |datum: &Datum<'_>| match datum {
        Datum::Date(_) => {
            let moment = DataType::Timestamp(None);
            cast::cast(Val::Borrowed(*datum), moment, false, options).map(Val::into_value)
        }
        other => Ok(other.to_value()),
    };
    let (value, base) = (moment(value)?, moment(base)?);
    let found =
        in_range(value.as_datum(), base.as_datum(), *offset, (*minus, *less), options.zone)?;
    Ok(Value::Bool(found))
}
