//! Exact decimal numbers, as PostgreSQL's `numeric`: any precision, NaN and infinities, and a
//! display scale that arithmetic carries along.
//!
//! A number is stored as base-10000 digits without leading or trailing zeros:
//!
//! ```text
//! u16 LE header
//!   15..14 = 10   short: 13 sign, 12..7 display scale, 6..0 weight + 64
//!   15..14 = 0s   long: s sign, 13..0 display scale; then i16 LE weight
//!   15..14 = 11   special: 0 NaN, 1 Infinity, 2 -Infinity; nothing follows
//! u16 LE digits, each 0..=9999; the first has the value digit * 10000^weight
//! ```
//!
//! Zero has no digits, weight 0 and no sign. Each pair of number and display scale has one form
//! (the short one if it fits), but equal numbers may differ in display scale.
//!
//! `arith` does arithmetic (through the `bigdecimal` crate), for most numbers by `small` and
//! `rounding`; `text` parses and prints.

mod arith;
mod magnitude;
mod root;
mod rounding;
mod small;
mod text;

use std::cmp::Ordering;

use smallvec::SmallVec;

use magnitude::Magnitude;

pub use small::{NumericSum, Small};

/// The largest display scale.
pub const MAX_SCALE: u16 = 16383;
/// Base-10000 weights beyond these do not occur (131072 digits before the point).
const MAX_WEIGHT: i32 = 32767;

const SPECIAL: u16 = 0xc000;
const SHORT: u16 = 0x8000;
const SHORT_SIGN: u16 = 0x2000;
const LONG_SIGN: u16 = 0x4000;
/// The display scales of the short form are below this.
const SHORT_DSCALE: u16 = 64;
/// The weights of the short form.
const SHORT_WEIGHTS: std::ops::Range<i32> = -64..64;

/// The header of the short form, for a scale and a weight that it has.
fn short_header(negative: bool, dscale: u16, weight: i32) -> u16 {
    let sign = if negative { SHORT_SIGN } else { 0 };
    SHORT | sign | dscale << 7 | (weight + 64) as u16
}

/// What can go wrong with decimal numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumericError {
    /// Not a number (SQLSTATE 22P02).
    #[error("invalid input syntax for type numeric: \"{0}\"")]
    Syntax(String),
    /// Too large for the format (22003).
    #[error("value overflows numeric format")]
    Overflow,
    /// Too large for its column (22003).
    #[error("numeric field overflow")]
    FieldOverflow {
        /// The column's precision.
        precision: u16,
        /// The column's scale.
        scale: i16,
    },
    /// Division by zero (22012).
    #[error("division by zero")]
    DivisionByZero,
    /// Out of range of the type it is converted to (22003).
    #[error("{0} out of range")]
    OutOfRange(&'static str),
    /// NaN or infinity where the target has none (0A000).
    #[error("cannot convert {0} to {1}")]
    NotConvertible(&'static str, &'static str),
}

/// An owned decimal number: its stored form.
#[derive(Clone)]
pub struct Numeric(SmallVec<[u8; 24]>);

/// A borrowed decimal number: its stored form, checked to be well-formed.
#[derive(Clone, Copy)]
pub struct NumericRef<'a>(&'a [u8]);

/// A number that is not NaN or infinite, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decimal {
    /// Below zero.
    pub negative: bool,
    /// The power of 10000 that the first digit counts.
    pub weight: i32,
    /// Digits printed after the point.
    pub dscale: u16,
    /// Base-10000 digits, most significant first, without leading or trailing zeros.
    pub digits: SmallVec<[u16; 8]>,
}

/// What a number is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Below every other number.
    NegInfinity,
    /// An ordinary number.
    Finite(Decimal),
    /// Above every other number but NaN.
    Infinity,
    /// Not a number; equal to itself and above all others.
    NaN,
}

impl Numeric {
    /// Not a number.
    pub fn nan() -> Self {
        Self(SmallVec::from_slice(&SPECIAL.to_le_bytes()))
    }

    /// Positive infinity.
    pub fn infinity() -> Self {
        Self(SmallVec::from_slice(&(SPECIAL | 1).to_le_bytes()))
    }

    /// Negative infinity.
    pub fn neg_infinity() -> Self {
        Self(SmallVec::from_slice(&(SPECIAL | 2).to_le_bytes()))
    }

    /// The number borrowed.
    pub fn as_ref(&self) -> NumericRef<'_> {
        NumericRef(&self.0)
    }

    fn set_header(&mut self, header: u16) {
        if let Some(bytes) = self.0.first_chunk_mut() {
            *bytes = header.to_le_bytes();
        }
    }

    /// Builds a number from its parts.
    pub fn from_parts(parts: Parts) -> Result<Self, NumericError> {
        match parts {
            Parts::NaN => Ok(Self::nan()),
            Parts::Infinity => Ok(Self::infinity()),
            Parts::NegInfinity => Ok(Self::neg_infinity()),
            Parts::Finite(decimal) => Self::from_decimal(decimal),
        }
    }

    /// Builds a number from digits, which may still have zeros at either end.
    pub fn from_decimal(mut decimal: Decimal) -> Result<Self, NumericError> {
        decimal.normalize();
        if decimal.weight.abs() > MAX_WEIGHT || decimal.dscale > MAX_SCALE {
            return Err(NumericError::Overflow);
        }
        let mut bytes = SmallVec::new();
        if decimal.dscale < SHORT_DSCALE && SHORT_WEIGHTS.contains(&decimal.weight) {
            let header = short_header(decimal.negative, decimal.dscale, decimal.weight);
            bytes.extend_from_slice(&header.to_le_bytes());
        } else {
            let sign = if decimal.negative { LONG_SIGN } else { 0 };
            bytes.extend_from_slice(&(sign | decimal.dscale).to_le_bytes());
            bytes.extend_from_slice(&(decimal.weight as i16).to_le_bytes());
        }
        for digit in &decimal.digits {
            bytes.extend_from_slice(&digit.to_le_bytes());
        }
        Ok(Self(bytes))
    }
}

impl<'a> NumericRef<'a> {
    /// Checks that stored bytes form a number.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let number = Self(bytes);
        let header = number.header()?;
        if header & SPECIAL == SPECIAL {
            return (bytes.len() == 2 && header & !SPECIAL <= 2).then_some(number);
        }
        let digits = bytes.get(if header & SHORT != 0 { 2 } else { 4 }..)?;
        let well_formed = digits.len().is_multiple_of(2)
            && digits.chunks_exact(2).all(|d| u16::from_le_bytes([d[0], d[1]]) < 10000);
        well_formed.then_some(number)
    }

    /// The stored bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// An owned copy.
    #[allow(clippy::should_implement_trait, clippy::wrong_self_convention)]
    pub fn to_owned(self) -> Numeric {
        Numeric(SmallVec::from_slice(self.0))
    }

    pub(in crate::numeric) fn header(self) -> Option<u16> {
        self.0.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
    }

    /// Takes the number apart.
    pub fn parts(self) -> Parts {
        // The constructors make no number without a header. NaN would be the safe answer for one.
        let header = self.header().unwrap_or(SPECIAL);
        if header & SPECIAL == SPECIAL {
            return match header & !SPECIAL {
                1 => Parts::Infinity,
                2 => Parts::NegInfinity,
                _ => Parts::NaN,
            };
        }
        let Some(Magnitude { negative, weight, digits }) = self.magnitude() else {
            return Parts::NaN;
        };
        let dscale = if header & SHORT != 0 { header >> 7 & 0x3f } else { header & !SPECIAL };
        let digits = digits.chunks_exact(2).map(|d| u16::from_le_bytes([d[0], d[1]])).collect();
        Parts::Finite(Decimal { negative, weight, dscale, digits })
    }

    /// Whether this is NaN.
    pub fn is_nan(self) -> bool {
        self.header().is_none_or(|header| header & SPECIAL == SPECIAL && header & !SPECIAL == 0)
    }
}

impl Decimal {
    /// Removes zeros at both ends.
    fn normalize(&mut self) {
        let leading = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..leading);
        self.weight -= leading as i32;
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            (self.negative, self.weight) = (false, 0);
        }
    }

    /// Whether this is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }
}

impl Parts {
    fn class(&self) -> u8 {
        match self {
            Self::NegInfinity => 1,
            Self::Finite(decimal) if decimal.is_zero() => 3,
            Self::Finite(decimal) if decimal.negative => 2,
            Self::Finite(_) => 4,
            Self::Infinity => 5,
            Self::NaN => 6,
        }
    }
}

/// Appends the bytes that order a number in an index (see [`super::key`]).
pub(super) fn encode_key(number: NumericRef<'_>, out: &mut Vec<u8>) {
    let parts = number.parts();
    out.push(parts.class());
    let Parts::Finite(decimal) = parts else { return };
    if decimal.is_zero() {
        return;
    }
    let start = out.len();
    out.extend_from_slice(&((decimal.weight as i16 as u16) ^ 1 << 15).to_be_bytes());
    for digit in &decimal.digits {
        out.push((digit / 100) as u8 + 1);
        out.push((digit % 100) as u8 + 1);
    }
    // The last digit is not zero, but its lower two decimal digits may be.
    if out.last() == Some(&1) {
        out.pop();
    }
    out.push(0);
    if decimal.negative {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

impl Ord for NumericRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.magnitude(), other.magnitude()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.parts().class().cmp(&other.parts().class()),
        }
    }
}

impl PartialOrd for NumericRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NumericRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for NumericRef<'_> {}

impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_ref().cmp(&other.as_ref())
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

#[cfg(test)]
mod tests;
