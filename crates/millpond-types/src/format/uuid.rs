//! `uuid` as text.

use crate::other::UUID;

use crate::Value;
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
}

/// Hexadecimal digits, with a hyphen after any group of four, perhaps in braces.
pub(super) fn parse(text: &str) -> Result<Value> {
    read(text).map(|bytes| Value::Other(UUID, bytes.into())).ok_or_else(|| {
        DataException::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type uuid: \"{text}\""),
        )
    })
}

fn read(text: &str) -> Option<[u8; 16]> {
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => text,
    };
    let mut digits = inner.chars().peekable();
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().enumerate() {
        let high = digits.next()?.to_digit(16)?;
        let low = digits.next()?.to_digit(16)?;
        *byte = (high << 4 | low) as u8;
        if place % 2 == 1 && place < 15 {
            digits.next_if_eq(&'-');
        }
    }
    digits.next().is_none().then_some(bytes)
}
