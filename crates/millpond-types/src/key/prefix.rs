//! Where the columns of a key end.

use super::{KeyLayout, NOT_NULL};
use crate::DataType;

/// The classes of numbers whose digits follow.
const NEGATIVE: u8 = 2;
const POSITIVE: u8 = 4;

impl KeyLayout {
    /// The length in bytes of a key's first columns. `None` if the key does not have them.
    pub fn prefix_length(&self, key: &[u8], columns: usize) -> Option<usize> {
        let mut rest = key;
        for (ty, order) in self.columns.get(..columns)? {
            let (flag, value) = rest.split_first()?;
            let length = match *flag {
                NOT_NULL => value_length(*ty, value, order.descending)?,
                _ => 0,
            };
            rest = value.get(length..)?;
        }
        Some(key.len() - rest.len())
    }
}

/// How many of the bytes are a value's. `is_complement`: they are the complement of what the form
/// says.
fn value_length(ty: DataType, bytes: &[u8], is_complement: bool) -> Option<usize> {
    let flip = if is_complement { 0xff } else { 0 };
    Some(match ty {
        DataType::Bool => 1,
        DataType::Int2 => 2,
        DataType::Int4 | DataType::Date | DataType::Float4 => 4,
        DataType::Int8
        | DataType::Oid
        | DataType::Timestamp(_)
        | DataType::Timestamptz(_)
        | DataType::Float8 => 8,
        DataType::Numeric { .. } => {
            let end = match bytes.first()? ^ flip {
                NEGATIVE => 0xff,
                POSITIVE => 0,
                _ => return Some(1),
            };
            let digits = bytes.get(3..)?;
            digits.iter().position(|byte| byte ^ flip == end)? + 4
        }
        DataType::Text
        | DataType::Varchar(_)
        | DataType::Name
        | DataType::Char(_)
        | DataType::Bytea => {
            let mut at = 0;
            loop {
                at += bytes.get(at..)?.iter().position(|byte| byte ^ flip == 0)? + 2;
                // A zero byte within a value is followed by a byte that is not zero.
                if bytes.get(at - 1)? ^ flip == 0 {
                    break at;
                }
            }
        }
        DataType::Other { .. } => return None,
    })
}
