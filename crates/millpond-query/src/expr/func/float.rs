//! Functions of floats.

mod degrees;

use super::catalog::{FLOAT4, FLOAT8, INT4, Proc, proc};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;

pub(super) static PROCS: &[Proc] = &[
    proc(1394, "abs", &[FLOAT4], FLOAT4, body!(|x: f32| x.abs())),
    proc(1395, "abs", &[FLOAT8], FLOAT8, body!(|x: f64| x.abs())),
    proc(207, "float4abs", &[FLOAT4], FLOAT4, body!(|x: f32| x.abs())),
    proc(221, "float8abs", &[FLOAT8], FLOAT8, body!(|x: f64| x.abs())),
    proc(2308, "ceil", &[FLOAT8], FLOAT8, body!(|x: f64| x.ceil())),
    proc(2320, "ceiling", &[FLOAT8], FLOAT8, body!(|x: f64| x.ceil())),
    proc(2309, "floor", &[FLOAT8], FLOAT8, body!(|x: f64| x.floor())),
    proc(1342, "round", &[FLOAT8], FLOAT8, body!(|x: f64| x.round_ties_even())),
    proc(228, "dround", &[FLOAT8], FLOAT8, body!(|x: f64| x.round_ties_even())),
    proc(1343, "trunc", &[FLOAT8], FLOAT8, body!(|x: f64| x.trunc())),
    proc(229, "dtrunc", &[FLOAT8], FLOAT8, body!(|x: f64| x.trunc())),
    proc(2310, "sign", &[FLOAT8], FLOAT8, body!(|x: f64| sign(x))),
    proc(1344, "sqrt", &[FLOAT8], FLOAT8, body!(|x: f64| sqrt(x))),
    proc(230, "dsqrt", &[FLOAT8], FLOAT8, body!(|x: f64| sqrt(x))),
    proc(1345, "cbrt", &[FLOAT8], FLOAT8, body!(|x: f64| checked(x.cbrt(), x, x == 0.0))),
    proc(231, "dcbrt", &[FLOAT8], FLOAT8, body!(|x: f64| checked(x.cbrt(), x, x == 0.0))),
    proc(1346, "pow", &[FLOAT8, FLOAT8], FLOAT8, body!(|x: f64, y: f64| power(x, y))),
    proc(1368, "power", &[FLOAT8, FLOAT8], FLOAT8, body!(|x: f64, y: f64| power(x, y))),
    proc(232, "dpow", &[FLOAT8, FLOAT8], FLOAT8, body!(|x: f64, y: f64| power(x, y))),
    proc(1347, "exp", &[FLOAT8], FLOAT8, body!(|x: f64| exp(x))),
    proc(233, "dexp", &[FLOAT8], FLOAT8, body!(|x: f64| exp(x))),
    proc(1341, "ln", &[FLOAT8], FLOAT8, body!(|x: f64| logarithm(x, f64::ln))),
    proc(234, "dlog1", &[FLOAT8], FLOAT8, body!(|x: f64| logarithm(x, f64::ln))),
    proc(1340, "log", &[FLOAT8], FLOAT8, body!(|x: f64| logarithm(x, f64::log10))),
    proc(1194, "log10", &[FLOAT8], FLOAT8, body!(|x: f64| logarithm(x, f64::log10))),
    proc(1339, "dlog10", &[FLOAT8], FLOAT8, body!(|x: f64| logarithm(x, f64::log10))),
    proc(1600, "asin", &[FLOAT8], FLOAT8, body!(|x: f64| within(x, -1.0, 1.0, f64::asin))),
    proc(1601, "acos", &[FLOAT8], FLOAT8, body!(|x: f64| within(x, -1.0, 1.0, f64::acos))),
    proc(1602, "atan", &[FLOAT8], FLOAT8, body!(|x: f64| x.atan())),
    proc(1603, "atan2", &[FLOAT8, FLOAT8], FLOAT8, body!(|y: f64, x: f64| y.atan2(x))),
    proc(1604, "sin", &[FLOAT8], FLOAT8, body!(|x: f64| finite(x, f64::sin))),
    proc(1605, "cos", &[FLOAT8], FLOAT8, body!(|x: f64| finite(x, f64::cos))),
    proc(1606, "tan", &[FLOAT8], FLOAT8, body!(|x: f64| finite(x, f64::tan))),
    proc(1607, "cot", &[FLOAT8], FLOAT8, body!(|x: f64| finite(x, |x| 1.0 / x.tan()))),
    proc(2462, "sinh", &[FLOAT8], FLOAT8, body!(|x: f64| x.sinh())),
    proc(2463, "cosh", &[FLOAT8], FLOAT8, body!(|x: f64| x.cosh())),
    proc(2464, "tanh", &[FLOAT8], FLOAT8, body!(|x: f64| x.tanh())),
    proc(2465, "asinh", &[FLOAT8], FLOAT8, body!(|x: f64| asinh(x))),
    proc(2466, "acosh", &[FLOAT8], FLOAT8, body!(|x: f64| within(x, 1.0, f64::INFINITY, acosh))),
    proc(2467, "atanh", &[FLOAT8], FLOAT8, body!(|x: f64| within(x, -1.0, 1.0, atanh))),
    proc(
        1608,
        "degrees",
        &[FLOAT8],
        FLOAT8,
        body!(|x: f64| checked(x / degrees::RADIANS_PER_DEGREE, x, x == 0.0)),
    ),
    proc(
        1609,
        "radians",
        &[FLOAT8],
        FLOAT8,
        body!(|x: f64| checked(x * degrees::RADIANS_PER_DEGREE, x, x == 0.0)),
    ),
    proc(1610, "pi", &[], FLOAT8, body!(|| std::f64::consts::PI)),
    proc(2735, "sind", &[FLOAT8], FLOAT8, body!(|x: f64| finite(x, degrees::sin))),
    proc(2736, "cosd", &[FLOAT8], FLOAT8, body!(|x: f64| finite(x, degrees::cos))),
    proc(2737, "tand", &[FLOAT8], FLOAT8, body!(|x: f64| finite(x, degrees::tan))),
    proc(2738, "cotd", &[FLOAT8], FLOAT8, body!(|x: f64| finite(x, degrees::cot))),
    proc(2731, "asind", &[FLOAT8], FLOAT8, body!(|x: f64| within(x, -1.0, 1.0, degrees::asin))),
    proc(2732, "acosd", &[FLOAT8], FLOAT8, body!(|x: f64| within(x, -1.0, 1.0, degrees::acos))),
    proc(2733, "atand", &[FLOAT8], FLOAT8, body!(|x: f64| degrees::atan(x))),
    proc(2734, "atan2d", &[FLOAT8, FLOAT8], FLOAT8, body!(|y: f64, x: f64| degrees::atan2(y, x))),
    proc(
        320,
        "width_bucket",
        &[FLOAT8, FLOAT8, FLOAT8, INT4],
        INT4,
        body!(|operand: f64, low: f64, high: f64, count: i32| width_bucket(
            operand, low, high, count
        )),
    ),
    proc(1598, "random", &[], FLOAT8, body!(env, || random(env))).volatile(),
];

#[cold]
pub(in crate::expr) fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

#[cold]
pub(in crate::expr) fn underflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// A result that may be infinite only if the argument is, and zero only where that is right.
fn checked(result: f64, x: f64, zero: bool) -> Result<f64> {
    if result.is_infinite() && !x.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 && !zero {
        return Err(underflow());
    }
    Ok(result)
}

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

fn sqrt(x: f64) -> Result<f64> {
    if x < 0.0 {
        return Err(SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "cannot take square root of a negative number",
        ));
    }
    Ok(x.sqrt())
}

fn exp(x: f64) -> Result<f64> {
    if x == f64::NEG_INFINITY {
        return Ok(0.0);
    }
    checked(x.exp(), x, false)
}

fn logarithm(x: f64, log: impl Fn(f64) -> f64) -> Result<f64> {
    let wrong = |what| Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, what));
    if x == 0.0 {
        return wrong("cannot take logarithm of zero");
    }
    if x < 0.0 {
        return wrong("cannot take logarithm of a negative number");
    }
    checked(log(x), x, x == 1.0)
}

/// `x ^ y`
pub(in crate::expr) fn power(x: f64, y: f64) -> Result<f64> {
    let wrong = |what| Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, what));
    if x.is_nan() || y.is_nan() {
        // Anything to the power of zero is one, and so is one to any power.
        return Ok(if y == 0.0 || x == 1.0 { 1.0 } else { f64::NAN });
    }
    if x == 0.0 && y < 0.0 {
        return wrong("zero raised to a negative power is undefined");
    }
    if x < 0.0 && y.floor() != y {
        return wrong("a negative number raised to a non-integer power yields a complex result");
    }
    let result = x.powf(y);
    if x.is_infinite() || y.is_infinite() {
        return Ok(result);
    }
    checked(result, x, x == 0.0)
}

#[cold]
fn input_out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// For functions that have no value at infinity.
fn finite(x: f64, f: impl Fn(f64) -> f64) -> Result<f64> {
    if x.is_infinite() { Err(input_out_of_range()) } else { Ok(f(x)) }
}

fn within(x: f64, low: f64, high: f64, f: impl Fn(f64) -> f64) -> Result<f64> {
    if x < low || x > high { Err(input_out_of_range()) } else { Ok(f(x)) }
}

// The inverse hyperbolic functions, by the logarithms that lose the fewest digits.

/// From here on `x * x + 1` is `x * x`.
const LARGE: f64 = (1u64 << 28) as f64;

fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let result = if !x.is_finite() || size < 1.0 / LARGE {
        size
    } else if size > LARGE {
        size.ln() + std::f64::consts::LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((x * x + 1.0).sqrt() + size)).ln()
    } else {
        (size + x * x / (1.0 + (1.0 + x * x).sqrt())).ln_1p()
    };
    result.copysign(x)
}

fn acosh(x: f64) -> f64 {
    if x > LARGE {
        x.ln() + std::f64::consts::LN_2
    } else if x > 2.0 {
        (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
    } else {
        let above = x - 1.0;
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    }
}

fn atanh(x: f64) -> f64 {
    let size = x.abs();
    let double = size + size;
    let result = if size < 0.5 {
        0.5 * (double + double * size / (1.0 - size)).ln_1p()
    } else {
        0.5 * (double / (1.0 - size)).ln_1p()
    };
    result.copysign(x)
}

#[cold]
pub(super) fn bucket_error(what: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, what)
}

/// The number of a value's bucket among `count` equal ones between two bounds; 0 and `count + 1`
/// outside of them.
fn width_bucket(operand: f64, low: f64, high: f64, count: i32) -> Result<i32> {
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    let above = || count.checked_add(1).ok_or_else(|| super::integer::range("integer"));
    let (from, at, to) = if low < high { (low, operand, high) } else { (-low, -operand, -high) };
    if at < from {
        return Ok(0);
    }
    if at >= to {
        return above();
    }
    // Halves, where the difference may be larger than any float.
    let width = to - from;
    let share = if width.is_infinite() {
        (at / 2.0 - from / 2.0) / (to / 2.0 - from / 2.0)
    } else {
        (at - from) / width
    };
    // Rounding may give 1 for a value just below the upper bound.
    let bucket = (f64::from(count) * share) as i32;
    Ok(bucket.min(count - 1) + 1)
}

/// A number in [0, 1): of the session's own sequence if it has set a seed.
fn random(env: &Env<'_>) -> f64 {
    if let Some(seeded) = env.facts.settings.seeded_random() {
        return seeded;
    }
    rand::random()
}
