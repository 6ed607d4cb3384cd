//! Columns of integers, read without a [`Datum`](crate::Datum).

use super::{ColumnOffsets, Header, TupleLayout};
use crate::DataType;

/// An integer of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int {
    /// The integer.
    pub value: i64,
    /// The width of its type.
    pub width: IntWidth,
}

/// The bytes of a type of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntWidth {
    /// `smallint`
    Two,
    /// `integer`
    Four,
    /// `bigint`
    Eight,
}

impl TupleLayout {
    /// A column of integers that is not NULL, if columns of variable width come behind it. In a row
    /// with NULLs only one of the first eight is found. It is found faster than by
    /// [`TupleLayout::column`].
    #[inline]
    pub fn int(&self, tuple: &[u8], column: usize) -> Option<Int> {
        let header = Header::read(tuple)?;
        let direct = self.direct.get(column)?;
        if column >= header.columns || header.is_null(tuple, column)? {
            return None;
        }
        let rest = tuple.get(self.direct_offset(*direct, header, tuple, column)?..)?;
        let (value, width) = match direct.ty {
            DataType::Int2 => (i16::from_le_bytes(*rest.first_chunk()?).into(), IntWidth::Two),
            DataType::Int4 => (i32::from_le_bytes(*rest.first_chunk()?).into(), IntWidth::Four),
            DataType::Int8 => (i64::from_le_bytes(*rest.first_chunk()?), IntWidth::Eight),
            _ => return None,
        };
        Some(Int { value, width })
    }

    /// A column of integers, if it is one and not NULL.
    #[inline]
    pub fn int_noting(&self, tuple: &[u8], offsets: &ColumnOffsets, column: usize) -> Option<Int> {
        self.int(tuple, column).or_else(|| self.int_behind(tuple, offsets, column))
    }

    /// The same for a column of which its row says where it is.
    #[inline(never)]
    fn int_behind(&self, tuple: &[u8], offsets: &ColumnOffsets, column: usize) -> Option<Int> {
        let width = match *self.types.get(column)? {
            DataType::Int2 => IntWidth::Two,
            DataType::Int4 => IntWidth::Four,
            DataType::Int8 => IntWidth::Eight,
            _ => return None,
        };
        let (_, bytes) = self.stored_value(tuple, offsets, column)?;
        let value = match width {
            IntWidth::Two => i16::from_le_bytes(*bytes.first_chunk()?).into(),
            IntWidth::Four => i32::from_le_bytes(*bytes.first_chunk()?).into(),
            IntWidth::Eight => i64::from_le_bytes(*bytes.first_chunk()?),
        };
        Some(Int { value, width })
    }
}
