//! Numbers as text: exactly what PostgreSQL reads and prints.

use std::fmt::{Display, Formatter, Write};
use std::str::FromStr;

use smallvec::SmallVec;

use super::{Decimal, MAX_SCALE, Numeric, NumericError, NumericRef, Parts, Small};

/// An exponent of larger magnitude than this is an overflow, whatever the digits are.
const MAX_EXPONENT: i64 = 200_000;

impl FromStr for Numeric {
    type Err = NumericError;

    fn from_str(text: &str) -> Result<Self, NumericError> {
        let syntax = || NumericError::Syntax(text.to_owned());
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        let (negative, unsigned) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        if let Some(small) = Small::parse(unsigned.as_bytes(), negative) {
            return small.to_numeric();
        }
        if unsigned.eq_ignore_ascii_case("nan") && unsigned.len() == trimmed.len() {
            return Ok(Self::nan());
        }
        if unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("inf") {
            return Ok(if negative { Self::neg_infinity() } else { Self::infinity() });
        }
        let decimal = parse_decimal(unsigned.as_bytes(), negative).ok_or_else(syntax)??;
        Self::from_decimal(decimal)
    }
}

/// `None` if the text is not a number.
fn parse_decimal(text: &[u8], negative: bool) -> Option<Result<Decimal, NumericError>> {
    let whole_digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (whole, mut rest) = text.split_at(whole_digits);
    let mut fraction: &[u8] = &[];
    if let Some((b'.', after)) = rest.split_first() {
        let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
        (fraction, rest) = after.split_at(digits);
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = parse_exponent(rest)?;
    if exponent.abs() > MAX_EXPONENT {
        return Some(Err(NumericError::Overflow));
    }
    let scale = (fraction.len() as i64 - exponent).max(0);
    if scale > i64::from(MAX_SCALE) {
        return Some(Err(NumericError::Overflow));
    }
    let digits = Vec::from_iter(whole.iter().chain(fraction).map(|b| b - b'0'));
    let point = whole.len() as i64 + exponent;
    Some(Ok(from_decimal_digits(&digits, point, negative, scale as u16)))
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let Some((b'e' | b'E', exponent)) = text.split_first() else {
        return text.is_empty().then_some(0);
    };
    let digits = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits
        .iter()
        .fold(0i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if exponent[0] == b'-' { -magnitude } else { magnitude })
}

/// Groups decimal digits by fours around the point, which is before `digits[point]`.
pub(super) fn from_decimal_digits(
    digits: &[u8],
    point: i64,
    negative: bool,
    dscale: u16,
) -> Decimal {
    let leading = digits.iter().take_while(|&&digit| digit == 0).count();
    let digits = &digits[leading..];
    let point = point - leading as i64;
    // The position of the first digit in its group of four.
    let groups_before = point.div_euclid(4) + i64::from(point.rem_euclid(4) != 0);
    let padding = (groups_before * 4 - point) as usize;
    let mut out = Decimal { negative, dscale, weight: 0, ..Decimal::default() };
    out.weight = i32::try_from(groups_before - 1).unwrap_or(i32::MAX / 2);
    let (mut group, mut filled) = (0, padding);
    for &digit in digits {
        group = group * 10 + u16::from(digit);
        filled += 1;
        if filled == 4 {
            out.digits.push(group);
            (group, filled) = (0, 0);
        }
    }
    if filled > 0 && !digits.is_empty() {
        out.digits.push(group * 10u16.pow(4 - filled as u32));
    }
    out.normalize();
    out
}

impl Display for NumericRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.parts() {
            Parts::NaN => f.write_str("NaN"),
            Parts::Infinity => f.write_str("Infinity"),
            Parts::NegInfinity => f.write_str("-Infinity"),
            Parts::Finite(decimal) => write_decimal(&decimal, f),
        }
    }
}

fn write_decimal(decimal: &Decimal, out: &mut impl Write) -> std::fmt::Result {
    let mut text = SmallVec::<[u8; 64]>::new();
    if decimal.negative {
        text.push(b'-');
    }
    let digit = |weight: i32| -> u16 {
        let index = decimal.weight - weight;
        usize::try_from(index).ok().and_then(|i| decimal.digits.get(i)).copied().unwrap_or(0)
    };
    if decimal.weight < 0 || decimal.is_zero() {
        text.push(b'0');
    } else {
        let first = four_digits(digit(decimal.weight));
        let zeros = first.iter().take_while(|digit| **digit == b'0').count().min(3);
        text.extend_from_slice(&first[zeros..]);
        for weight in (0..decimal.weight).rev() {
            text.extend_from_slice(&four_digits(digit(weight)));
        }
    }
    if decimal.dscale > 0 {
        text.push(b'.');
        let end = text.len() + usize::from(decimal.dscale);
        let mut weight = -1;
        while text.len() < end {
            text.extend_from_slice(&four_digits(digit(weight)));
            weight -= 1;
        }
        text.truncate(end);
    }
    out.write_str(std::str::from_utf8(&text).map_err(|_| std::fmt::Error)?)
}

/// A digit of base 10000 as four of base 10.
fn four_digits(digit: u16) -> [u8; 4] {
    [digit / 1000, digit / 100 % 10, digit / 10 % 10, digit % 10].map(|one| b'0' + one as u8)
}

impl Display for Numeric {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.as_ref(), f)
    }
}

impl std::fmt::Debug for NumericRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "Numeric({self})")
    }
}

impl std::fmt::Debug for Numeric {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.as_ref(), f)
    }
}
