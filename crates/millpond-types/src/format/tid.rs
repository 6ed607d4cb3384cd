//! `tid`, the place of a row, as text: `(block,number)`.

use crate::Value;
use crate::error::{DataException, Result};
use crate::other::TID;
use crate::sqlstate::SqlState;

pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    if let Some((block, number)) = parts(bytes) {
        out.extend_from_slice(format!("({block},{number})").as_bytes());
    }
}

fn parts(bytes: &[u8]) -> Option<(u32, u16)> {
    let (block, number) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*block), u16::from_be_bytes(number.try_into().ok()?)))
}

/// As in PostgreSQL, what stands before the parenthesis and behind the other one is passed over,
/// and a number may be left out.
pub(super) fn parse(text: &str) -> Result<Value> {
    read(text).map(|(block, number)| value(block, number)).ok_or_else(|| {
        DataException::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type tid: \"{text}\""),
        )
    })
}

fn read(text: &str) -> Option<(u32, u16)> {
    let inside = text.get(..text.find(')').unwrap_or(text.len()))?;
    // The first number begins behind a parenthesis or a comma, the second behind a comma.
    let first = inside.find(['(', ','])? + 1;
    let second = first + inside.get(first..)?.find(',')? + 1;
    let (block, rest) = unsigned_long(text.get(first..)?)?;
    let (number, end) = unsigned_long(text.get(second..)?)?;
    if !rest.starts_with(',') || !end.starts_with(')') {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked below")]
    let own = block as u32;
    // A number below zero counts from the end.
    let fits = block == u64::from(own) || block == i64::from(own.cast_signed()).cast_unsigned();
    Some((Some(own).filter(|_| fits)?, u16::try_from(number).ok()?))
}

/// A number as C's `strtoul` reads it, which takes a sign, and what follows. Without digits it is
/// 0, and all of the text follows.
fn unsigned_long(text: &str) -> Option<(u64, &str)> {
    let rest = text.trim_start_matches(|c: char| matches!(c, ' ' | '\t'..='\r'));
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return Some((0, text));
    }
    let number: u64 = digits.get(..length)?.parse().ok()?;
    let number = if rest.starts_with('-') { number.wrapping_neg() } else { number };
    Some((number, digits.get(length..)?))
}

/// The bytes of a value as PostgreSQL lays it out: three little-endian numbers of 16 bits, of which
/// the first two are the block's halves.
pub fn image(bytes: &[u8]) -> Option<[u8; 6]> {
    let (block, number) = parts(bytes)?;
    let ([low_0, low_1, high_0, high_1], [number_0, number_1]) =
        (block.to_le_bytes(), number.to_le_bytes());
    Some([high_0, high_1, low_0, low_1, number_0, number_1])
}

/// The place of a row as a value.
pub fn value(block: u32, number: u16) -> Value {
    let mut bytes = block.to_be_bytes().to_vec();
    bytes.extend_from_slice(&number.to_be_bytes());
    Value::Other(TID, bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_places() {
        for (text, printed) in [
            ("(0,1)", "(0,1)"),
            ("( 7, 12)", "(7,12)"),
            ("(4294967295,65535)", "(4294967295,65535)"),
            ("(1,2)x", "(1,2)"),
            ("(-1,+1)", "(4294967295,1)"),
            ("(-2147483648,1)", "(2147483648,1)"),
            (" x(,)", "(0,0)"),
            ("1,2,3)", "(2,3)"),
        ] {
            let Value::Other(TID, bytes) = parse(text).unwrap() else { panic!("{text}") };
            let mut out = Vec::new();
            write(&bytes, &mut out);
            assert_eq!(out, printed.as_bytes(), "{text}");
        }
        for text in ["", "0,1", "(0,1", "()", "(4294967296,1)", "(0,65536)", "(0,1,2)"] {
            parse(text).unwrap_err();
        }
        for text in ["(-2147483649,1)", "(0,-1)", "(1 ,2)", "(- 1,1)", "((1,2)", "é)", "(é,1)"] {
            parse(text).unwrap_err();
        }
    }
}
