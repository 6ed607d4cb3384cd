//! `OVERLAPS`: whether two periods have a moment in common.

use std::cmp::Ordering;

use millpond_types::Interval;

use super::super::Body;
use super::super::catalog::{Param, Proc, proc};
use super::super::value::{Arg, Outcome};
use super::value::{Stamp, StampTz, Time, TimeTz};
use super::{BOOL, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ};
use crate::error::Result;
use crate::expr::Env;
use crate::{Datum, Value};

/// An entry of one combination of types. The ends may be given as lengths.
const fn entry(oid: u32, args: &'static [Param]) -> Proc {
    proc(oid, "overlaps", args, BOOL, Body::Datums(overlaps)).called_on_null()
}

pub(in super::super) static PROCS: &[Proc] = &[
    entry(1304, &[TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ]),
    entry(1305, &[TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, INTERVAL]).stable(),
    entry(1306, &[TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL]).stable(),
    entry(1307, &[TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ]).stable(),
    entry(2041, &[TIMESTAMP, TIMESTAMP, TIMESTAMP, TIMESTAMP]),
    entry(2042, &[TIMESTAMP, INTERVAL, TIMESTAMP, INTERVAL]),
    entry(2043, &[TIMESTAMP, TIMESTAMP, TIMESTAMP, INTERVAL]),
    entry(2044, &[TIMESTAMP, INTERVAL, TIMESTAMP, TIMESTAMP]),
    entry(1308, &[TIME, TIME, TIME, TIME]),
    entry(1309, &[TIME, INTERVAL, TIME, INTERVAL]),
    entry(1310, &[TIME, TIME, TIME, INTERVAL]),
    entry(1311, &[TIME, INTERVAL, TIME, TIME]),
    entry(1271, &[TIMETZ, TIMETZ, TIMETZ, TIMETZ]),
];

fn overlaps(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let [a, a_end, b, b_end] = args else {
        return Err(super::super::value::wrong_arguments(args.len()));
    };
    let (a_end, b_end) = (end(a, a_end, env)?, end(b, b_end, env)?);
    Ok(common(period(*a, a_end.as_datum()), period(*b, b_end.as_datum())))
}

/// The end of a period: a length is added to its start.
fn end(start: &Datum<'_>, end: &Datum<'_>, env: &Env<'_>) -> Result<Value> {
    let Some(length) = Interval::of(end) else { return Ok(end.to_value()) };
    if let Some(Stamp(start)) = Stamp::of(start) {
        return Stamp(super::arith::add(start, length)?).outcome();
    }
    if let Some(StampTz(start)) = StampTz::of(start) {
        let zone = super::arith::zone(env);
        return StampTz(super::arith::add_in_zone(start, length, zone)?).outcome();
    }
    if let Some(Time(start)) = Time::of(start) {
        return Time(super::arith::turn(start, length.usecs)).outcome();
    }
    match TimeTz::of(start) {
        Some(TimeTz(start, west)) => {
            TimeTz(super::arith::turn(start, length.usecs), west).outcome()
        }
        None => Ok(Value::Null),
    }
}

/// A period with its earlier end first. An end that is NULL is unknown, and comes last.
fn period<'a>(start: Datum<'a>, end: Datum<'a>) -> (Datum<'a>, Datum<'a>) {
    if start.is_null() || start.sql_cmp(&end) == Some(Ordering::Greater) {
        (end, start)
    } else {
        (start, end)
    }
}

fn common(a: (Datum<'_>, Datum<'_>), b: (Datum<'_>, Datum<'_>)) -> Value {
    let Some(order) = a.0.sql_cmp(&b.0) else { return Value::Null };
    // The later period begins before the earlier one ends, or both begin together.
    let (earlier, later) = match order {
        Ordering::Greater => (b, a),
        Ordering::Less => (a, b),
        Ordering::Equal if a.1.is_null() || b.1.is_null() => return Value::Null,
        Ordering::Equal => return Value::Bool(true),
    };
    match later.0.sql_cmp(&earlier.1) {
        Some(Ordering::Less) => Value::Bool(true),
        // Unknown ends: it may or may not reach so far.
        None => Value::Null,
        Some(_) if later.1.is_null() => Value::Null,
        Some(_) => Value::Bool(false),
    }
}
