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

/// Blanks may stand around the number.
pub(super) fn parse(oid: u32, text: &str) -> Result<Value> {
    match text.trim().parse() {
        Ok(number) => Ok(value(oid, number)),
        Err(_) => {
            let name = if oid == XID { "xid" } else { "cid" };
            Err(DataException::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type {name}: \"{text}\""),
            ))
        }
    }
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
        for (text, printed) in [("0", "0"), (" 7 ", "7"), ("4294967295", "4294967295")] {
            let Value::Other(CID, bytes) = parse(CID, text).unwrap() else { panic!("{text}") };
            let mut out = Vec::new();
            write(&bytes, &mut out);
            assert_eq!(out, printed.as_bytes(), "{text}");
        }
        for text in ["", "x", "1x", "4294967296", "1.0"] {
            parse(XID, text).unwrap_err();
        }
    }
}
