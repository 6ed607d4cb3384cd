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

/// Blanks may stand before either number.
pub(super) fn parse(text: &str) -> Result<Value> {
    read(text).map(|(block, number)| value(block, number)).ok_or_else(|| {
        DataException::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type tid: \"{text}\""),
        )
    })
}

fn read(text: &str) -> Option<(u32, u16)> {
    let (block, rest) = text.strip_prefix('(')?.split_once(',')?;
    let (number, _) = rest.split_once(')')?;
    Some((block.trim_start().parse().ok()?, number.trim_start().parse().ok()?))
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
        ] {
            let Value::Other(TID, bytes) = parse(text).unwrap() else { panic!("{text}") };
            let mut out = Vec::new();
            write(&bytes, &mut out);
            assert_eq!(out, printed.as_bytes(), "{text}");
        }
        for text in ["", "0,1", "(0,1", "(,1)", "(0,)", "(4294967296,1)", "(0,65536)", "(0,1,2)"] {
            parse(text).unwrap_err();
        }
    }
}
