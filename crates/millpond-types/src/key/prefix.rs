//! How keys begin: where their columns end, and their first bytes.

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

/// The first eight bytes of a key as a number, with zeros for those that it lacks. Of two keys with
/// different numbers, the one with the smaller number is the smaller. So most comparisons of keys
/// need no more.
#[inline]
pub fn first_bytes(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            key.iter().zip((0..8).rev()).fold(0, |all, (&b, at)| all | u64::from(b) << (8 * at))
        }
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

#[cfg(test)]
mod tests {
    use super::first_bytes;

    #[test]
    fn first_bytes_order_keys_as_all_bytes_do() {
        let keys: [&[u8]; 9] = [
            b"",
            b"\x00",
            b"\x01",
            b"\x01\x00",
            b"\x01a",
            b"\x01abcdefg",
            b"\x01abcdefgh",
            b"\x01abcdefi",
            b"\xff",
        ];
        for (place, key) in keys.iter().enumerate() {
            for later in &keys[place..] {
                assert!(first_bytes(key) <= first_bytes(later), "{key:?} and {later:?}");
            }
        }
        assert!(first_bytes(keys[7]) > first_bytes(keys[6]), "the eighth byte counts");
    }
}
