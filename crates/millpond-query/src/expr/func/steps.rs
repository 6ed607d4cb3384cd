//! The small steps that aggregates, and the indexes of ranges, are made of.

use super::catalog::{ANY, BOOL, DATE, FLOAT8, INT2, INT4, INT8, NUMERIC, Proc, TIMESTAMPTZ, proc};
use super::datetime::{Date, Stamp, StampTz, TIMESTAMP};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, Val, cast};
use crate::{DataType, Datum, Numeric, Value};
use millpond_types::NumericRef;

pub(super) static COUNTS: &[Proc] = &[
    proc(766, "int4inc", &[INT4], INT4, body!(|n: i32| in_range(n.checked_add(1), "integer"))),
    proc(1219, "int8inc", &[INT8], INT8, body!(|n: i64| in_range(n.checked_add(1), "bigint"))),
    proc(3546, "int8dec", &[INT8], INT8, body!(|n: i64| in_range(n.checked_sub(1), "bigint"))),
    proc(
        2804,
        "int8inc_any",
        &[INT8, ANY],
        INT8,
        body!(|n: i64, _value: Datum<'_>| in_range(n.checked_add(1), "bigint")),
    ),
    proc(
        3547,
        "int8dec_any",
        &[INT8, ANY],
        INT8,
        body!(|n: i64, _value: Datum<'_>| in_range(n.checked_sub(1), "bigint")),
    ),
    proc(
        2805,
        "int8inc_float8_float8",
        &[INT8, FLOAT8, FLOAT8],
        INT8,
        body!(|n: i64, _y: f64, _x: f64| in_range(n.checked_add(1), "bigint")),
    ),
    proc(
        1764,
        "numeric_inc",
        &[NUMERIC],
        NUMERIC,
        body!(|n: NumericRef<'_>| n.add(Numeric::from(1i64).as_ref())),
    ),
    proc(2515, "booland_statefunc", &[BOOL, BOOL], BOOL, body!(|a: bool, b: bool| a && b)),
    proc(2516, "boolor_statefunc", &[BOOL, BOOL], BOOL, body!(|a: bool, b: bool| a || b)),
];

fn in_range<T>(number: Option<T>, name: &str) -> Result<T> {
    number.ok_or_else(|| {
        SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
    })
}

/// A sum begins with the first value that is not NULL. As in PostgreSQL, it turns around.
pub(super) static SUMS: &[Proc] = &[
    proc(
        1840,
        "int2_sum",
        &[INT8, INT2],
        INT8,
        body!(|sum: Option<i64>, n: Option<i16>| added(sum, n.map(i64::from))),
    )
    .called_on_null(),
    proc(
        1841,
        "int4_sum",
        &[INT8, INT4],
        INT8,
        body!(|sum: Option<i64>, n: Option<i32>| added(sum, n.map(i64::from))),
    )
    .called_on_null(),
    proc(
        1842,
        "int8_sum",
        &[NUMERIC, INT8],
        NUMERIC,
        body!(|sum: Option<NumericRef<'_>>, n: Option<i64>| match (sum, n.map(Numeric::from)) {
            (Some(sum), Some(n)) => sum.add(n.as_ref()).map(Some),
            (Some(sum), None) => Ok(Some(sum.to_owned())),
            (None, n) => Ok(n),
        }),
    )
    .called_on_null(),
];

fn added(sum: Option<i64>, n: Option<i64>) -> Option<i64> {
    match (sum, n) {
        (Some(sum), Some(n)) => Some(sum.wrapping_add(n)),
        (sum, n) => sum.or(n),
    }
}

/// How far two ends of ranges are apart.
pub(super) static DISTANCES: &[Proc] = &[
    proc(
        3922,
        "int4range_subdiff",
        &[INT4, INT4],
        FLOAT8,
        body!(|a: i32, b: i32| f64::from(a) - f64::from(b)),
    ),
    proc(3923, "int8range_subdiff", &[INT8, INT8], FLOAT8, body!(|a: i64, b: i64| wide(a, b))),
    proc(
        3924,
        "numrange_subdiff",
        &[NUMERIC, NUMERIC],
        FLOAT8,
        body!(env, |a: NumericRef<'_>, b: NumericRef<'_>| numeric_difference(a, b, env)),
    ),
    proc(
        3925,
        "daterange_subdiff",
        &[DATE, DATE],
        FLOAT8,
        body!(|a: Date, b: Date| f64::from(a.0) - f64::from(b.0)),
    ),
    proc(
        3929,
        "tsrange_subdiff",
        &[TIMESTAMP, TIMESTAMP],
        FLOAT8,
        body!(|a: Stamp, b: Stamp| wide(a.0, b.0) / USECS_PER_SECOND),
    ),
    proc(
        3930,
        "tstzrange_subdiff",
        &[TIMESTAMPTZ, TIMESTAMPTZ],
        FLOAT8,
        body!(|a: StampTz, b: StampTz| wide(a.0, b.0) / USECS_PER_SECOND),
    ),
];

const USECS_PER_SECOND: f64 = 1e6;

#[expect(clippy::cast_precision_loss, reason = "a difference of floats is asked for")]
fn wide(a: i64, b: i64) -> f64 {
    a as f64 - b as f64
}

fn numeric_difference(a: NumericRef<'_>, b: NumericRef<'_>, env: &Env<'_>) -> Result<Value> {
    let options = env.facts.settings.format_options();
    let difference = Val::Owned(Value::Numeric(a.sub(b)?));
    cast::cast(difference, DataType::Float8, true, options).map(Val::into_value)
}
