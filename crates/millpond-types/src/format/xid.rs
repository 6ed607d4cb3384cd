//! `xid`, `cid` and `xid8`, the numbers of transactions and of commands within one, as text.

use crate::Value;
use crate::error::{DataException, Result};
use crate::other::{XID, XID8};
use crate::sqlstate::SqlState;

pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    if let Ok(number) = bytes.try_into().map(u32::from_be_bytes) {
        out.extend_from_slice(number.to_string().as_bytes());
    }
}

pub(super) fn write_xid8(bytes: &[u8], out: &mut Vec<u8>) {
    if let Some(number) = number_of(bytes) {
        out.extend_from_slice(number.to_string().as_bytes());
    }
}

/// A number of 32 bits, which blanks may stand around: in octal digits behind a 0, hexadecimal ones
/// behind 0x. One below zero counts from the end.
pub(super) fn parse(oid: u32, text: &str) -> Result<Value> {
    let number = read(text).and_then(|(is_negative, number)| {
        let number = u32::try_from(number).ok()?;
        Some(if is_negative { number.wrapping_neg() } else { number })
    });
    let name = if oid == XID { "xid" } else { "cid" };
    number.map(|number| value(oid, number)).ok_or_else(|| invalid(name, text))
}

/// A number of 64 bits, written as [`parse`] reads one of 32.
pub(super) fn parse_xid8(text: &str) -> Result<Value> {
    let (is_negative, number) = read(text).ok_or_else(|| invalid("xid8", text))?;
    Ok(xid8(if is_negative { number.wrapping_neg() } else { number }))
}

#[cold]
fn invalid(name: &str, text: &str) -> DataException {
    DataException::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {name}: \"{text}\""),
    )
}

/// Whether there is a minus, and the number without its sign.
fn read(text: &str) -> Option<(bool, u64)> {
    let text = text.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r'));
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (digits.get(2..)?, 16),
        [b'0', _, ..] => (digits.get(1..)?, 8),
        _ => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    Some((text.starts_with('-'), u64::from_str_radix(digits, radix).ok()?))
}

/// A number as a value of `xid` or `cid`.
pub fn value(oid: u32, number: u32) -> Value {
    Value::Other(oid, number.to_be_bytes().to_vec().into())
}

/// A transaction's whole number as a value.
pub fn xid8(number: u64) -> Value {
    Value::Other(XID8, number.to_be_bytes().to_vec().into())
}

/// The number in the bytes of an `xid8` or a `pg_lsn`.
pub fn number_of(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::other::CID;

    #[test]
    fn texts_of_numbers() {
        for (text, printed) in [
            ("0", "0"),
            (" 7 ", "7"),
            ("4294967295", "4294967295"),
            ("-1", "4294967295"),
            ("+5", "5"),
            ("010", "8"),
            ("0x1F", "31"),
        ] {
            let Value::Other(CID, bytes) = parse(CID, text).unwrap() else { panic!("{text}") };
            let mut out = Vec::new();
            write(&bytes, &mut out);
            assert_eq!(out, printed.as_bytes(), "{text}");
        }
        for text in ["", "x", "1x", "4294967296", "1.0", "08", "0x", "--1", "0x-1", "-"] {
            parse(XID, text).unwrap_err();
        }
    }

    #[test]
    fn texts_of_whole_numbers() {
        for (text, printed) in [
            ("18446744073709551615", "18446744073709551615"),
            (" -1", "18446744073709551615"),
            ("4294967296", "4294967296"),
            ("0x10", "16"),
            ("010", "8"),
        ] {
            let Value::Other(XID8, bytes) = parse_xid8(text).unwrap() else { panic!("{text}") };
            let mut out = Vec::new();
            write_xid8(&bytes, &mut out);
            assert_eq!(out, printed.as_bytes(), "{text}");
        }
        for text in ["", "x", "18446744073709551616", "1 2", "0x"] {
            parse_xid8(text).unwrap_err();
        }
    }
}
