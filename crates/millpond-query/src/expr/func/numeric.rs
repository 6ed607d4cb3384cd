//! Functions of exact decimal numbers.

mod fixed;
mod power;

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, Signed, Zero};
use millpond_types::NumericRef;
use millpond_types::numeric::{Decimal, MAX_SCALE, NumericError, Parts};

use super::catalog::{INT4, NUMERIC, Proc, proc};
use super::float::bucket_error;
use super::value::body;
use crate::Numeric;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;

pub(super) static PROCS: &[Proc] = &[
    proc(1705, "abs", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| x.abs())),
    proc(1704, "numeric_abs", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| x.abs())),
    proc(1711, "ceil", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| ceil(x))),
    proc(2167, "ceiling", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| ceil(x))),
    proc(1712, "floor", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| floor(x))),
    proc(1708, "round", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| x.round(0)))
        .of_small(|x, _| x.round(0)),
    proc(
        1707,
        "round",
        &[NUMERIC, INT4],
        NUMERIC,
        body!(|x: NumericRef<'_>, n: i32| x.round(scale(n))),
    )
    .of_small(|x, n| x.round(scale(n))),
    proc(1710, "trunc", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| trunc(x, 0)))
        .of_small(|x, _| x.truncate(0)),
    proc(1709, "trunc", &[NUMERIC, INT4], NUMERIC, body!(|x: NumericRef<'_>, n: i32| trunc(x, n)))
        .of_small(|x, n| x.truncate(scale(n))),
    proc(1706, "sign", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| sign(x))),
    proc(
        1728,
        "mod",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(|a: NumericRef<'_>, b: NumericRef<'_>| a.rem(b)),
    ),
    proc(1730, "sqrt", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| power::sqrt(x))),
    proc(1731, "numeric_sqrt", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| power::sqrt(x))),
    proc(1732, "exp", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| power::exp(x))),
    proc(1733, "numeric_exp", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| power::exp(x))),
    proc(1734, "ln", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| power::ln(x))),
    proc(1735, "numeric_ln", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| power::ln(x))),
    proc(
        1736,
        "log",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(|b: NumericRef<'_>, x: NumericRef<'_>| power::log(b, x)),
    ),
    proc(
        1737,
        "numeric_log",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(|b: NumericRef<'_>, x: NumericRef<'_>| power::log(b, x)),
    ),
    proc(1741, "log", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| log10(x))),
    proc(1481, "log10", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| log10(x))),
    proc(
        1738,
        "pow",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(env, |x: NumericRef<'_>, y: NumericRef<'_>| power::power(x, y, env)),
    ),
    proc(
        2169,
        "power",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(env, |x: NumericRef<'_>, y: NumericRef<'_>| power::power(x, y, env)),
    ),
    proc(
        1739,
        "numeric_power",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(env, |x: NumericRef<'_>, y: NumericRef<'_>| power::power(x, y, env)),
    ),
    proc(
        1973,
        "div",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(|a: NumericRef<'_>, b: NumericRef<'_>| div_trunc(a, b)),
    ),
    proc(
        1980,
        "numeric_div_trunc",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(|a: NumericRef<'_>, b: NumericRef<'_>| div_trunc(a, b)),
    ),
    proc(
        5048,
        "gcd",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(|a: NumericRef<'_>, b: NumericRef<'_>| gcd(a, b)),
    ),
    proc(
        5049,
        "lcm",
        &[NUMERIC, NUMERIC],
        NUMERIC,
        body!(|a: NumericRef<'_>, b: NumericRef<'_>| lcm(a, b)),
    ),
    proc(
        3281,
        "scale",
        &[NUMERIC],
        INT4,
        body!(|x: NumericRef<'_>| finite(x).map(|d| i32::from(d.dscale))),
    ),
    proc(
        5042,
        "min_scale",
        &[NUMERIC],
        INT4,
        body!(|x: NumericRef<'_>| finite(x).map(|d| min_scale(&d))),
    ),
    proc(5043, "trim_scale", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| trim_scale(x))),
    proc(
        2170,
        "width_bucket",
        &[NUMERIC, NUMERIC, NUMERIC, INT4],
        INT4,
        body!(|operand: NumericRef<'_>, low: NumericRef<'_>, high: NumericRef<'_>, count: i32| {
            width_bucket(operand, low, high, count)
        }),
    ),
    proc(1915, "numeric_uplus", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| x.to_owned())),
    proc(1771, "numeric_uminus", &[NUMERIC], NUMERIC, body!(|x: NumericRef<'_>| x.neg())),
];

fn finite(x: NumericRef<'_>) -> Option<Decimal> {
    match x.parts() {
        Parts::Finite(decimal) => Some(decimal),
        _ => None,
    }
}

fn log10(x: NumericRef<'_>) -> Result<Numeric> {
    power::log(Numeric::from(10i64).as_ref(), x)
}

/// The quotient without its fraction.
fn div_trunc(a: NumericRef<'_>, b: NumericRef<'_>) -> Result<Numeric> {
    let (Some(x), Some(y)) = (finite(a), finite(b)) else { return Ok(a.div(b)?) };
    if y.is_zero() {
        return Err(NumericError::DivisionByZero.into());
    }
    let (x, x_scale) = x.to_big().into_bigint_and_exponent();
    let (y, y_scale) = y.to_big().into_bigint_and_exponent();
    let shift = fixed::ten_to((y_scale - x_scale).unsigned_abs());
    let quotient = if y_scale >= x_scale { x * shift / y } else { x / (y * shift) };
    Ok(Numeric::from_decimal(Decimal::from_big(&BigDecimal::new(quotient, 0), 0))?)
}

/// Two numbers as whole numbers of the last digit that either has.
fn commensurate(a: &Decimal, b: &Decimal) -> (BigInt, BigInt, i64) {
    let (a, b) = (a.to_big(), b.to_big());
    let scale = a.fractional_digit_count().max(b.fractional_digit_count());
    let whole = |x: BigDecimal| x.with_scale(scale).into_bigint_and_exponent().0.abs();
    (whole(a), whole(b), scale)
}

fn gcd_whole(mut a: BigInt, mut b: BigInt) -> BigInt {
    while !b.is_zero() {
        let rest = a % &b;
        (a, b) = (b, rest);
    }
    a
}

fn gcd(a: NumericRef<'_>, b: NumericRef<'_>) -> Result<Numeric> {
    let (Some(a), Some(b)) = (finite(a), finite(b)) else { return Ok(Numeric::nan()) };
    let (x, y, scale) = commensurate(&a, &b);
    let gcd = BigDecimal::new(gcd_whole(x, y), scale);
    Ok(Numeric::from_decimal(Decimal::from_big(&gcd, a.dscale.max(b.dscale)))?)
}

fn lcm(a: NumericRef<'_>, b: NumericRef<'_>) -> Result<Numeric> {
    let (Some(a), Some(b)) = (finite(a), finite(b)) else { return Ok(Numeric::nan()) };
    let (x, y, scale) = commensurate(&a, &b);
    let gcd = gcd_whole(x.clone(), y.clone());
    let lcm = if gcd.is_zero() { gcd } else { x / gcd * y };
    let lcm = BigDecimal::new(lcm, scale);
    Ok(Numeric::from_decimal(Decimal::from_big(&lcm, a.dscale.max(b.dscale)))?)
}

/// The digits behind the point without zeros at their end.
fn min_scale(decimal: &Decimal) -> i32 {
    let Some(last) = decimal.digits.last() else { return 0 };
    let groups = decimal.digits.len() as i32 - 1 - decimal.weight;
    let zeros = (1..4).take_while(|&n| last % 10u16.pow(n) == 0).count() as i32;
    (groups * 4 - zeros).max(0)
}

fn trim_scale(x: NumericRef<'_>) -> Result<Numeric> {
    let Some(decimal) = finite(x) else { return Ok(x.to_owned()) };
    let dscale = min_scale(&decimal) as u16;
    Ok(Numeric::from_decimal(Decimal { dscale, ..decimal })?)
}

fn width_bucket(
    operand: NumericRef<'_>,
    low: NumericRef<'_>,
    high: NumericRef<'_>,
    count: i32,
) -> Result<i32> {
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN"));
    }
    if finite(low).is_none() || finite(high).is_none() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    let (before, behind) = if low < high {
        (operand < low, operand >= high)
    } else {
        (operand > low, operand <= high)
    };
    if before {
        return Ok(0);
    }
    if behind {
        return count.checked_add(1).ok_or_else(|| super::integer::range("integer"));
    }
    let count_numeric = Numeric::from(i64::from(count));
    let part = operand.sub(low)?.as_ref().mul(count_numeric.as_ref())?;
    let share = part.as_ref().div(high.sub(low)?.as_ref())?;
    // Rounding may give all of the range for a value just below its end.
    let bucket = floor(share.as_ref())?.as_ref().to_i64("integer")?;
    Ok(i32::try_from(bucket).map_or(count - 1, |bucket| bucket.min(count - 1)) + 1)
}

fn scale(n: i32) -> i16 {
    n.clamp(-32_000, MAX_SCALE.into()) as i16
}

fn sign(x: NumericRef<'_>) -> Numeric {
    if x.is_nan() { Numeric::nan() } else { Numeric::from(i64::from(x.signum())) }
}

pub(super) fn ceil(x: NumericRef<'_>) -> Result<Numeric> {
    let whole = trunc(x, 0)?;
    let up = whole.as_ref() < x;
    Ok(if up { whole.as_ref().add(Numeric::from(1i64).as_ref())? } else { whole })
}

pub(super) fn floor(x: NumericRef<'_>) -> Result<Numeric> {
    let whole = trunc(x, 0)?;
    let down = whole.as_ref() > x;
    Ok(if down { whole.as_ref().sub(Numeric::from(1i64).as_ref())? } else { whole })
}

/// Cuts after this many digits behind the point (before it, if negative).
fn trunc(x: NumericRef<'_>, places: i32) -> Result<Numeric> {
    Ok(x.truncate(scale(places))?)
}

/// `n!`
pub(super) fn factorial(n: i64, env: &Env<'_>) -> Result<Numeric> {
    if n < 0 {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "factorial of a negative number is undefined",
        ));
    }
    // The factorial of a larger number does not fit.
    const LARGEST: i64 = 32_177;
    // Some 2500 digits.
    const LARGEST_OF_SHORT_WORK: i64 = 1000;
    if n > LARGEST {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value overflows numeric format",
        ));
    }
    if n > LARGEST_OF_SHORT_WORK {
        env.check_long_work()?;
    }
    let product = BigDecimal::new(product(1, n.max(1), env)?, 0);
    Ok(Numeric::from_decimal(Decimal::from_big(&product, 0))?)
}

/// The product of all numbers from one to another. Halves are multiplied, so that few products are
/// of long numbers.
fn product(low: i64, high: i64, env: &Env<'_>) -> Result<BigInt> {
    if high - low < 16 {
        env.check_stop()?;
        return Ok((low..=high).fold(BigInt::from(1), |product, factor| product * factor));
    }
    let middle = low + (high - low) / 2;
    Ok(product(low, middle, env)? * product(middle + 1, high, env)?)
}
