//! Arithmetic of numbers whose digits fit a machine's integer: most numbers that people keep.
//!
//! Nothing here rounds but [`Small::div`]; see `rounding`. What does not fit is `None`, and `arith`
//! computes it by way of the `bigdecimal` crate.

use smallvec::SmallVec;

use super::{
    Decimal, MAX_SCALE, Numeric, NumericError, NumericRef, Parts, SHORT, SHORT_DSCALE, SHORT_SIGN,
    SHORT_WEIGHTS, short_header,
};

/// Digits of base 10000 that fit, with room for a sum.
const MAX_DIGITS: usize = 9;
pub(super) const BASE: i128 = 10_000;
/// Its first powers.
const POWERS: [i64; 4] = [1, 10_000, 100_000_000, 1_000_000_000_000];
/// Digits that fit into 64 bits.
const DIGITS_OF_U64: usize = 4;

/// A number of few digits, for arithmetic without memory: `coefficient * 10000^exponent`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Small {
    pub(super) coefficient: i128,
    pub(super) exponent: i32,
    pub(super) dscale: u16,
}

impl NumericRef<'_> {
    /// The number as a small one, if it has the short form and few digits.
    #[inline]
    pub fn small(self) -> Option<Small> {
        let (header, digits) = self.0.split_first_chunk()?;
        let header = u16::from_le_bytes(*header);
        if header & super::SPECIAL != SHORT || digits.len() > 2 * MAX_DIGITS {
            return None;
        }
        let (first, rest) = digits.split_at(digits.len().min(2 * DIGITS_OF_U64));
        // Most numbers have no more, and a wider integer costs more.
        let mut short = 0;
        for digit in first.chunks_exact(2) {
            short = short * BASE as u64 + u64::from(u16::from_le_bytes([digit[0], digit[1]]));
        }
        let mut coefficient = i128::from(short);
        for digit in rest.chunks_exact(2) {
            coefficient = coefficient * BASE + i128::from(u16::from_le_bytes([digit[0], digit[1]]));
        }
        let count = (digits.len() / 2) as i32;
        if header & SHORT_SIGN != 0 {
            coefficient = -coefficient;
        }
        let weight = i32::from(header & 0x7f) - 64;
        Some(Small { coefficient, exponent: weight + 1 - count, dscale: header >> 7 & 0x3f })
    }
}

/// Numbers as integers of a scale, as other systems hold them.
impl NumericRef<'_> {
    /// The number times ten to the power of `scale`, if it is shown with that many digits after the
    /// point and fits.
    pub fn unscaled(self, scale: u16) -> Option<i128> {
        let Some(Small { coefficient, exponent, dscale }) = self.small() else {
            return self.parts().unscaled(scale);
        };
        if dscale != scale {
            return None;
        }
        let shift = i64::from(scale) + 4 * i64::from(exponent);
        if let Ok(places) = u32::try_from(shift) {
            return coefficient.checked_mul(10i128.checked_pow(places)?);
        }
        // What is cut are the zeros that fill the last digit of base 10000.
        let power = 10i64.checked_pow(u32::try_from(-shift).ok()?)?;
        match i64::try_from(coefficient) {
            // Division of wider integers costs much more.
            Ok(short) => (short % power == 0).then_some((short / power).into()),
            Err(_) => {
                let power = i128::from(power);
                (coefficient % power == 0).then_some(coefficient / power)
            }
        }
    }
}

impl NumericRef<'_> {
    /// The same number, shown with `scale` digits after the point; `None` if some would be lost.
    pub fn with_scale(self, scale: u16) -> Option<Numeric> {
        let Parts::Finite(decimal) = self.parts() else { return Some(self.to_owned()) };
        let digits = i32::try_from(decimal.digits.len()).ok()?;
        let last = decimal.digits.last().map_or(0, |last| last % 10_000);
        let zeros =
            [1000, 100, 10].iter().position(|power| last % power == 0).map_or(0, |at| 3 - at);
        let shown = (4 * (digits - decimal.weight - 1) - zeros as i32).max(0);
        if last != 0 && shown > i32::from(scale) {
            return None;
        }
        Numeric::from_decimal(Decimal { dscale: scale, ..decimal }).ok()
    }
}

impl Numeric {
    /// `value` divided by ten to the power of `scale`, shown with that many digits after the point.
    pub fn from_unscaled(value: i128, scale: u16) -> Option<Self> {
        let places = i32::from(scale.div_ceil(4));
        // The last digit of base 10000 may be filled up with zeros.
        let filled = 10u128.pow(u32::from(scale.next_multiple_of(4) - scale));
        let mut left = value.unsigned_abs();
        let (mut digits, mut power) = (SmallVec::<[u16; 8]>::new(), filled);
        while left > 0 {
            let here = BASE as u128 / power;
            digits.insert(0, (left % here * power) as u16);
            (left, power) = (left / here, 1);
        }
        let weight = digits.len() as i32 - 1 - places;
        let negative = value < 0;
        Numeric::from_decimal(Decimal { negative, weight, dscale: scale, digits }).ok()
    }
}

impl Parts {
    fn unscaled(&self, scale: u16) -> Option<i128> {
        let Parts::Finite(decimal) = self else { return None };
        if decimal.dscale != scale {
            return None;
        }
        let mut sum = 0i128;
        let mut shift = i64::from(scale) + 4 * i64::from(decimal.weight);
        for digit in &decimal.digits {
            let digit = i128::from(*digit);
            let power = 10i128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?)?;
            let part = match shift {
                0.. => digit.checked_mul(power)?,
                _ => (digit % power == 0).then_some(digit / power)?,
            };
            sum = sum.checked_add(part)?;
            shift -= 4;
        }
        Some(if decimal.negative { -sum } else { sum })
    }
}

impl Small {
    /// The coefficient for a lower exponent.
    pub(super) fn aligned(self, exponent: i32) -> Option<i128> {
        let shift = u32::try_from(self.exponent - exponent).ok()?;
        if shift == 0 {
            return Some(self.coefficient);
        }
        let power = match POWERS.get(shift as usize) {
            Some(power) => i128::from(*power),
            None => BASE.checked_pow(shift)?,
        };
        product(self.coefficient, power)
    }

    /// The sum.
    #[inline]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let coefficient = self.aligned(exponent)?.checked_add(other.aligned(exponent)?)?;
        Some(Self { coefficient, exponent, dscale: self.dscale.max(other.dscale) })
    }

    /// The number with its sign changed.
    pub(super) fn neg(self) -> Self {
        Self { coefficient: -self.coefficient, ..self }
    }

    /// The difference.
    #[inline]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(other.neg())
    }

    /// The product.
    #[inline]
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        Some(Self {
            coefficient: product(self.coefficient, other.coefficient)?,
            exponent: self.exponent + other.exponent,
            dscale: Some(self.dscale + other.dscale).filter(|dscale| *dscale <= MAX_SCALE)?,
        })
    }

    /// The quotient, rounded half away from zero to `dscale` digits after the point.
    pub(super) fn div(self, other: Self, dscale: u16) -> Option<Self> {
        let is_negative = (self.coefficient < 0) != (other.coefficient < 0);
        let mut numerator = self.coefficient.unsigned_abs();
        let mut denominator = other.coefficient.unsigned_abs();
        // The quotient counts digits of base 10000, so that it has up to three zeros at its end.
        let places = u32::from(dscale).div_ceil(4);
        let shift = i64::from(dscale) + 4 * i64::from(self.exponent - other.exponent);
        let power = 10u128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?)?;
        if shift >= 0 {
            numerator = numerator.checked_mul(power)?;
        } else {
            denominator = denominator.checked_mul(power)?;
        }
        let rounded = numerator.checked_add(denominator / 2)?.checked_div(denominator)?;
        let whole = rounded.checked_mul(10u128.pow(4 * places - u32::from(dscale)))?;
        let coefficient = i128::try_from(whole).ok()?;
        let coefficient = if is_negative { -coefficient } else { coefficient };
        Some(Self { coefficient, exponent: -(places as i32), dscale })
    }

    pub(super) fn to_numeric(self) -> Result<Numeric, NumericError> {
        let mut left = self.coefficient.unsigned_abs();
        // 39 decimal digits at most.
        let (mut digits, mut first) = ([0u16; 10], 10);
        while left > 0 {
            first -= 1;
            // Division of wider integers costs much more.
            let digit = match u64::try_from(left) {
                Ok(short) => {
                    left = u128::from(short / BASE as u64);
                    short % BASE as u64
                }
                Err(_) => {
                    let digit = left % BASE as u128;
                    left /= BASE as u128;
                    digit as u64
                }
            };
            digits[first] = digit as u16;
        }
        let weight = self.exponent + (digits.len() - first) as i32 - 1;
        let end = digits.iter().rposition(|digit| *digit != 0).map_or(first, |last| last + 1);
        let digits = &digits[first..end];
        let negative = self.coefficient < 0;
        if self.dscale >= SHORT_DSCALE || !SHORT_WEIGHTS.contains(&weight) || digits.is_empty() {
            let (dscale, digits) = (self.dscale, SmallVec::from_slice(digits));
            return Numeric::from_decimal(Decimal { negative, weight, dscale, digits });
        }
        let mut bytes = SmallVec::<[u8; 24]>::new();
        bytes.extend_from_slice(&short_header(negative, self.dscale, weight).to_le_bytes());
        for digit in digits {
            bytes.extend_from_slice(&digit.to_le_bytes());
        }
        Ok(Numeric(bytes))
    }
}

#[inline]
fn product(a: i128, b: i128) -> Option<i128> {
    // A check of a wider product costs several times as much as the product.
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => Some(i128::from(a) * i128::from(b)),
        _ => a.checked_mul(b),
    }
}

/// A sum of numbers, which is a [`Small`] as long as it fits.
#[derive(Debug, Clone, Default)]
pub struct NumericSum {
    /// The sum of the numbers since the last one that did not fit.
    small: Small,
    /// How many of these numbers have its scale. It holds only while the scale is above 0 and there
    /// is no rest.
    of_scale: u64,
    /// The sum of what did not fit.
    rest: Option<Box<Numeric>>,
}

impl NumericSum {
    /// Adds a number.
    pub fn add(&mut self, number: NumericRef<'_>) -> Result<(), NumericError> {
        match number.small() {
            Some(small) => self.add_small(small),
            None => self.add_rest(number),
        }
    }

    /// Adds a number of few digits.
    #[inline]
    pub fn add_small(&mut self, small: Small) -> Result<(), NumericError> {
        match self.small.checked_add(small) {
            Some(sum) => {
                if small.dscale > self.small.dscale {
                    self.of_scale = 1;
                } else if small.dscale == self.small.dscale {
                    self.of_scale += 1;
                }
                self.small = sum;
            }
            None => {
                let before = self.small.to_numeric()?;
                self.add_rest(before.as_ref())?;
                self.small = small;
            }
        }
        Ok(())
    }

    /// Adds an integer.
    #[inline]
    pub fn add_int(&mut self, int: i64) -> Result<(), NumericError> {
        if self.small.exponent == 0
            && let Some(sum) = self.small.coefficient.checked_add(int.into())
        {
            self.small.coefficient = sum;
            return Ok(());
        }
        self.add_small(Small { coefficient: int.into(), exponent: 0, dscale: 0 })
    }

    /// Takes out a number that was added. False if that can't be done, and then the sum is not
    /// changed: it may be of too many digits, or this may be the last number of its scale.
    pub fn take_out(&mut self, number: NumericRef<'_>) -> bool {
        number.small().is_some_and(|small| self.take_out_small(small))
    }

    /// The same of a number of few digits.
    pub fn take_out_small(&mut self, small: Small) -> bool {
        let is_of_scale = small.dscale > 0 && small.dscale == self.small.dscale;
        if self.rest.is_some() || is_of_scale && self.of_scale <= 1 {
            return false;
        }
        let Some(sum) = self.small.checked_sub(small) else { return false };
        self.of_scale -= u64::from(is_of_scale);
        self.small = sum;
        true
    }

    /// The sum, if only integers were added.
    pub fn int(&self) -> Option<i128> {
        let Small { coefficient, exponent, dscale } = self.small;
        (exponent == 0 && dscale == 0 && self.rest.is_none()).then_some(coefficient)
    }

    #[cold]
    fn add_rest(&mut self, number: NumericRef<'_>) -> Result<(), NumericError> {
        let sum = match &self.rest {
            None => number.to_owned(),
            Some(rest) => Numeric::as_ref(rest).add(number)?,
        };
        self.rest = Some(Box::new(sum));
        Ok(())
    }

    /// The sum.
    pub fn total(&self) -> Result<Numeric, NumericError> {
        let small = self.small.to_numeric()?;
        match &self.rest {
            Some(rest) => Numeric::as_ref(rest).add(small.as_ref()),
            None => Ok(small),
        }
    }
}
