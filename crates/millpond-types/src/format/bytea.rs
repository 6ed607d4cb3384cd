//! Byte strings as text: hex and escape format.

use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

pub(super) fn write(bytes: &[u8], escape: bool, out: &mut Vec<u8>) {
    if escape {
        for &byte in bytes {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                0x20..=0x7e => out.push(byte),
                _ => out.extend([
                    b'\\',
                    b'0' + (byte >> 6),
                    b'0' + (byte >> 3 & 7),
                    b'0' + (byte & 7),
                ]),
            }
        }
        return;
    }
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\x");
    for &byte in bytes {
        out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

pub(super) fn parse(text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex),
        None => parse_escape(text.as_bytes()).ok_or_else(|| {
            DataException::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type bytea",
            )
        }),
    }
}

/// Bytes of pairs of hexadecimal digits, between which spaces may stand.
pub fn parse_hex(text: &str) -> Result<Vec<u8>> {
    let invalid = |message: String| DataException::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for c in text.chars() {
        if high.is_none() && matches!(c, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let digit =
            c.to_digit(16).ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{c}\"")))?
                as u8;
        match high.take() {
            None => high = Some(digit),
            Some(high) => out.push(high << 4 | digit),
        }
    }
    if high.is_some() {
        return Err(invalid("invalid hexadecimal data: odd number of digits".to_owned()));
    }
    Ok(out)
}

/// Bytes of the escape format: a backslash before another or before three octal digits, and every
/// other byte as it is. `None`: it is malformed.
pub fn parse_escape(mut text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    while let Some((&byte, rest)) = text.split_first() {
        if byte != b'\\' {
            out.push(byte);
            text = rest;
        } else if rest.first() == Some(&b'\\') {
            out.push(b'\\');
            text = &rest[1..];
        } else {
            let (digits, rest) = rest.split_at_checked(3)?;
            let [high @ b'0'..=b'3', mid @ b'0'..=b'7', low @ b'0'..=b'7'] = *digits else {
                return None;
            };
            out.push((high - b'0') << 6 | (mid - b'0') << 3 | (low - b'0'));
            text = rest;
        }
    }
    Some(out)
}
