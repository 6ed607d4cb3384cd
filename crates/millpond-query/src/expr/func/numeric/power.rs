//! Powers, roots and logarithms of decimal numbers, with PostgreSQL's rules for the number of
//! digits. There are at least 16 significant ones, and no fewer behind the point than the arguments
//! have.

use std::cmp::Ordering;

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, One, Signed, ToPrimitive, Zero};
use millpond_types::NumericRef;
use millpond_types::numeric::{Decimal, NumericError, Parts};

use super::fixed::{self, Fixed, bits_for, ten_to};
use crate::Numeric;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;

/// Significant digits of a result at least.
const MIN_SIGNIFICANT_DIGITS: i32 = 16;
/// Digits behind the point of a result at most.
const MAX_DISPLAY_SCALE: i32 = 1000;
/// A result of more digits takes long to compute.
const DIGITS_OF_SHORT_WORK: u64 = 2000;
/// The exponent of `e` at which a power is beyond every number, or zero.
const MAX_EXPONENT: f64 = 6000.0;
/// The decimal logarithm of `e`, with the digits that PostgreSQL has.
#[allow(clippy::approx_constant, reason = "scales follow from its last digit")]
const LOG_E: f64 = 0.434_294_481_903_252;

fn power_error(what: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, what)
}

fn logarithm_error(what: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, what)
}

fn overflow() -> SqlError {
    NumericError::Overflow.into()
}

/// The scale of a result whose first digit stands for `10^weight`.
fn result_scale(weight: i32, shown: u16) -> u16 {
    (MIN_SIGNIFICANT_DIGITS - weight).max(shown.into()).clamp(0, MAX_DISPLAY_SCALE) as u16
}

fn zero(dscale: u16) -> Decimal {
    Decimal { dscale, ..Decimal::default() }
}

fn one() -> Numeric {
    Numeric::from(1i64)
}

/// A number as a float; large ones become infinite.
fn to_f64(decimal: &Decimal) -> f64 {
    decimal.to_big().to_f64().unwrap_or(f64::NAN)
}

/// The square root.
pub(super) fn sqrt(x: NumericRef<'_>) -> Result<Numeric> {
    let decimal = match x.parts() {
        Parts::NegInfinity => return Err(negative_root()),
        Parts::Finite(decimal) if decimal.negative => return Err(negative_root()),
        Parts::Finite(decimal) => decimal,
        _ => return Ok(x.to_owned()),
    };
    let weight = (decimal.weight + 1) * 4 / 2 - 1;
    let dscale = result_scale(weight, decimal.dscale);
    if decimal.is_zero() {
        return Ok(Numeric::from_decimal(zero(dscale))?);
    }
    let (coefficient, scale) = decimal.to_big().into_bigint_and_exponent();
    // Four times the number in units of the result's last digit, squared: its root is twice the
    // result, to be rounded.
    let shift = 2 * i64::from(dscale) - scale;
    let power = ten_to(shift.unsigned_abs());
    let scaled = if shift >= 0 { coefficient * power } else { coefficient / power };
    let rounded: BigInt = ((scaled * 4u8).sqrt() + 1u8) / 2u8;
    let root = BigDecimal::new(rounded, dscale.into());
    Ok(Numeric::from_decimal(Decimal::from_big(&root, dscale))?)
}

fn negative_root() -> SqlError {
    power_error("cannot take square root of a negative number")
}

/// `e ^ x`
pub(super) fn exp(x: NumericRef<'_>) -> Result<Numeric> {
    let decimal = match x.parts() {
        Parts::NegInfinity => return Ok(Numeric::from(0i64)),
        Parts::Finite(decimal) => decimal,
        _ => return Ok(x.to_owned()),
    };
    let value = to_f64(&decimal);
    let weight = (value * LOG_E).clamp(-2000.0, 2000.0) as i32;
    let dscale = result_scale(weight, decimal.dscale);
    if value.abs() >= MAX_EXPONENT {
        if value > 0.0 {
            return Err(overflow());
        }
        return Ok(Numeric::from_decimal(zero(dscale))?);
    }
    let whole_digits = ((value * LOG_E) as i32).max(0);
    let x = Fixed::of(&decimal, bits_for(i32::from(dscale) + whole_digits + 4));
    Ok(Numeric::from_decimal(fixed::exp(&x).round(dscale))?)
}

/// The power of ten of the first digit of a number's natural logarithm, about.
fn ln_weight(x: &Decimal) -> i32 {
    if x.negative || x.is_zero() {
        return 0;
    }
    let big = x.to_big();
    let near_one = BigDecimal::new(9.into(), 1) <= big && big <= BigDecimal::new(11.into(), 1);
    if near_one {
        // The logarithm of 1 + d is about d.
        let from_one = Decimal::from_big(&(big - BigDecimal::one()), x.dscale);
        return match from_one.digits.first() {
            Some(first) => from_one.weight * 4 + f64::from(*first).log10() as i32,
            None => 0,
        };
    }
    let first = x.digits.first().copied().unwrap_or(0);
    let (mut digits, mut weight) = (f64::from(first), x.weight * 4);
    if let Some(second) = x.digits.get(1) {
        digits = digits * 10_000.0 + f64::from(*second);
        weight -= 4;
    }
    let ln = digits.ln() + f64::from(weight) * std::f64::consts::LN_10;
    ln.abs().log10() as i32
}

/// The argument of a logarithm; `Err` holds a result that needs none.
fn logarithm_argument(x: NumericRef<'_>) -> Result<Result<Decimal, Numeric>> {
    match x.parts() {
        Parts::NaN => Ok(Err(Numeric::nan())),
        Parts::Infinity => Ok(Err(Numeric::infinity())),
        Parts::Finite(decimal) if decimal.is_zero() => {
            Err(logarithm_error("cannot take logarithm of zero"))
        }
        Parts::Finite(decimal) if !decimal.negative => Ok(Ok(decimal)),
        _ => Err(logarithm_error("cannot take logarithm of a negative number")),
    }
}

/// The natural logarithm.
pub(super) fn ln(x: NumericRef<'_>) -> Result<Numeric> {
    let decimal = match logarithm_argument(x)? {
        Ok(decimal) => decimal,
        Err(result) => return Ok(result),
    };
    let dscale = result_scale(ln_weight(&decimal), decimal.dscale);
    let ln = fixed::ln(&decimal, bits_for(i32::from(dscale) + 4));
    Ok(Numeric::from_decimal(ln.round(dscale))?)
}

/// The logarithm to a base.
pub(super) fn log(base: NumericRef<'_>, x: NumericRef<'_>) -> Result<Numeric> {
    if base.is_nan() || x.is_nan() {
        return Ok(Numeric::nan());
    }
    let infinite = [base, x].iter().any(|n| !matches!(n.parts(), Parts::Finite(_)));
    if infinite && (base.signum() < 0 || x.signum() < 0) {
        return Err(logarithm_error("cannot take logarithm of a negative number"));
    }
    let (base, x) = match (logarithm_argument(base)?, logarithm_argument(x)?) {
        (Ok(base), Ok(x)) => (base, x),
        // Of two infinite ones there is no ratio.
        (Err(_), Err(_)) => return Ok(Numeric::nan()),
        (Err(_), Ok(_)) => return Ok(Numeric::from(0i64)),
        (Ok(_), Err(infinite)) => return Ok(infinite),
    };
    let (base_weight, x_weight) = (ln_weight(&base), ln_weight(&x));
    let dscale = result_scale(x_weight - base_weight, base.dscale.max(x.dscale));
    let digits = i32::from(dscale) + 2 * (base_weight.abs() + x_weight.abs()) + 8;
    let bits = bits_for(digits);
    let ln_base = fixed::ln(&base, bits);
    if base.to_big() == BigDecimal::one() {
        return Err(NumericError::DivisionByZero.into());
    }
    let ratio = fixed::ln(&x, bits).over(&ln_base);
    Ok(Numeric::from_decimal(ratio.round(dscale))?)
}

/// Whether a number is whole, and if so, whether it is odd.
fn wholeness(x: &Decimal) -> (bool, bool) {
    let whole = x.digits.len() as i64 <= i64::from(x.weight) + 1;
    // The digit of weight 0 has the last four decimal digits.
    let last = usize::try_from(x.weight).ok().and_then(|place| x.digits.get(place));
    (whole, whole && last.is_some_and(|digit| digit % 2 == 1))
}

/// `x ^ y`
pub(super) fn power(x: NumericRef<'_>, y: NumericRef<'_>, env: &Env<'_>) -> Result<Numeric> {
    let is_one = |n: NumericRef<'_>| n == one().as_ref();
    if x.is_nan() || y.is_nan() {
        // Anything to the power of zero is one, and so is one to any power.
        let one_anyway = if x.is_nan() { !y.is_nan() && y.signum() == 0 } else { is_one(x) };
        return Ok(if one_anyway { one() } else { Numeric::nan() });
    }
    let (sign_x, sign_y) = (x.signum(), y.signum());
    let (whole, odd) = match y.parts() {
        Parts::Finite(y) => wholeness(&y),
        _ => (true, false),
    };
    if sign_x == 0 && sign_y < 0 {
        return Err(power_error("zero raised to a negative power is undefined"));
    }
    if sign_x < 0 && !whole {
        return Err(power_error(
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    match (x.parts(), y.parts()) {
        (Parts::Finite(x), Parts::Finite(y)) => power_finite(x, &y, odd, env),
        _ => Ok(power_infinite(x, y, odd)),
    }
}

/// The power where one side is infinite.
fn power_infinite(x: NumericRef<'_>, y: NumericRef<'_>, odd: bool) -> Numeric {
    let zero = || Numeric::from(0i64);
    let (sign_x, sign_y) = (x.signum(), y.signum());
    if x == one().as_ref() || sign_y == 0 {
        return one();
    }
    if sign_x == 0 {
        return zero();
    }
    if matches!(y.parts(), Parts::Infinity | Parts::NegInfinity) {
        return match x.abs().cmp(&one()) {
            Ordering::Equal => one(),
            order if order.is_gt() == (sign_y > 0) => Numeric::infinity(),
            _ => zero(),
        };
    }
    match (sign_y < 0, sign_x < 0 && odd) {
        (true, _) => zero(),
        (false, true) => Numeric::neg_infinity(),
        (false, false) => Numeric::infinity(),
    }
}

fn power_finite(x: Decimal, y: &Decimal, odd: bool, env: &Env<'_>) -> Result<Numeric> {
    let exponent = if wholeness(y).0 && y.weight < 4 { y.to_big().to_i32() } else { None };
    if let Some(exponent) = exponent {
        // The zeros behind the point of a whole exponent don't count.
        let dscale = MIN_SIGNIFICANT_DIGITS.max(x.dscale.into()).min(MAX_DISPLAY_SCALE) as u16;
        return power_whole(&x, exponent, dscale, env);
    }
    if x.is_zero() {
        return Ok(Numeric::from_decimal(zero(MIN_SIGNIFICANT_DIGITS as u16))?);
    }
    let mut positive = x;
    let negative = std::mem::take(&mut positive.negative) && odd;
    // Roughly first, to know how many digits it takes. The result's scale depends on how roughly.
    let rough_scale = (8 - ln_weight(&positive)).clamp(0, MAX_DISPLAY_SCALE) as u16;
    let rough_ln = fixed::ln(&positive, bits_for(i32::from(rough_scale) + 8)).round(rough_scale);
    let rough = Decimal::from_big(&(rough_ln.to_big() * y.to_big()), rough_scale);
    let exponent = to_f64(&rough);
    if exponent.abs() > MAX_EXPONENT * 3.01 / 3.0 {
        if exponent > 0.0 {
            return Err(overflow());
        }
        return Ok(Numeric::from_decimal(zero(MAX_DISPLAY_SCALE as u16))?);
    }
    let weight = (exponent * LOG_E) as i32;
    let dscale = result_scale(weight, positive.dscale.max(y.dscale));
    let y_digits = (y.weight + 1).max(0) * 4;
    let digits = i32::from(dscale) + weight.max(0) + y_digits + 8;
    if digits as u64 > DIGITS_OF_SHORT_WORK {
        env.check_long_work()?;
    }
    let bits = bits_for(digits);
    let mut result = fixed::exp(&fixed::ln(&positive, bits).times(y));
    if negative {
        result = result.negated();
    }
    Ok(Numeric::from_decimal(result.round(dscale))?)
}

/// A whole power, by repeated multiplication, to `dscale` digits behind the point.
fn power_whole(x: &Decimal, exponent: i32, dscale: u16, env: &Env<'_>) -> Result<Numeric> {
    let rounded = |value: &BigDecimal| Ok(Numeric::from_decimal(Decimal::from_big(value, dscale))?);
    let base = x.to_big();
    match exponent {
        0 => return rounded(&BigDecimal::one()),
        1 => return rounded(&base),
        2 => return rounded(&(&base * &base)),
        _ if base.is_zero() => return rounded(&BigDecimal::zero()),
        _ => {}
    }
    // The power of ten of the result's first digit.
    let first = x.digits.iter().take(4).fold(0.0, |sum, digit| sum * 10_000.0 + f64::from(*digit));
    let first_weight = 4 * (x.weight + 1 - x.digits.len().min(4) as i32);
    let weight = f64::from(exponent) * (first.log10() + f64::from(first_weight));
    if weight > 3.0 * 32_767.0 * 4.0 {
        return Err(overflow());
    }
    if weight + 1.0 < -f64::from(dscale) || weight + 1.0 < -f64::from(MAX_DISPLAY_SCALE) {
        return rounded(&BigDecimal::zero());
    }
    let digits = 1.0 + f64::from(dscale) + weight + f64::from(exponent).abs().ln() + 16.0;
    let digits = digits.max(1.0) as u64;
    let mut times = exponent.unsigned_abs();
    let (mut result, mut square) = (BigDecimal::one(), base);
    loop {
        if digits > DIGITS_OF_SHORT_WORK {
            env.check_long_work()?;
        }
        if times & 1 == 1 {
            result = shortened(&result * &square, digits);
        }
        times >>= 1;
        if times == 0 {
            break;
        }
        square = shortened(&square * &square, digits);
        // The result may be as small as 1, but not its intermediate values in between.
        if exceeds(&square) && exponent > 0 {
            return Err(overflow());
        }
    }
    if exponent < 0 {
        return rounded(&inverse(&result, dscale));
    }
    rounded(&result)
}

/// Whether a number is so large that all its powers are no numerics.
fn exceeds(value: &BigDecimal) -> bool {
    let (coefficient, scale) = value.as_bigint_and_exponent();
    coefficient.bits() as f64 / 3.33 - scale as f64 > 140_000.0
}

/// A number cut to about the given count of significant digits.
fn shortened(value: BigDecimal, digits: u64) -> BigDecimal {
    let (coefficient, scale) = value.as_bigint_and_exponent();
    // Three and a bit bits a digit: too many digits do no harm.
    let have = (coefficient.bits() as f64 / 3.33) as u64;
    if have <= digits + 8 {
        return value;
    }
    let cut = have - digits;
    BigDecimal::new(coefficient / ten_to(cut), scale - cut as i64)
}

/// `1 / x`, to two digits more than `dscale`.
fn inverse(x: &BigDecimal, dscale: u16) -> BigDecimal {
    let (coefficient, scale) = x.as_bigint_and_exponent();
    let digits = i64::from(dscale) + 2;
    let shift = digits + scale;
    if shift < 0 || coefficient.is_zero() {
        return BigDecimal::zero();
    }
    let quotient = ten_to(shift.unsigned_abs()) / &coefficient;
    debug_assert!(quotient.is_negative() == coefficient.is_negative() || quotient.is_zero());
    BigDecimal::new(quotient, digits)
}
