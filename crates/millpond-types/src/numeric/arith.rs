//! Arithmetic and conversions, with PostgreSQL's rules for the display scale of results.

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, RoundingMode, Signed, ToPrimitive, Zero};
use smallvec::SmallVec;

use super::text::from_decimal_digits;
use super::{
    Decimal, LONG_SIGN, MAX_SCALE, Numeric, NumericError, NumericRef, Parts, SHORT, SHORT_SIGN,
    SPECIAL, Small,
};

/// A quotient has at least this many significant digits.
const MIN_SIGNIFICANT_DIGITS: i32 = 16;
/// A quotient's scale is at most this.
const MAX_DISPLAY_SCALE: i32 = 1000;

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Self::from(i128::from(value))
    }
}

impl From<i128> for Numeric {
    fn from(value: i128) -> Self {
        // Ten digits at most: always representable.
        let small = Small { coefficient: value, exponent: 0, dscale: 0 };
        small.to_numeric().unwrap_or_else(|_| Self::nan())
    }
}

impl Decimal {
    /// The value for the `bigdecimal` crate (without the display scale).
    pub fn to_big(&self) -> BigDecimal {
        let pairs = Vec::from_iter(
            self.digits.iter().flat_map(|digit| [(digit / 100) as u8, (digit % 100) as u8]),
        );
        let sign = match (self.is_zero(), self.negative) {
            (true, _) => Sign::NoSign,
            (false, true) => Sign::Minus,
            (false, false) => Sign::Plus,
        };
        let coefficient = BigInt::from_radix_be(sign, &pairs, 100).unwrap_or_default();
        let scale = 4 * (self.digits.len() as i64 - 1 - i64::from(self.weight));
        BigDecimal::new(coefficient, scale)
    }

    /// Rounds (half away from zero) to `dscale` digits after the point, and displays that many.
    pub fn from_big(value: &BigDecimal, dscale: u16) -> Self {
        Self::from_big_rounded(value, i64::from(dscale), dscale)
    }

    fn from_big_rounded(value: &BigDecimal, scale: i64, dscale: u16) -> Self {
        let rounded = value.with_scale_round(scale, RoundingMode::HalfUp);
        let (coefficient, scale) = rounded.into_bigint_and_exponent();
        let (sign, digits) = coefficient.to_radix_be(10);
        let point = digits.len() as i64 - scale;
        from_decimal_digits(&digits, point, sign == Sign::Minus, dscale)
    }

    /// Rounds to `scale` digits after the point (before it, if negative).
    pub fn round(&self, scale: i16) -> Self {
        let dscale = scale.max(0) as u16;
        // The decimal place of the last nonzero digit is at or above this power of ten.
        let lowest = 4 * (i64::from(self.weight) + 1 - self.digits.len() as i64);
        if -i64::from(scale) <= lowest {
            return Self { dscale, ..self.clone() };
        }
        Self::from_big_rounded(&self.to_big(), i64::from(scale), dscale)
    }

    /// Cuts behind `places` digits after the point (before it, if negative).
    pub fn truncated(mut self, places: i16) -> Self {
        self.dscale = places.max(0) as u16;
        // Digits behind the point are those of weight -1 and below, four to each.
        let whole_groups = places.div_euclid(4);
        let rest = places.rem_euclid(4) as u32;
        let keep = i64::from(self.weight) + 1 + i64::from(whole_groups);
        let full = usize::try_from(keep).unwrap_or(0);
        if keep < 0 || self.digits.len() <= full {
            if keep < 0 {
                self.digits.clear();
            }
            return self;
        }
        let cut = 10u16.pow(4 - rest);
        self.digits[full] -= self.digits[full] % cut;
        self.digits.truncate(full + 1);
        self
    }

    /// Decimal digits before the point (zero or negative for small numbers).
    fn whole_digits(&self) -> i64 {
        let first = self.digits.first().copied().unwrap_or(0);
        i64::from(self.weight) * 4 + i64::from(first.checked_ilog10().map_or(0, |log| log + 1))
    }

    fn fits(&self, precision: u16, scale: i16) -> bool {
        self.is_zero() || self.whole_digits() <= i64::from(precision) - i64::from(scale)
    }
}

// Named like operators, but not the operator traits, because these operations can fail.
#[allow(clippy::should_implement_trait)]
impl NumericRef<'_> {
    /// Converts to a column's precision and scale: rounds, and fails if the value is too large.
    pub fn with_precision(self, precision: u16, scale: i16) -> Result<Numeric, NumericError> {
        let overflow = NumericError::FieldOverflow { precision, scale };
        if let Some(rounded) = self.small().and_then(|small| small.round(scale)) {
            let fits = rounded.has_whole_digits(i32::from(precision) - i32::from(scale));
            return if fits { rounded.to_numeric() } else { Err(overflow) };
        }
        match self.parts() {
            Parts::NaN => Ok(Numeric::nan()),
            Parts::Infinity | Parts::NegInfinity => Err(overflow),
            Parts::Finite(decimal) => {
                let rounded = decimal.round(scale);
                if rounded.fits(precision, scale) {
                    Numeric::from_decimal(rounded)
                } else {
                    Err(overflow)
                }
            }
        }
    }

    /// Rounds to `scale` digits after the point, half away from zero.
    pub fn round(self, scale: i16) -> Result<Numeric, NumericError> {
        match self.small().and_then(|small| small.round(scale)) {
            Some(rounded) => rounded.to_numeric(),
            None => self.round_any(scale),
        }
    }

    /// Cuts behind `places` digits after the point (before it, if negative).
    pub fn truncate(self, places: i16) -> Result<Numeric, NumericError> {
        if let Some(cut) = self.small().and_then(|small| small.truncate(places)) {
            return cut.to_numeric();
        }
        match self.parts() {
            Parts::Finite(decimal) => Numeric::from_decimal(decimal.truncated(places)),
            _ => Ok(self.to_owned()),
        }
    }

    pub(super) fn round_any(self, scale: i16) -> Result<Numeric, NumericError> {
        match self.parts() {
            Parts::Finite(decimal) => Numeric::from_decimal(decimal.round(scale)),
            _ => Ok(self.to_owned()),
        }
    }

    /// The sum.
    pub fn add(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        if let (Some(a), Some(b)) = (self.small(), other.small())
            && let Some(sum) = a.checked_add(b)
        {
            return sum.to_numeric();
        }
        self.add_any(other)
    }

    pub(super) fn add_any(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        match (self.parts(), other.parts()) {
            (Parts::Finite(a), Parts::Finite(b)) => {
                let sum = a.to_big() + b.to_big();
                Numeric::from_decimal(Decimal::from_big(&sum, a.dscale.max(b.dscale)))
            }
            (Parts::NaN, _) | (_, Parts::NaN) => Ok(Numeric::nan()),
            (Parts::Finite(_), special) | (special, Parts::Finite(_)) => {
                Numeric::from_parts(special)
            }
            (a, b) if a == b => Numeric::from_parts(a),
            _ => Ok(Numeric::nan()),
        }
    }

    /// The number with the other sign.
    pub fn neg(self) -> Numeric {
        let mut number = self.to_owned();
        match self.header() {
            // NaN and zero have no sign.
            Some(header) if self.signum() != 0 && !self.is_nan() => {
                let header = match header & SPECIAL {
                    SPECIAL => return infinity_with_sign(-self.signum()),
                    SHORT => header ^ SHORT_SIGN,
                    _ => header ^ LONG_SIGN,
                };
                number.set_header(header);
                number
            }
            _ => number,
        }
    }

    /// The number without its sign.
    pub fn abs(self) -> Numeric {
        if self.signum() < 0 { self.neg() } else { self.to_owned() }
    }

    /// -1, 0 or 1; 1 for NaN.
    pub fn signum(self) -> i32 {
        match self.magnitude() {
            Some(magnitude) => magnitude.sign(),
            None if self.parts() == Parts::NegInfinity => -1,
            None => 1,
        }
    }

    /// The difference.
    pub fn sub(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        if let (Some(a), Some(b)) = (self.small(), other.small())
            && let Some(difference) = a.checked_sub(b)
        {
            return difference.to_numeric();
        }
        self.add_any(other.neg().as_ref())
    }

    /// The product.
    pub fn mul(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        if let (Some(a), Some(b)) = (self.small(), other.small())
            && let Some(product) = a.checked_mul(b)
        {
            return product.to_numeric();
        }
        self.mul_any(other)
    }

    pub(super) fn mul_any(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        match (self.parts(), other.parts()) {
            (Parts::Finite(a), Parts::Finite(b)) => {
                let product = a.to_big() * b.to_big();
                let dscale = (a.dscale + b.dscale).min(MAX_SCALE);
                Numeric::from_decimal(Decimal::from_big(&product, dscale))
            }
            (Parts::NaN, _) | (_, Parts::NaN) => Ok(Numeric::nan()),
            _ => Ok(infinity_with_sign(self.signum() * other.signum())),
        }
    }

    /// The quotient.
    pub fn div(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        if let (Some(a), Some(b)) = (self.small(), other.small())
            && let (Parts::Finite(whole), Parts::Finite(by)) = (self.parts(), other.parts())
            && let Some(quotient) = a.div(b, quotient_scale(&whole, &by))
        {
            return quotient.to_numeric();
        }
        self.div_any(other)
    }

    pub(super) fn div_any(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        match (self.parts(), other.parts()) {
            (Parts::NaN, _) | (_, Parts::NaN) => Ok(Numeric::nan()),
            (_, Parts::Finite(b)) if b.is_zero() => Err(NumericError::DivisionByZero),
            (Parts::Finite(a), Parts::Finite(b)) => {
                let dscale = quotient_scale(&a, &b);
                Numeric::from_decimal(Decimal::from_big(&divide(&a, &b, dscale), dscale))
            }
            (Parts::Finite(_), _) => Ok(Numeric::from(0i64)),
            (_, Parts::Finite(_)) => Ok(infinity_with_sign(self.signum() * other.signum())),
            _ => Ok(Numeric::nan()),
        }
    }

    /// The remainder, with the sign of the dividend.
    pub fn rem(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        if let (Some(a), Some(b)) = (self.small(), other.small())
            && let Some(remainder) = a.rem(b)
        {
            return remainder.to_numeric();
        }
        self.rem_any(other)
    }

    pub(super) fn rem_any(self, other: NumericRef<'_>) -> Result<Numeric, NumericError> {
        match (self.parts(), other.parts()) {
            (Parts::NaN, _) | (_, Parts::NaN) => Ok(Numeric::nan()),
            (_, Parts::Finite(b)) if b.is_zero() => Err(NumericError::DivisionByZero),
            (Parts::Finite(a), Parts::Finite(b)) => {
                let remainder = a.to_big() % b.to_big();
                Numeric::from_decimal(Decimal::from_big(&remainder, a.dscale.max(b.dscale)))
            }
            (Parts::Finite(_), _) => Ok(self.to_owned()),
            _ => Ok(Numeric::nan()),
        }
    }

    /// Rounds to a 64-bit whole number. An error carries the name of the target type.
    pub fn to_i64(self, target: &'static str) -> Result<i64, NumericError> {
        let rounded = self.small().and_then(|small| small.round(0));
        match rounded.and_then(|whole| whole.whole()) {
            Some(whole) => Ok(whole),
            None => self.to_i64_any(target),
        }
    }

    pub(super) fn to_i64_any(self, target: &'static str) -> Result<i64, NumericError> {
        match self.parts() {
            Parts::NaN => Err(NumericError::NotConvertible("NaN", target)),
            Parts::Infinity | Parts::NegInfinity => {
                Err(NumericError::NotConvertible("infinity", target))
            }
            Parts::Finite(decimal) => {
                let rounded = decimal.round(0);
                let whole = if rounded.weight > 5 { None } else { rounded.to_big().to_i64() };
                whole.ok_or(NumericError::OutOfRange(target))
            }
        }
    }

    /// The nearest float (infinite when out of range).
    pub fn to_f64(self) -> f64 {
        match self.small().and_then(Small::to_f64) {
            Some(float) => float,
            None => self.to_f64_any(),
        }
    }

    pub(super) fn to_f64_any(self) -> f64 {
        match self.parts() {
            Parts::NaN => f64::NAN,
            Parts::Infinity => f64::INFINITY,
            Parts::NegInfinity => f64::NEG_INFINITY,
            Parts::Finite(_) => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }
}

impl Numeric {
    /// A float's value to 15 significant digits, as PostgreSQL converts it.
    pub fn from_f64(value: f64) -> Self {
        Self::from_float(value, 15)
    }

    /// A float's value to 6 significant digits, as PostgreSQL converts it.
    pub fn from_f32(value: f32) -> Self {
        Self::from_float(value.into(), 6)
    }

    fn from_float(value: f64, significant: usize) -> Self {
        if value.is_nan() {
            return Self::nan();
        }
        if value.is_infinite() {
            return infinity_with_sign(if value < 0.0 { -1 } else { 1 });
        }
        let text = format!("{value:.*e}", significant - 1);
        // For example "1.50000000000000e0". Trailing zeros carry no information.
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').bytes().filter(u8::is_ascii_digit);
        let digits = SmallVec::<[u8; 20]>::from_iter(digits.map(|digit| digit - b'0'));
        let point = 1 + exponent.parse::<i64>().unwrap_or(0);
        let dscale = (digits.len() as i64 - point).max(0) as u16;
        let decimal = from_decimal_digits(&digits, point, value < 0.0, dscale);
        Self::from_decimal(decimal).unwrap_or_else(|_| Self::nan())
    }
}

fn infinity_with_sign(sign: i32) -> Numeric {
    match sign {
        0 => Numeric::nan(),
        1.. => Numeric::infinity(),
        _ => Numeric::neg_infinity(),
    }
}

/// PostgreSQL's rule: at least 16 significant digits, and no fewer than either operand shows.
fn quotient_scale(a: &Decimal, b: &Decimal) -> u16 {
    let first = |d: &Decimal| (d.weight, d.digits.first().copied().unwrap_or(0));
    let ((weight_a, first_a), (weight_b, first_b)) = (first(a), first(b));
    let mut weight = weight_a - weight_b;
    if first_a <= first_b {
        weight -= 1;
    }
    let scale = MIN_SIGNIFICANT_DIGITS - weight * 4;
    let shown = i32::from(a.dscale.max(b.dscale));
    scale.max(shown).clamp(0, MAX_DISPLAY_SCALE) as u16
}

/// The quotient rounded, half away from zero, to `dscale` digits after the point.
fn divide(a: &Decimal, b: &Decimal, dscale: u16) -> BigDecimal {
    let (mut numerator, scale_a) = a.to_big().into_bigint_and_exponent();
    let (mut denominator, scale_b) = b.to_big().into_bigint_and_exponent();
    if denominator.is_zero() {
        return BigDecimal::zero();
    }
    let shift = i64::from(dscale) + scale_b - scale_a;
    let power = BigInt::from(10u8).pow(shift.unsigned_abs().min(1 << 20) as u32);
    if shift >= 0 {
        numerator *= power;
    } else {
        denominator *= power;
    }
    let half = denominator.abs() / 2u8;
    let negative = numerator.is_negative() != denominator.is_negative();
    let (numerator, denominator) = (numerator.abs(), denominator.abs());
    // Half of an odd denominator is rounded down. No remainder is exactly one half of it.
    let quotient = (numerator + half) / &denominator;
    let quotient = if negative { -quotient } else { quotient };
    BigDecimal::new(quotient, i64::from(dscale))
}
