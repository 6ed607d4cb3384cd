//! Values of type `record`: fields, each with a name, a type and a value.
//!
//! ```text
//! per field: length of the name (u16), name, type (u32),
//!            length of the value (u32) or `NULL_LENGTH`, its bytes
//! ```
//!
//! Numbers are little-endian.

use super::Datum;
use super::key::encode_any;

/// Instead of the length of a value that is NULL.
const NULL_LENGTH: u32 = u32::MAX;

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// PostgreSQL's `pg_type.oid` of its type.
    pub type_oid: u32,
    /// Its value.
    pub value: Datum<'a>,
}

/// The fields of a record's bytes, in order. It ends where the bytes are damaged.
pub fn fields(bytes: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let (name, after) = after.split_at_checked(u16::from_le_bytes(*length).into())?;
        let (type_oid, after) = after.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        let type_oid = u32::from_le_bytes(*type_oid);
        let length = u32::from_le_bytes(*length);
        let (value, after) = match length {
            NULL_LENGTH => (Datum::Null, after),
            length => {
                let (bytes, after) = after.split_at_checked(length as usize)?;
                (Datum::from_bytes(type_oid, bytes)?, after)
            }
        };
        rest = after;
        Some(Field { name: std::str::from_utf8(name).ok()?, type_oid, value })
    })
}

/// Appends a field to a record's bytes. `None` if it is too long.
pub fn push_field(field: &Field<'_>, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&u16::try_from(field.name.len()).ok()?.to_le_bytes());
    out.extend_from_slice(field.name.as_bytes());
    out.extend_from_slice(&field.type_oid.to_le_bytes());
    let start = out.len();
    out.extend_from_slice(&NULL_LENGTH.to_le_bytes());
    if field.value.is_null() {
        return Some(());
    }
    field.value.push_bytes(out);
    let length =
        u32::try_from(out.len() - start - 4).ok().filter(|&length| length != NULL_LENGTH)?;
    out.get_mut(start..start + 4)?.copy_from_slice(&length.to_le_bytes());
    Some(())
}

/// Fields in order, NULLs last. Names do not count.
pub(super) fn encode_key(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    const END: u8 = 0;
    const VALUE: u8 = 1;
    const NULL: u8 = 2;
    for field in fields(bytes) {
        if field.value.is_null() {
            out.push(NULL);
        } else {
            out.push(VALUE);
            encode_any(&field.value, out)?;
        }
    }
    out.push(END);
    Some(())
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::super::other::{RECORD, compare};
    use super::*;

    fn record(values: &[Option<i32>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in values {
            let value = value.map_or(Datum::Null, Datum::Int4);
            push_field(&Field { name: "f", type_oid: 23, value }, &mut bytes).unwrap();
        }
        bytes
    }

    #[test]
    fn fields_come_back() {
        let bytes = record(&[Some(1), None]);
        let read: Vec<_> = fields(&bytes).collect();
        let field = |value| Field { name: "f", type_oid: 23, value };
        assert_eq!(read, [field(Datum::Int4(1)), field(Datum::Null)]);
        // Damage ends the record, and nothing panics.
        for end in 0..bytes.len() {
            assert!(fields(&bytes[..end]).count() < 2);
        }
    }

    #[test]
    fn records_compare_field_by_field() {
        let compare =
            |a: &[Option<i32>], b: &[Option<i32>]| compare(RECORD, &record(a), &record(b));
        assert_eq!(compare(&[Some(1), Some(2)], &[Some(1), Some(2)]), Some(Ordering::Equal));
        assert_eq!(compare(&[Some(1), Some(-2)], &[Some(1), Some(2)]), Some(Ordering::Less));
        assert_eq!(compare(&[None], &[Some(i32::MAX)]), Some(Ordering::Greater));
    }
}
