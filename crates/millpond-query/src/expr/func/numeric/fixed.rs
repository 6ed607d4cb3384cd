//! Exponentials and logarithms to any number of digits, in binary fixed-point arithmetic.
//!
//! A [`Fixed`] number is a whole number of units of `2^-bits`. Each operation is wrong by a few
//! units, so callers ask for some 64 bits more than they need.

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, One, Signed, ToPrimitive, Zero};
use millpond_types::numeric::Decimal;

/// Bits that a decimal digit takes, rounded up a little.
const BITS_PER_DIGIT: f64 = 3.3220;

/// Bits for that many decimal digits, and 64 to lose.
pub(super) fn bits_for(digits: i32) -> u64 {
    (f64::from(digits.max(0)) * BITS_PER_DIGIT) as u64 + 64
}

/// `units / 2^bits`
#[derive(Clone)]
pub(super) struct Fixed {
    units: BigInt,
    bits: u64,
}

impl Fixed {
    /// A decimal number.
    pub(super) fn of(decimal: &Decimal, bits: u64) -> Self {
        Fixed { units: BigInt::one() << bits, bits }.times(decimal)
    }

    /// The product with a decimal number.
    pub(super) fn times(&self, decimal: &Decimal) -> Self {
        let (coefficient, scale) = decimal.to_big().into_bigint_and_exponent();
        let product = &self.units * coefficient;
        let power = ten_to(scale.unsigned_abs());
        let units = if scale >= 0 { product / power } else { product * power };
        Fixed { units, bits: self.bits }
    }

    /// The quotient.
    pub(super) fn over(&self, other: &Fixed) -> Self {
        if other.units.is_zero() {
            return self.clone();
        }
        let units = (&self.units << other.bits) / &other.units;
        Fixed { units, bits: self.bits }
    }

    /// The number with its sign changed.
    pub(super) fn negated(self) -> Self {
        Fixed { units: -self.units, bits: self.bits }
    }

    /// Rounded, half away from zero, to `dscale` decimal digits behind the point.
    pub(super) fn round(&self, dscale: u16) -> Decimal {
        let scaled = self.units.abs() * ten_to(dscale.into());
        let half = (BigInt::one() << self.bits) >> 1u8;
        let mut rounded: BigInt = (scaled + half) >> self.bits;
        if self.units.is_negative() {
            rounded = -rounded;
        }
        Decimal::from_big(&BigDecimal::new(rounded, dscale.into()), dscale)
    }
}

/// A power of ten.
pub(super) fn ten_to(power: u64) -> BigInt {
    // No number here has more digits than a numeric.
    BigInt::from(10u8).pow(power.min(1 << 20) as u32)
}

/// The inverse hyperbolic tangent of `1 / x`, times `2^bits`.
fn atanh_of_inverse(x: u32, bits: u64) -> BigInt {
    let square = BigInt::from(x) * x;
    let mut power = (BigInt::one() << bits) / x;
    let mut sum = BigInt::zero();
    let mut n = 1u32;
    while !power.is_zero() {
        sum += &power / n;
        power /= &square;
        n += 2;
    }
    sum
}

/// The natural logarithm of 2, times `2^bits`.
fn ln_2(bits: u64) -> BigInt {
    let bits_more = bits + 16;
    let sum = atanh_of_inverse(26, bits_more) * 18 - atanh_of_inverse(4801, bits_more) * 2
        + atanh_of_inverse(8749, bits_more) * 8;
    sum >> 16u8
}

/// `e` to the power of a number of at most some thousands. The result is right to about as many
/// significant bits as `x` has behind the point.
pub(super) fn exp(x: &Fixed) -> Fixed {
    let bits = x.bits;
    let ln_2 = ln_2(bits);
    // The power is 2^k times e^rest, with 0 <= rest < ln 2.
    let k = div_floor(&x.units, &ln_2);
    let rest = &x.units - &k * ln_2;
    // The series is short if the argument is halved first, and the result squared as often.
    let halvings = (bits as f64).sqrt() as u64 / 2 + 1;
    let work = bits + 2 * halvings;
    let rest = rest << halvings;
    let mut sum = BigInt::one() << work;
    let mut term = sum.clone();
    let mut n = 1u32;
    loop {
        term = ((term * &rest) >> work) / n;
        if term.is_zero() {
            break;
        }
        sum += &term;
        n += 1;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) >> work;
    }
    let units = sum >> (2 * halvings);
    match k.to_i64() {
        Some(k) if k >= 0 => Fixed { units: units << k.unsigned_abs(), bits },
        Some(k) => Fixed { units: units >> k.unsigned_abs(), bits },
        None => Fixed { units: BigInt::zero(), bits },
    }
}

/// The largest whole number whose product with `b` is at most `a`; `b` is positive.
fn div_floor(a: &BigInt, b: &BigInt) -> BigInt {
    let quotient = a / b;
    if a.sign() == Sign::Minus && &quotient * b != *a { quotient - 1 } else { quotient }
}

/// The natural logarithm of a positive number.
pub(super) fn ln(decimal: &Decimal, bits: u64) -> Fixed {
    // Some bits more: those that the exponent's share takes.
    let work = bits + 24;
    let (coefficient, scale) = decimal.to_big().into_bigint_and_exponent();
    let power = ten_to(scale.unsigned_abs());
    let (numerator, denominator) =
        if scale >= 0 { (coefficient, power) } else { (coefficient * power, BigInt::one()) };
    // The number is 2^k times a mantissa of about 1.
    let mut k = numerator.bits() as i64 - denominator.bits() as i64;
    let shift = work as i64 - k;
    let mut mantissa = if shift >= 0 {
        (numerator << shift.unsigned_abs()) / denominator
    } else {
        numerator / (denominator << shift.unsigned_abs())
    };
    let one = BigInt::one() << work;
    // From 0.5 to 2 so far. Near 1 the series is short.
    while mantissa > (&one * 4) / 3 {
        mantissa >>= 1u8;
        k += 1;
    }
    while mantissa < (&one * 2) / 3 {
        mantissa <<= 1u8;
        k -= 1;
    }
    let z = ((&mantissa - &one) << work) / (&mantissa + &one);
    let square = (&z * &z) >> work;
    let (mut sum, mut power, mut n) = (BigInt::zero(), z, 1u32);
    while !power.is_zero() && power != BigInt::from(-1) {
        sum += &power / n;
        power = (power * &square) >> work;
        n += 2;
    }
    let units = (sum * 2 + ln_2(work) * k) >> 24u8;
    Fixed { units, bits }
}
