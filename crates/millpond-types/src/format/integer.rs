//! Integers as text.

use super::{invalid_syntax, out_of_range};
use crate::DataType;
use crate::error::Result;

/// Reads an integer within the bounds of its type: spaces around, an optional sign, digits.
pub(super) fn parse(ty: DataType, text: &str, min: i64, max: i64) -> Result<i64> {
    if let Some(value) = plain(text.as_bytes()).filter(|value| (min..=max).contains(value)) {
        return Ok(value);
    }
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, digits) = match trimmed.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid_syntax(ty, text));
    }
    // Counting downwards reaches the smallest integer, too.
    let value = digits
        .iter()
        .try_fold(0i64, |value, digit| value.checked_mul(10)?.checked_sub(i64::from(digit - b'0')));
    let value = if negative { value } else { value.and_then(i64::checked_neg) };
    value.filter(|value| (min..=max).contains(value)).ok_or_else(|| out_of_range(ty, text))
}

/// Reads the number of an object. A negative one of 32 bits is taken for its bits.
pub(super) fn parse_oid(text: &str) -> Result<i64> {
    let value = parse(DataType::Oid, text, i32::MIN.into(), u32::MAX.into())?;
    Ok((value as u32).into())
}

/// A number of digits only that no integer is too small for: most are.
#[inline]
fn plain(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

/// The numbers from 0 to 99, two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Appends an integer's digits.
#[inline]
pub fn write_i64(value: i64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut start = buffer.len();
    let mut rest = value.unsigned_abs();
    while rest >= 10 {
        start -= 2;
        [buffer[start], buffer[start + 1]] = PAIRS[(rest % 100) as usize];
        rest /= 100;
    }
    if rest > 0 || value == 0 {
        start -= 1;
        buffer[start] = b'0' + rest as u8;
    }
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    out.extend_from_slice(&buffer[start..]);
}

/// Appends a number with at least `width` digits.
pub(super) fn write_padded(value: u32, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    write_i64(i64::from(value), out);
    let digits = out.len() - start;
    if digits < width {
        out.splice(start..start, std::iter::repeat_n(b'0', width - digits));
    }
}
