//! `pg_lsn`, a position in the log, as text: its two halves in hexadecimal, `high/low`.

use super::xid::number_of;
use crate::Value;
use crate::error::{DataException, Result};
use crate::other::PG_LSN;
use crate::sqlstate::SqlState;

pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    if let Some(position) = number_of(bytes) {
        let low = position & u64::from(u32::MAX);
        out.extend_from_slice(format!("{:X}/{low:X}", position >> 32).as_bytes());
    }
}

pub(super) fn parse(text: &str) -> Result<Value> {
    read(text).map(value).ok_or_else(|| {
        DataException::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type pg_lsn: \"{text}\""),
        )
    })
}

fn read(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    Some(u64::from(half(high)?) << 32 | u64::from(half(low)?))
}

/// Up to eight digits, without a sign.
fn half(digits: &str) -> Option<u32> {
    const MOST: usize = 8;
    if digits.len() > MOST || digits.starts_with('+') {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// A position as a value.
pub fn value(position: u64) -> Value {
    Value::Other(PG_LSN, position.to_be_bytes().to_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_positions() {
        for (text, printed) in [
            ("0/0", "0/0"),
            ("16/B374D848", "16/B374D848"),
            ("00000016/0000000a", "16/A"),
            ("FFFFFFFF/ffffffff", "FFFFFFFF/FFFFFFFF"),
        ] {
            let Value::Other(PG_LSN, bytes) = parse(text).unwrap() else { panic!("{text}") };
            let mut out = Vec::new();
            write(&bytes, &mut out);
            assert_eq!(out, printed.as_bytes(), "{text}");
        }
        for text in ["", "/", "0/", "/0", " 0/0", "0/0 ", "0/000000001", "+1/0", "0/-1", "g/0", "1"]
        {
            parse(text).unwrap_err();
        }
    }
}
