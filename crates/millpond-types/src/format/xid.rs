//! `xid` and `cid`, the numbers of transactions and of commands within one, as text.

use crate::Value;
use crate::error::{DataException, Result};
use crate::other::XID;
use crate::sqlstate::SqlState;

pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    if let Ok(number) = bytes.try_into().map(u32::from_be_bytes) {
        out.extend_from_slice(number.to_string().as_bytes());
    }
}

/// A number of 32 bits, which blanks may stand around: in octal digits behind a 0, hexadecimal ones
/// behind 0x. One below zero counts from the end.
pub(super) fn parse(oid: u32, text: &str) -> Result<Value> {
    match read(text.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r'))) {
        Some(number) => Ok(value(oid, number)),
        None => {
            let name = if oid == XID { "xid" } else { "cid" };
            Err(DataException::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type {name}: \"{text}\""),
            ))
        }
    }
}

fn read(text: &str) -> Option<u32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (digits.get(2..)?, 16),
        [b'0', _, ..] => (digits.get(1..)?, 8),
        _ => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = u32::from_str_radix(digits, radix).ok()?;
    Some(if text.starts_with('-') { number.wrapping_neg() } else { number })
}

/// A number as a value of one of the two types.
pub fn value(oid: u32, number: u32) -> Value {
    Value::Other(oid, number.to_be_bytes().to_vec().into())
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
}
