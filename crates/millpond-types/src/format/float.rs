//! Floats as text: printed with the fewest digits that read back as the same value, or rounded as
//! `extra_float_digits` wants it.

use std::fmt::LowerExp;
use std::io::Write;

use super::{hex_float, invalid_syntax};
use crate::DataType;
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

/// A float in exponent form fits here ("-1.7976931348623157e308").
const LONGEST: usize = 32;

pub(super) fn write_f64(value: f64, extra_digits: i8, out: &mut Vec<u8>) {
    let kind = (value.is_nan(), value.is_infinite(), value < 0.0);
    let (bits, is_same) = (value.to_bits(), |text: &str| text.parse() == Ok(value));
    let parts = Parts::new(bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32, (52, 1075));
    let is_tie = (value * SHORT_FRACTIONS).fract() == 0.0;
    let near = is_tie.then_some(Near { is_same: &is_same, parts });
    write_rounded(&value, kind, digits(15, extra_digits), (15, near), out);
}

pub(super) fn write_f32(value: f32, extra_digits: i8, out: &mut Vec<u8>) {
    let kind = (value.is_nan(), value.is_infinite(), value < 0.0);
    let (bits, is_same) = (u64::from(value.to_bits()), |text: &str| text.parse() == Ok(value));
    let parts = Parts::new(bits & ((1 << 23) - 1), (bits >> 23 & 0xff) as i32, (23, 150));
    let is_tie = (f64::from(value) * SHORT_FRACTIONS).fract() == 0.0;
    let near = is_tie.then_some(Near { is_same: &is_same, parts });
    write_rounded(&value, kind, digits(6, extra_digits), (6, near), out);
}

/// 2^26. A fraction that is no multiple of its inverse has more than 18 digits.
const SHORT_FRACTIONS: f64 = (1_u64 << 26) as f64;

/// A number beside which, or in the middle of which, there may be numbers with few digits.
struct Near<'a> {
    /// Whether a text reads as the number.
    is_same: &'a dyn Fn(&str) -> bool,
    parts: Parts,
}

/// A number's size as `mantissa * 2^exponent`.
#[derive(Clone, Copy)]
struct Parts {
    mantissa: u64,
    exponent: i32,
    /// The next smaller number is nearer than the next larger one.
    is_lowest: bool,
}

impl Parts {
    fn new(fraction: u64, exponent: i32, (bits, bias): (u32, i32)) -> Self {
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << bits };
        let is_lowest = fraction == 0 && exponent > 1;
        Parts { mantissa, exponent: exponent.max(1) - bias, is_lowest }
    }

    /// Whether a text is the middle between the number and the next larger or smaller one. Such a
    /// text may read as the number, but PostgreSQL does not write it.
    fn has_bound(self, text: &str) -> bool {
        // The middle of smaller numbers has more digits than either.
        if self.exponent < 0 {
            return false;
        }
        let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
        let (Ok(number), Ok(exponent)) = (digits.parse::<u64>(), exponent.parse::<i32>()) else {
            return false;
        };
        let tens = exponent + 1 - digits.len() as i32;
        let Parts { mantissa, exponent, is_lowest } = self;
        let above = (2 * mantissa + 1, exponent - 1);
        let below = match is_lowest {
            true => (4 * mantissa - 1, exponent - 2),
            false => ((2 * mantissa).saturating_sub(1), exponent - 1),
        };
        [above, below].into_iter().any(|odd| is_equal((number, tens), odd))
    }
}

/// Whether `number * 10^tens` is `odd * 2^twos`.
fn is_equal((number, tens): (u64, i32), (odd, twos): (u64, i32)) -> bool {
    // No number of 54 bits, and none of 17 digits, is a multiple of a larger power of five.
    const MOST_TENS: u32 = 24;
    let size = tens.unsigned_abs();
    if number == 0 || size > MOST_TENS {
        return false;
    }
    let fives = 5_u128.pow(size);
    let (left, right) = match tens < 0 {
        true => (number.into(), u128::from(odd) * fives),
        false => (u128::from(number) * fives, odd.into()),
    };
    let zeros = left.trailing_zeros();
    left >> zeros == right && zeros as i32 + tens == twos
}

/// Writes a number with `digits` digits, or with the fewest that read back. `kind` says whether it
/// is no number, infinite, negative; `always` how many digits its type always holds. `near` is
/// there if the number may lie in the middle of two numbers with the fewest digits, or half-way to
/// one.
fn write_rounded(
    value: &dyn LowerExp,
    (nan, infinite, negative): (bool, bool, bool),
    digits: Option<usize>,
    (always, near): (i32, Option<Near<'_>>),
    out: &mut Vec<u8>,
) {
    let fixed_below = digits.map_or(always, |digits| digits as i32);
    write(nan, infinite, negative, fixed_below, out, |buffer| match (digits, &near) {
        (Some(digits), _) => write!(buffer, "{value:.*e}", digits - 1),
        (None, Some(near)) => write_near(value, near, buffer),
        (None, None) => write!(buffer, "{value:e}"),
    });
}

/// Writes the fewest digits that read back, and not only because half-way counts. In the middle of
/// two such numbers, that with the even last digit.
fn write_near(
    value: &dyn LowerExp,
    Near { is_same, parts }: &Near<'_>,
    buffer: &mut &mut [u8],
) -> std::io::Result<()> {
    let mut shortest = format!("{value:e}");
    if parts.has_bound(&shortest) {
        let longer = (1..=17).map(|digits| format!("{value:.digits$e}"));
        let inside = |text: &String| is_same(text) && !parts.has_bound(text);
        shortest = longer.into_iter().find(inside).unwrap_or(shortest);
        return buffer.write_all(shortest.as_bytes());
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let length = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let below = match mantissa.as_bytes().last() {
        Some(last @ (b'1' | b'3' | b'5' | b'7' | b'9')) if length > 1 => last - 1,
        _ => return buffer.write_all(shortest.as_bytes()),
    };
    let below = format!("{}{}", &mantissa[..mantissa.len() - 1], char::from(below));
    // All its digits, or more: the even number is as near if they are its own, a 5 and zeros.
    let exact = format!("{value:.*e}", length + 24);
    let is_middle = exact.strip_prefix(below.as_str()).is_some_and(|rest| {
        let digits = rest.split_once('e').map_or(rest, |(digits, _)| digits);
        digits.strip_prefix('5').is_some_and(|zeros| zeros.bytes().all(|byte| byte == b'0'))
    });
    let even = format!("{below}e{exponent}");
    buffer.write_all(if is_middle && is_same(&even) && !parts.has_bound(&even) {
        even.as_bytes()
    } else {
        shortest.as_bytes()
    })
}

/// How many digits to round to; `None`: to the fewest that read back as the same value.
fn digits(always: usize, extra: i8) -> Option<usize> {
    let fewer = usize::from(extra.unsigned_abs());
    (extra <= 0).then(|| always.saturating_sub(fewer).max(1))
}

/// Lays out digits as PostgreSQL does. An exponent is left out if it is at least -4 and below
/// `fixed_below`. That is the number of digits that the type always holds, or that are wanted.
fn write(
    nan: bool,
    infinite: bool,
    negative: bool,
    fixed_below: i32,
    out: &mut Vec<u8>,
    print: impl Fn(&mut &mut [u8]) -> std::io::Result<()>,
) {
    if nan {
        return out.extend_from_slice(b"NaN");
    }
    if infinite {
        return out.extend_from_slice(if negative { b"-Infinity" } else { b"Infinity" });
    }
    let mut buffer = [0u8; LONGEST];
    let mut rest = &mut buffer[..];
    // The buffer holds any float: printing into it can't fail.
    let _ = print(&mut rest);
    let unused = rest.len();
    let text = &buffer[..LONGEST - unused];
    let (text, sign) = text.strip_prefix(b"-").map_or((text, false), |text| (text, true));
    if sign {
        out.push(b'-');
    }
    let e = text.iter().position(|&b| b == b'e').unwrap_or(text.len());
    let exponent: i32 = std::str::from_utf8(text.get(e + 1..).unwrap_or_default())
        .ok()
        .and_then(|exponent| exponent.parse().ok())
        .unwrap_or(0);
    let mut mantissa = &text[..e];
    // Rounded digits may end in zeros.
    while let [_, .., b'0'] = mantissa {
        mantissa = &mantissa[..mantissa.len() - 1];
    }
    let digits = mantissa.iter().copied().filter(u8::is_ascii_digit);
    if (-4..fixed_below).contains(&exponent) {
        write_fixed(digits, exponent, out);
    } else {
        write_exponent(digits, exponent, out);
    }
}

fn write_fixed(digits: impl Iterator<Item = u8>, exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-1 - exponent) as usize));
        out.extend(digits);
        return;
    }
    let mut before_point = exponent + 1;
    for digit in digits {
        if before_point == 0 {
            out.push(b'.');
        }
        before_point -= 1;
        out.push(digit);
    }
    out.extend(std::iter::repeat_n(b'0', before_point.max(0) as usize));
}

fn write_exponent(mut digits: impl Iterator<Item = u8>, exponent: i32, out: &mut Vec<u8>) {
    out.extend(digits.next());
    let point = out.len();
    out.extend(digits);
    if out.len() > point {
        out.insert(point, b'.');
    }
    out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    super::integer::write_padded(exponent.unsigned_abs(), 2, out);
}

/// Whether a text that became zero has a digit that is not (its value was too small).
fn lost_all(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    mantissa.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

#[cold]
fn float_range(ty: DataType, text: &str) -> DataException {
    DataException::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("\"{text}\" is out of range for type {ty}"),
    )
}

fn special(trimmed: &str) -> Option<f64> {
    let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if is_nan(unsigned) {
        return Some(f64::NAN);
    }
    let is_infinite =
        unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity");
    let value = if trimmed.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY };
    is_infinite.then_some(value)
}

/// Whether it is `nan`, with or without letters and digits in parentheses.
fn is_nan(text: &str) -> bool {
    let (name, rest) = text.split_at_checked(3).unwrap_or((text, ""));
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let is_name = |inner: &str| inner.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    name.eq_ignore_ascii_case("nan") && (rest.is_empty() || inner.is_some_and(is_name))
}

/// Reads a number of double precision.
pub fn parse_f64(text: &str) -> Result<f64> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if let Some(value) = special(trimmed) {
        return Ok(value);
    }
    if let Some(number) = hex_float::parse(trimmed, hex_float::DOUBLE) {
        return number.ok_or_else(|| float_range(DataType::Float8, text));
    }
    match trimmed.parse::<f64>() {
        Ok(value) if value.is_infinite() || value == 0.0 && lost_all(trimmed) => {
            Err(float_range(DataType::Float8, text))
        }
        Ok(value) if !value.is_nan() => Ok(value),
        _ => Err(invalid_syntax(DataType::Float8, text)),
    }
}

pub(super) fn parse_f32(text: &str) -> Result<f32> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if let Some(value) = special(trimmed) {
        return Ok(value as f32);
    }
    if let Some(number) = hex_float::parse(trimmed, hex_float::SINGLE) {
        // It has no more digits than a number of single precision.
        let number = number.map(|number| number as f32);
        return number.ok_or_else(|| float_range(DataType::Float4, text));
    }
    match trimmed.parse::<f32>() {
        Ok(value) if value.is_infinite() || value == 0.0 && lost_all(trimmed) => {
            Err(float_range(DataType::Float4, text))
        }
        Ok(value) if !value.is_nan() => Ok(value),
        _ => Err(invalid_syntax(DataType::Float4, text)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn middle_of_two_numbers_has_the_even_digit() {
        let written = |value: f64| {
            let mut out = Vec::new();
            super::write_f64(value, 1, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(2f64.powi(-25)), "2.9802322387695312e-08");
        assert_eq!(written(-(2f64.powi(-24))), "-5.960464477539063e-08");
        assert_eq!(written(9_007_199_254_740_993.0), "9.007199254740992e+15");
        assert_eq!(written(0.1), "0.1");
        assert_eq!(written(3.0), "3");
    }

    /// What PostgreSQL writes.
    #[test]
    fn half_way_to_the_next_number_is_not_the_number() {
        let written = |value: f64| {
            let mut out = Vec::new();
            super::write_f64(value, 1, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(5e22), "4.9999999999999996e+22");
        assert_eq!(written(-5e22), "-4.9999999999999996e+22");
        assert_eq!(written(1e22), "1e+22");
        assert_eq!(written(2f64.powi(63)), "9.223372036854776e+18");
        let written = |value: f32| {
            let mut out = Vec::new();
            super::write_f32(value, 1, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(50_331_648.0), "5.0331648e+07");
        assert_eq!(written(50_331_652.0), "5.0331652e+07");
        assert_eq!(written(83_886_080.0), "8.388608e+07");
        assert_eq!(written(1.099_511_6e12), "1.0995116e+12");
    }
}
