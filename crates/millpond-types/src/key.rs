//! Index keys: byte strings whose byte order is SQL's order of the columns that they encode.
//!
//! Each column is a flag byte and, unless NULL, its value:
//!
//! ```text
//! flag        0x00 NULL (nulls first)    0x01 a value follows    0x02 NULL (nulls last)
//! boolean     0 or 1
//! integers    big-endian with the sign bit flipped; dates and time stamps likewise
//! floats      big-endian bits; negative ones complemented, others with the sign bit flipped;
//!             -0 as 0, every NaN as the one above all
//! numeric     class: 1 -Infinity, 2 negative, 3 zero, 4 positive, 5 Infinity, 6 NaN; for 2 and 4
//!             then the weight (u16 big-endian, biased), digit pairs (value + 1, a byte each,
//!             without trailing zeros), 0x00; all complemented when negative
//! strings     each 0x00 as 0x00 0xff, then 0x00 0x00; char(n) without trailing spaces
//! others      as `other` has them
//! ```
//!
//! A descending column's value bytes are complemented, but not its flag, which itself says where
//! NULLs go. No encoded value is a prefix of another, so columns are independent. No flag byte is
//! 0xff, so a key's prefix followed by 0xff ([`AFTER`]) is above every key with that prefix.

mod prefix;

pub use prefix::first_bytes;

use super::string_key::encode_string;
use super::{DataType, Datum, Int, IntWidth, numeric, other};

/// Appended to a prefix of a key, this byte gives an upper bound of all keys with that prefix.
pub const AFTER: u8 = 0xff;
const NULL_FIRST: u8 = 0x00;
const NOT_NULL: u8 = 0x01;
const NULL_LAST: u8 = 0x02;

/// How one column of an index is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyOrder {
    /// Largest first.
    pub descending: bool,
    /// NULLs before all values. PostgreSQL's default is true for a descending column only.
    pub nulls_first: bool,
}

impl KeyOrder {
    /// `ASC NULLS LAST`, the default.
    pub const ASC: Self = Self { descending: false, nulls_first: false };
    /// `DESC NULLS FIRST`, what `DESC` alone means.
    pub const DESC: Self = Self { descending: true, nulls_first: true };
}

impl Default for KeyOrder {
    fn default() -> Self {
        Self::ASC
    }
}

/// A value that is not of the type of its index column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("value of key column {column} is not of the column's type {expected}")]
pub struct WrongKeyType {
    /// Counted from 0.
    pub column: usize,
    /// The column's type.
    pub expected: DataType,
}

/// One end of a range over a key column.
#[derive(Clone, Copy, Debug)]
pub struct RangeEnd<'a> {
    /// Never NULL: a comparison with NULL selects nothing, so the caller does not scan.
    pub value: Datum<'a>,
    /// Whether the value itself is in the range.
    pub inclusive: bool,
}

/// What the column behind the equal ones may be, in a range of keys.
#[derive(Clone, Copy, Debug)]
pub enum NextColumn<'a> {
    /// Any value, or NULL.
    Any,
    /// A value between two ends; without any end, any value. NULL is never in a range of values.
    Value {
        /// The least value.
        from: Option<RangeEnd<'a>>,
        /// The greatest value.
        to: Option<RangeEnd<'a>>,
    },
    /// A string that begins with this one, which holds no zero byte.
    Prefix(&'a str),
}

/// The key columns of an index: encodes keys, and the bounds of scans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLayout {
    columns: Box<[(DataType, KeyOrder)]>,
}

impl KeyLayout {
    /// A layout over columns of these types and orders.
    pub fn new(columns: impl IntoIterator<Item = (DataType, KeyOrder)>) -> Self {
        Self { columns: columns.into_iter().collect() }
    }

    /// Types and orders of the key's columns.
    pub fn columns(&self) -> &[(DataType, KeyOrder)] {
        &self.columns
    }

    /// Appends the key of these values, which may be fewer than the key's columns (a prefix).
    #[inline]
    pub fn encode(&self, values: &[Datum<'_>], out: &mut Vec<u8>) -> Result<(), WrongKeyType> {
        for (column, value) in values.iter().enumerate() {
            self.encode_column(column, value, out)?;
        }
        Ok(())
    }

    /// Appends one column of a key.
    #[inline]
    pub fn encode_column(
        &self,
        column: usize,
        value: &Datum<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WrongKeyType> {
        let &(expected, order) =
            self.columns.get(column).ok_or(WrongKeyType { column, expected: DataType::Bool })?;
        if value.is_null() {
            out.push(if order.nulls_first { NULL_FIRST } else { NULL_LAST });
            return Ok(());
        }
        out.push(NOT_NULL);
        let start = out.len();
        encode_value(value, expected, out).ok_or(WrongKeyType { column, expected })?;
        if order.descending {
            complement(&mut out[start..]);
        }
        Ok(())
    }

    /// Writes the half-open range `lower <= key < upper` of the keys that match. Their first
    /// columns equal `equal`, where NULL equals NULL, and their next column is what `next` says, in
    /// SQL's order, whatever the index's order.
    pub fn range(
        &self,
        equal: &[Datum<'_>],
        next: NextColumn<'_>,
        lower: &mut Vec<u8>,
        upper: &mut Vec<u8>,
    ) -> Result<(), WrongKeyType> {
        lower.clear();
        upper.clear();
        self.encode(equal, lower)?;
        upper.extend_from_slice(lower);
        let column = equal.len();
        let descending = self.columns.get(column).is_some_and(|(_, order)| order.descending);
        let (from, to) = match next {
            NextColumn::Value { from, to } => (from, to),
            NextColumn::Any => {
                upper.push(AFTER);
                return Ok(());
            }
            NextColumn::Prefix(text) => {
                lower.push(NOT_NULL);
                let start = lower.len();
                lower.extend_from_slice(text.as_bytes());
                if descending {
                    complement(&mut lower[start..]);
                }
                upper.extend_from_slice(&lower[start - 1..]);
                // A descending string ends with two such bytes itself, before the next flag.
                upper.extend_from_slice(&[AFTER; 3]);
                return Ok(());
            }
        };
        let (low, high) = if descending { (to, from) } else { (from, to) };
        match low {
            None => lower.push(NOT_NULL),
            Some(end) => {
                self.encode_column(column, &end.value, lower)?;
                if !end.inclusive {
                    lower.push(AFTER);
                }
            }
        }
        match high {
            // Values only: NULLs are never in a range.
            None => upper.push(NOT_NULL + 1),
            Some(end) => {
                self.encode_column(column, &end.value, upper)?;
                if end.inclusive {
                    upper.push(AFTER);
                }
            }
        }
        Ok(())
    }
}

fn complement(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

#[inline(always)]
fn encode_value(value: &Datum<'_>, ty: DataType, out: &mut Vec<u8>) -> Option<()> {
    match (ty, *value) {
        (DataType::Bool, Datum::Bool(v)) => out.push(u8::from(v)),
        (DataType::Int2, Datum::Int2(v)) => {
            out.extend_from_slice(&((v as u16) ^ 1 << 15).to_be_bytes());
        }
        (DataType::Int4, Datum::Int4(v)) | (DataType::Date, Datum::Date(v)) => {
            out.extend_from_slice(&((v as u32) ^ 1 << 31).to_be_bytes());
        }
        (DataType::Int8 | DataType::Oid, Datum::Int8(v))
        | (DataType::Timestamp(_), Datum::Timestamp(v))
        | (DataType::Timestamptz(_), Datum::Timestamptz(v)) => {
            out.extend_from_slice(&((v as u64) ^ 1 << 63).to_be_bytes());
        }
        (DataType::Float4, Datum::Float4(v)) => {
            let bits = if v.is_nan() { 0x7fff_ffff } else { (v + 0.0).to_bits() };
            let ordered = if bits >> 31 != 0 { !bits } else { bits | 1 << 31 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        (DataType::Float8, Datum::Float8(v)) => {
            let bits = if v.is_nan() { 0x7fff_ffff_ffff_ffff } else { (v + 0.0).to_bits() };
            let ordered = if bits >> 63 != 0 { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        (DataType::Numeric { .. }, Datum::Numeric(v)) => numeric::encode_key(v, out),
        // Values of `char(n)` have no trailing spaces. A text beside one keeps its own.
        (
            DataType::Text | DataType::Varchar(_) | DataType::Name | DataType::Char(_),
            Datum::Text(v),
        ) => encode_string(v.as_bytes(), out),
        (DataType::Bytea, Datum::Bytea(v)) => encode_string(v, out),
        (DataType::Other { oid, .. }, Datum::Other(own, v)) if oid == own => {
            other::encode_key(oid, v, out)?;
        }
        _ => return None,
    }
    Some(())
}

/// Appends one column of a key for a sort: as an index over a column of the value's own type has
/// it. Values of a type without an order are all equal.
#[inline]
pub fn encode_sort_column(value: &Datum<'_>, order: KeyOrder, out: &mut Vec<u8>) {
    let int = match *value {
        Datum::Null => {
            return out.push(if order.nulls_first { NULL_FIRST } else { NULL_LAST });
        }
        Datum::Int4(v) => Some((v.into(), IntWidth::Four)),
        Datum::Int8(v) => Some((v, IntWidth::Eight)),
        _ => None,
    };
    if let Some((value, width)) = int {
        return encode_sort_int(Int { value, width }, order, out);
    }
    out.push(NOT_NULL);
    let start = out.len();
    if encode_any(value, out).is_none() {
        out.truncate(start);
    }
    if order.descending {
        complement(out.get_mut(start..).unwrap_or_default());
    }
}

/// [`encode_sort_column`] for an integer. It is written in one piece.
#[inline]
pub fn encode_sort_int(int: Int, order: KeyOrder, out: &mut Vec<u8>) {
    let flip = if order.descending { u64::MAX } else { 0 };
    match int.width {
        IntWidth::Two => {
            let [a, b] = (int.value as u16 ^ 1 << 15 ^ flip as u16).to_be_bytes();
            out.extend_from_slice(&[NOT_NULL, a, b]);
        }
        IntWidth::Four => {
            let [a, b, c, d] = (int.value as u32 ^ 1 << 31 ^ flip as u32).to_be_bytes();
            out.extend_from_slice(&[NOT_NULL, a, b, c, d]);
        }
        IntWidth::Eight => {
            let [a, b, c, d, e, f, g, h] = (int.value as u64 ^ 1 << 63 ^ flip).to_be_bytes();
            out.extend_from_slice(&[NOT_NULL, a, b, c, d, e, f, g, h]);
        }
    }
}

/// Appends a value in the form of its own type; `None` if the type has no order.
#[inline(never)]
pub(super) fn encode_any(value: &Datum<'_>, out: &mut Vec<u8>) -> Option<()> {
    let ty = match value {
        Datum::Null => return None,
        Datum::Bool(_) => DataType::Bool,
        Datum::Int2(_) => DataType::Int2,
        Datum::Int4(_) => DataType::Int4,
        Datum::Int8(_) => DataType::Int8,
        Datum::Float4(_) => DataType::Float4,
        Datum::Float8(_) => DataType::Float8,
        Datum::Numeric(_) => DataType::Numeric { precision_scale: None },
        Datum::Text(_) => DataType::Text,
        Datum::Bytea(_) => DataType::Bytea,
        Datum::Date(_) => DataType::Date,
        Datum::Timestamp(_) => DataType::Timestamp(None),
        Datum::Timestamptz(_) => DataType::Timestamptz(None),
        Datum::Other(oid, _) => DataType::Other { oid: *oid, typmod: -1 },
    };
    encode_value(value, ty, out)
}
