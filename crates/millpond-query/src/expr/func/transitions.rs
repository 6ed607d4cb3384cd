//! The steps and the ends of aggregates, as functions: those whose states are arrays of numbers.

use millpond_types::Interval;
use millpond_types::other::INTERVAL as INTERVAL_OID;

use super::Body;
use super::catalog::{FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, Param, Proc, other, proc};
use super::datetime::INTERVAL;
use super::interval_math;
use super::value::wrong_arguments;
use crate::analyze::tree::{AggregateFunction as F, Regression as R};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Arith, Env, arith};
use crate::run::{FloatMoments, Pairs};
use crate::types::array::{array_of, build};
use crate::{Datum, Numeric, Value};

const FLOAT8_ARRAY_OID: u32 = 1022;
const INT8_ARRAY_OID: u32 = 1016;
const INTERVAL_ARRAY_OID: u32 = 1187;
const FLOATS: Param = other(FLOAT8_ARRAY_OID);
const INTS: Param = other(INT8_ARRAY_OID);
const INTERVALS: Param = other(INTERVAL_ARRAY_OID);

/// The end of a regression.
const fn regression(oid: u32, name: &'static str, body: Body) -> Proc {
    proc(oid, name, &[FLOATS], FLOAT8, body)
}

pub(super) static PROCS: &[Proc] = &[
    proc(208, "float4_accum", &[FLOATS, FLOAT4], FLOATS, Body::Datums(float_accum)),
    proc(222, "float8_accum", &[FLOATS, FLOAT8], FLOATS, Body::Datums(float_accum)),
    proc(276, "float8_combine", &[FLOATS, FLOATS], FLOATS, Body::Datums(float_combine)),
    proc(1830, "float8_avg", &[FLOATS], FLOAT8, Body::Datums(float_avg)),
    proc(2512, "float8_var_pop", &[FLOATS], FLOAT8, Body::Datums(|a, _| variance(a, F::VarPop))),
    proc(1831, "float8_var_samp", &[FLOATS], FLOAT8, Body::Datums(|a, _| variance(a, F::VarSamp))),
    proc(
        2513,
        "float8_stddev_pop",
        &[FLOATS],
        FLOAT8,
        Body::Datums(|a, _| variance(a, F::StddevPop)),
    ),
    proc(
        1832,
        "float8_stddev_samp",
        &[FLOATS],
        FLOAT8,
        Body::Datums(|a, _| variance(a, F::StddevSamp)),
    ),
    proc(2806, "float8_regr_accum", &[FLOATS, FLOAT8, FLOAT8], FLOATS, Body::Datums(regr_accum)),
    proc(3342, "float8_regr_combine", &[FLOATS, FLOATS], FLOATS, Body::Datums(regr_combine)),
    regression(2807, "float8_regr_sxx", Body::Datums(|a, _| regr(a, R::Sxx))),
    regression(2808, "float8_regr_syy", Body::Datums(|a, _| regr(a, R::Syy))),
    regression(2809, "float8_regr_sxy", Body::Datums(|a, _| regr(a, R::Sxy))),
    regression(2810, "float8_regr_avgx", Body::Datums(|a, _| regr(a, R::AvgX))),
    regression(2811, "float8_regr_avgy", Body::Datums(|a, _| regr(a, R::AvgY))),
    regression(2812, "float8_regr_r2", Body::Datums(|a, _| regr(a, R::R2))),
    regression(2813, "float8_regr_slope", Body::Datums(|a, _| regr(a, R::Slope))),
    regression(2814, "float8_regr_intercept", Body::Datums(|a, _| regr(a, R::Intercept))),
    regression(2815, "float8_covar_pop", Body::Datums(|a, _| regr(a, R::CovarPop))),
    regression(2816, "float8_covar_samp", Body::Datums(|a, _| regr(a, R::CovarSamp))),
    regression(2817, "float8_corr", Body::Datums(|a, _| regr(a, R::Corr))),
    proc(1962, "int2_avg_accum", &[INTS, INT2], INTS, Body::Datums(|a, _| int_accum(a, 1))),
    proc(1963, "int4_avg_accum", &[INTS, INT4], INTS, Body::Datums(|a, _| int_accum(a, 1))),
    proc(3570, "int2_avg_accum_inv", &[INTS, INT2], INTS, Body::Datums(|a, _| int_accum(a, -1))),
    proc(3571, "int4_avg_accum_inv", &[INTS, INT4], INTS, Body::Datums(|a, _| int_accum(a, -1))),
    proc(1964, "int8_avg", &[INTS], NUMERIC, Body::Datums(int_avg)),
    proc(3572, "int2int4_sum", &[INTS], INT8, Body::Datums(int_sum)),
    proc(1843, "interval_accum", &[INTERVALS, INTERVAL], INTERVALS, Body::Datums(interval_accum)),
    proc(
        3549,
        "interval_accum_inv",
        &[INTERVALS, INTERVAL],
        INTERVALS,
        Body::Datums(interval_accum_inv),
    ),
    proc(
        3325,
        "interval_combine",
        &[INTERVALS, INTERVALS],
        INTERVALS,
        Body::Datums(interval_combine),
    ),
    proc(1844, "interval_avg", &[INTERVALS], INTERVAL, Body::Datums(interval_avg)),
];

/// The numbers of a state: an array of one dimension without NULLs.
fn state<'a, const N: usize, T: Copy + Default>(
    state: Datum<'a>,
    element: &str,
    read: impl Fn(Datum<'a>) -> Option<T>,
) -> Result<[T; N]> {
    let read = || {
        let array = array_of(&state)?;
        let mut numbers = [T::default(); N];
        match array.dimensions() {
            [one] if one.length as usize == N => {}
            _ => return None,
        }
        for (number, datum) in numbers.iter_mut().zip(array.iter()) {
            *number = read(datum)?;
        }
        Some(numbers)
    };
    read().ok_or_else(|| {
        let message = format!("expected {N}-element {element} array");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

fn array<'a>(oid: u32, numbers: impl IntoIterator<Item = Datum<'a>>) -> Result<Value> {
    let numbers: Vec<Datum<'a>> = numbers.into_iter().collect();
    let length = numbers.len() as u32;
    Ok(build(oid, &[millpond_types::array::Dimension { length, lower: 1 }], numbers)?)
}

fn floats<const N: usize>(datum: Datum<'_>) -> Result<[f64; N]> {
    state(datum, "float8", |number| match number {
        Datum::Float8(number) => Some(number),
        _ => None,
    })
}

fn of_floats(numbers: impl IntoIterator<Item = f64>) -> Result<Value> {
    array(FLOAT8_ARRAY_OID, numbers.into_iter().map(Datum::Float8))
}

fn float_accum(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let (before, value) = match args {
        [state, Datum::Float8(value)] => (floats(*state)?, *value),
        [state, Datum::Float4(value)] => (floats(*state)?, f64::from(*value)),
        _ => return Err(wrong_arguments(args.len())),
    };
    let mut moments = FloatMoments::of(before);
    moments.add(value)?;
    of_floats(moments.numbers())
}

fn float_combine(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [a, b] = args else { return Err(wrong_arguments(args.len())) };
    let (a, b) = (FloatMoments::of(floats(*a)?), FloatMoments::of(floats(*b)?));
    of_floats(a.with(&b)?.numbers())
}

fn float_avg(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [state] = args else { return Err(wrong_arguments(args.len())) };
    let [count, sum, _] = floats(*state)?;
    Ok(if count == 0.0 { Value::Null } else { Value::Float8(sum / count) })
}

fn variance(args: &[Datum<'_>], function: F) -> Result<Value> {
    let [state] = args else { return Err(wrong_arguments(args.len())) };
    Ok(FloatMoments::of(floats(*state)?).finish(function))
}

fn regr_accum(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [state, Datum::Float8(y), Datum::Float8(x)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let mut pairs = Pairs::of(floats(*state)?);
    pairs.add(*y, *x)?;
    of_floats(pairs.numbers())
}

fn regr_combine(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [a, b] = args else { return Err(wrong_arguments(args.len())) };
    let (a, b) = (Pairs::of(floats(*a)?), Pairs::of(floats(*b)?));
    of_floats(a.with(&b)?.numbers())
}

fn regr(args: &[Datum<'_>], what: R) -> Result<Value> {
    let [state] = args else { return Err(wrong_arguments(args.len())) };
    Ok(Pairs::of(floats(*state)?).finish(what))
}

fn ints(datum: Datum<'_>) -> Result<[i64; 2]> {
    state(datum, "int8", |number| number.as_i64())
}

fn of_ints(count: i64, sum: i64) -> Result<Value> {
    array(INT8_ARRAY_OID, [count, sum].map(Datum::Int8))
}

/// Takes a number in, or out. As in PostgreSQL, what goes beyond the range begins at its other end.
fn int_accum(args: &[Datum<'_>], sign: i64) -> Result<Value> {
    let [state, value] = args else { return Err(wrong_arguments(args.len())) };
    let ([count, sum], value) = (ints(*state)?, value.as_i64().unwrap_or_default());
    of_ints(count.wrapping_add(sign), sum.wrapping_add(value.wrapping_mul(sign)))
}

fn int_avg(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [state] = args else { return Err(wrong_arguments(args.len())) };
    let [count, sum] = ints(*state)?;
    if count == 0 {
        return Ok(Value::Null);
    }
    let [sum, count] = [sum, count].map(|number| Value::Numeric(Numeric::from(number)));
    arith::apply(Arith::Div, sum.as_datum(), count.as_datum())
}

fn int_sum(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [state] = args else { return Err(wrong_arguments(args.len())) };
    let [count, sum] = ints(*state)?;
    Ok(if count == 0 { Value::Null } else { Value::Int8(sum) })
}

fn interval(datum: Datum<'_>) -> Option<Interval> {
    match datum {
        Datum::Other(INTERVAL_OID, bytes) => Interval::from_bytes(bytes),
        _ => None,
    }
}

/// A sum, and the number of its intervals: the microseconds of the second interval.
fn intervals(datum: Datum<'_>) -> Result<[Interval; 2]> {
    state(datum, "interval", interval)
}

/// A state with this sum and one more interval, or as many less.
fn of_intervals(sum: Interval, count: Interval, more: i64) -> Result<Value> {
    let count = Interval { usecs: count.usecs.wrapping_add(more), ..count };
    let [sum, count] = [sum, count].map(Value::from);
    array(INTERVAL_ARRAY_OID, [sum.as_datum(), count.as_datum()])
}

/// A state, and a value to be taken in or out.
fn step(args: &[Datum<'_>]) -> Result<(Interval, Interval, Interval)> {
    let [state, value] = args else { return Err(wrong_arguments(args.len())) };
    let [sum, count] = intervals(*state)?;
    let value = interval(*value).ok_or_else(|| wrong_arguments(args.len()))?;
    Ok((sum, count, value))
}

fn interval_accum(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let (sum, count, value) = step(args)?;
    of_intervals(interval_math::add(sum, value)?, count, 1)
}

fn interval_accum_inv(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let (sum, count, value) = step(args)?;
    of_intervals(interval_math::subtract(sum, value)?, count, -1)
}

fn interval_combine(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [a, b] = args else { return Err(wrong_arguments(args.len())) };
    let ([sum, count], [more, added]) = (intervals(*a)?, intervals(*b)?);
    of_intervals(interval_math::add(sum, more)?, count, added.usecs)
}

fn interval_avg(args: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let [state] = args else { return Err(wrong_arguments(args.len())) };
    let [sum, count] = intervals(*state)?;
    if count.usecs == 0 {
        return Ok(Value::Null);
    }
    Ok(interval_math::divide(sum, count.usecs as f64)?.into())
}
