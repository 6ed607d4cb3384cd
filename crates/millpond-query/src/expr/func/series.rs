//! Series of numbers and of time stamps, and what is left of the rows of a function.

use std::cmp::Ordering;

use millpond_types::numeric::Parts;
use millpond_types::{Interval, NumericRef};

use super::catalog::{INT4, INT8, NUMERIC, Proc, TIMESTAMPTZ, proc};
use super::datetime::{INTERVAL, Later, Stamp, StampTz, TIMESTAMP};
use super::value::{Arg, wrong_arguments};
use super::{Body, Columns, Make, Rows, RowsOf};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Arith, arith};
use crate::memory::bytes_of;
use crate::{Datum, Numeric, Value};

/// The rows that a function still returns.
pub enum Series {
    /// Rows that are there already: the values of one behind those of the other.
    Rows {
        values: std::vec::IntoIter<Value>,
        columns: usize,
        bytes: usize,
    },
    Ints {
        next: i128,
        stop: i128,
        step: i128,
        is_int8: bool,
    },
    Numerics {
        next: Value,
        stop: Value,
        step: Value,
        is_up: bool,
    },
    Stamps {
        next: i64,
        stop: i64,
        step: Interval,
        is_up: bool,
        later: Later,
    },
}

/// A function whose rows are made one by one.
pub(super) const fn series(columns: Columns, body: Make<Series>) -> Body {
    Body::Rows(Rows { columns, is_set: true, body: RowsOf::Series(body) })
}

const INT4_ROWS: Columns = &[(None, INT4)];
const INT8_ROWS: Columns = &[(None, INT8)];
const NUMERIC_ROWS: Columns = &[(None, NUMERIC)];
const STAMP_ROWS: Columns = &[(None, TIMESTAMP)];
const STAMPTZ_ROWS: Columns = &[(None, TIMESTAMPTZ)];
const NAME: &str = "generate_series";

pub(super) static PROCS: &[Proc] = &[
    proc(1066, NAME, &[INT4, INT4, INT4], INT4, series(INT4_ROWS, |args, _| ints(args, false))),
    proc(1067, NAME, &[INT4, INT4], INT4, series(INT4_ROWS, |args, _| ints(args, false))),
    proc(1068, NAME, &[INT8, INT8, INT8], INT8, series(INT8_ROWS, |args, _| ints(args, true))),
    proc(1069, NAME, &[INT8, INT8], INT8, series(INT8_ROWS, |args, _| ints(args, true))),
    proc(
        3259,
        NAME,
        &[NUMERIC, NUMERIC, NUMERIC],
        NUMERIC,
        series(NUMERIC_ROWS, |args, _| numerics(args)),
    ),
    proc(3260, NAME, &[NUMERIC, NUMERIC], NUMERIC, series(NUMERIC_ROWS, |args, _| numerics(args))),
    proc(
        938,
        NAME,
        &[TIMESTAMP, TIMESTAMP, INTERVAL],
        TIMESTAMP,
        series(STAMP_ROWS, |args, _| {
            stamps(args, |datum| Stamp::of(datum).map(|stamp| stamp.0), Later::plain())
        }),
    ),
    proc(
        939,
        NAME,
        &[TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL],
        TIMESTAMPTZ,
        series(STAMPTZ_ROWS, |args, env| {
            stamps(args, |datum| StampTz::of(datum).map(|stamp| stamp.0), Later::in_zone_of(env))
        }),
    )
    .stable(),
];

fn ints(args: &[Datum<'_>], is_int8: bool) -> Result<Series> {
    let mut numbers = args.iter().map(|arg| arg.as_i64().map(i128::from));
    let (Some(Some(next)), Some(Some(stop)), step) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        return Err(wrong_arguments(args.len()));
    };
    match step.unwrap_or(Some(1)) {
        Some(0) => Err(zero_step()),
        Some(step) => Ok(Series::Ints { next, stop, step, is_int8 }),
        None => Err(wrong_arguments(args.len())),
    }
}

fn numerics(args: &[Datum<'_>]) -> Result<Series> {
    let mut numbers = args.iter().map(NumericRef::of);
    let (Some(Some(start)), Some(Some(stop)), step) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        return Err(wrong_arguments(args.len()));
    };
    check_finite(start, "start value")?;
    check_finite(stop, "stop value")?;
    let one = Numeric::from(1i64);
    let step = step.flatten().unwrap_or(one.as_ref());
    check_finite(step, "step size")?;
    let zero = Numeric::from(0i64);
    let is_up = match step.cmp(&zero.as_ref()) {
        Ordering::Equal => return Err(zero_step()),
        order => order.is_gt(),
    };
    let [next, stop, step] = [start, stop, step].map(|number| Datum::Numeric(number).to_value());
    Ok(Series::Numerics { next, stop, step, is_up })
}

fn stamps(
    args: &[Datum<'_>],
    usecs: fn(&Datum<'_>) -> Option<i64>,
    later: Later,
) -> Result<Series> {
    let [start, stop, by] = args else { return Err(wrong_arguments(args.len())) };
    let (Some(next), Some(stop), Some(step)) = (usecs(start), usecs(stop), Interval::of(by)) else {
        return Err(wrong_arguments(args.len()));
    };
    let none = Value::from(Interval::default());
    let is_up = match by.sql_cmp(&none.as_datum()) {
        None | Some(Ordering::Equal) => return Err(zero_step()),
        Some(order) => order.is_gt(),
    };
    Ok(Series::Stamps { next, stop, step, is_up, later })
}

impl Series {
    /// One row of some values; without values no row.
    pub(crate) fn one_row(values: Vec<Value>) -> Self {
        let bytes = bytes_of(&values);
        Self::Rows { columns: values.len(), values: values.into_iter(), bytes }
    }

    /// Rows of that many values each.
    pub(crate) fn of_rows(rows: Vec<Vec<Value>>, columns: usize) -> Self {
        let values: Vec<Value> = rows.into_iter().flatten().collect();
        let bytes = bytes_of(&values);
        Self::Rows { values: values.into_iter(), columns, bytes }
    }

    /// About how many bytes the rows take that are there already.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Rows { bytes, .. } => *bytes,
            _ => 0,
        }
    }

    /// Adds the values of the next row, if there is one.
    pub(crate) fn next(&mut self, row: &mut Vec<Value>) -> Result<bool> {
        match self {
            Self::Rows { values, columns, .. } => {
                let before = row.len();
                row.extend(values.by_ref().take(*columns));
                return Ok(row.len() > before);
            }
            Self::Ints { next, stop, step, is_int8 } => {
                if is_over(next, stop, *step > 0) {
                    return Ok(false);
                }
                let value = *next;
                *next += *step;
                row.push(match is_int8 {
                    true => Value::Int8(value as i64),
                    false => Value::Int4(value as i32),
                });
            }
            Self::Numerics { next, stop, step, is_up } => {
                let order = next.sql_cmp(stop).unwrap_or(Ordering::Equal);
                if is_over(&order, &Ordering::Equal, *is_up) {
                    return Ok(false);
                }
                let after = arith::apply(Arith::Add, next.as_datum(), step.as_datum())?;
                row.push(std::mem::replace(next, after));
            }
            Self::Stamps { next, stop, step, is_up, later } => {
                if is_over(next, stop, *is_up) {
                    return Ok(false);
                }
                let after = later.add(*next, *step)?;
                row.push(later.value(std::mem::replace(next, after)));
            }
        }
        Ok(true)
    }
}

fn is_over<T: Ord>(next: &T, stop: &T, is_up: bool) -> bool {
    if is_up { next > stop } else { next < stop }
}

fn check_finite(number: NumericRef<'_>, what: &str) -> Result<()> {
    let found = match number.parts() {
        Parts::Finite(_) => return Ok(()),
        Parts::NaN => "NaN",
        Parts::Infinity | Parts::NegInfinity => "infinity",
    };
    let message = format!("{what} cannot be {found}");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

#[cold]
fn zero_step() -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}
