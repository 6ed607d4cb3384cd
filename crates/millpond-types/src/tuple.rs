//! Rows as bytes: what a table stores after the heap's tuple header.
//!
//! ```text
//! 0..2    u16 LE: number of columns << 1 | has NULLs
//! 2..     with NULLs only: one bit a column, set when NULL, low bit first
//! then    the values that are not NULL in column order, without padding:
//!         fixed-width types little-endian (bool as 0 or 1);
//!         others a length, then as many bytes. A length below 128 takes one byte, a longer
//!         one two: 0x80 | high 7 bits, then the low 8 bits.
//! ```
//!
//! If all columns before a column have fixed width and the row has no NULLs, the column is found
//! directly. Otherwise it is found by skipping its predecessors without decoding them. A row with
//! fewer columns than its table was written before the others were added: they read as NULL. Bytes
//! are checked as they are read: a damaged row is an error, never a panic.

mod column_offsets;
mod int;
mod narrow;

pub use column_offsets::ColumnOffsets;
pub use int::{Int, IntWidth};

use super::{DataType, Datum, NumericRef};

const HEADER: usize = 2;
const LONG_LENGTH: u8 = 0x80;
/// The longest value that a row can hold.
pub const MAX_VALUE_BYTES: usize = 0x7fff;
/// PostgreSQL's limit too.
pub const MAX_COLUMNS: usize = 1600;

/// A stored row that can't be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stored row is damaged at column {column} of {columns}")]
pub struct DamagedTuple {
    /// Counted from 0.
    pub column: usize,
    /// How many columns the table has.
    pub columns: usize,
}

/// Why a row can't be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A value's type is not the column's.
    #[error("value of column {column} is not of the column's type {expected}")]
    WrongType {
        /// Counted from 0.
        column: usize,
        /// The column's type.
        expected: DataType,
    },
    /// The number of values is not the number of columns.
    #[error("row has {given} values for {columns} columns")]
    WrongCount {
        /// Values given.
        given: usize,
        /// Columns of the table.
        columns: usize,
    },
    /// A value is longer than a row can be.
    #[error("value of column {column} takes {bytes} bytes, more than a row can hold")]
    TooLong {
        /// Counted from 0.
        column: usize,
        /// Its length.
        bytes: usize,
    },
}

/// How the rows of one table are laid out.
#[derive(Debug, Clone)]
pub struct TupleLayout {
    types: Box<[DataType]>,
    /// The columns up to and including the first one of variable width.
    direct: Box<[DirectColumn]>,
    /// How many bytes a value takes; 0 for a type of variable width.
    widths: Box<[u8]>,
}

/// A column that is found without a look at the values before it, which have fixed widths.
#[derive(Debug, Clone, Copy)]
struct DirectColumn {
    ty: DataType,
    /// Counts from the row's start, in a row without NULLs.
    offset: u16,
    /// How many bytes a NULL leaves out. The last of these columns may have any width, and no
    /// column is found behind it.
    width: u16,
}

impl TupleLayout {
    /// The layout of rows with these column types.
    pub fn new(types: impl IntoIterator<Item = DataType>) -> Self {
        let types: Box<[DataType]> = types.into_iter().collect();
        let mut direct = Vec::new();
        let mut offset = HEADER as u16;
        for &ty in &types {
            let width = ty.fixed_width().and_then(|width| u16::try_from(width).ok());
            direct.push(DirectColumn { ty, offset, width: width.unwrap_or(0) });
            let Some(next) = width.and_then(|width| offset.checked_add(width)) else { break };
            offset = next;
        }
        let width = |ty: &DataType| ty.fixed_width().and_then(|width| u8::try_from(width).ok());
        let widths = types.iter().map(|ty| width(ty).unwrap_or(0)).collect();
        Self { types, direct: direct.into(), widths }
    }

    /// The columns' types.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// Appends the bytes of a row.
    pub fn encode(&self, row: &[Datum<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let columns = self.types.len();
        if row.len() != columns || columns > MAX_COLUMNS {
            return Err(EncodeError::WrongCount { given: row.len(), columns });
        }
        let has_nulls = row.iter().any(Datum::is_null);
        let header = (columns as u16) << 1 | u16::from(has_nulls);
        out.extend_from_slice(&header.to_le_bytes());
        if has_nulls {
            let bitmap = out.len();
            out.resize(bitmap + columns.div_ceil(8), 0);
            for (column, _) in row.iter().enumerate().filter(|(_, datum)| datum.is_null()) {
                out[bitmap + column / 8] |= 1 << (column % 8);
            }
        }
        for (column, (datum, ty)) in row.iter().zip(&self.types).enumerate() {
            encode_value(column, datum, *ty, out)?;
        }
        Ok(())
    }

    /// One column of a row, without decoding the others.
    #[inline]
    pub fn column<'t>(&self, tuple: &'t [u8], column: usize) -> Result<Datum<'t>, DamagedTuple> {
        match self.direct_column(tuple, column) {
            Some(datum) => Ok(datum),
            None => self.any_column(tuple, column),
        }
    }

    /// A column of fixed offset. `None` is not the end: the row may be of another form or damaged.
    #[inline]
    fn direct_column<'t>(&self, tuple: &'t [u8], column: usize) -> Option<Datum<'t>> {
        let direct = self.direct.get(column)?;
        let header = Header::read(tuple)?;
        if column >= header.columns {
            return None;
        }
        if header.has_nulls && column < 8 && header.is_null(tuple, column)? {
            return Some(Datum::Null);
        }
        let offset = self.direct_offset(*direct, header, tuple, column)?;
        match direct.ty {
            // Most columns are of these types, and to call the rest takes as long as to read them.
            DataType::Int4 => Some(Datum::Int4(i32::from_le_bytes(*chunk(tuple, offset)?))),
            DataType::Int8 => Some(Datum::Int8(i64::from_le_bytes(*chunk(tuple, offset)?))),
            ty => read_value(tuple, offset, ty).map(|(datum, _)| datum),
        }
    }

    /// Where a column of fixed offset begins that is not NULL. `None`: the row has NULLs, and the
    /// column is not among the first eight.
    #[inline]
    fn direct_offset(
        &self,
        direct: DirectColumn,
        header: Header,
        tuple: &[u8],
        column: usize,
    ) -> Option<usize> {
        let offset = usize::from(direct.offset);
        if !header.has_nulls {
            return Some(offset);
        }
        if column >= 8 {
            return None;
        }
        let before = *tuple.get(HEADER)? & ((1 << column) - 1);
        (offset + header.values() - HEADER).checked_sub(self.left_out(before)?)
    }

    /// How many bytes NULLs among the first eight columns leave out.
    #[inline]
    fn left_out(&self, mut nulls: u8) -> Option<usize> {
        let mut left_out = 0;
        while nulls != 0 {
            left_out += usize::from(self.direct.get(nulls.trailing_zeros() as usize)?.width);
            nulls &= nulls - 1;
        }
        Some(left_out)
    }

    fn any_column<'t>(&self, tuple: &'t [u8], column: usize) -> Result<Datum<'t>, DamagedTuple> {
        let damaged = || DamagedTuple { column, columns: self.types.len() };
        let ty = *self.types.get(column).ok_or_else(damaged)?;
        let header = Header::read(tuple).ok_or_else(damaged)?;
        if column >= header.columns || header.is_null(tuple, column).ok_or_else(damaged)? {
            return Ok(Datum::Null);
        }
        let offset = self.offset_by_skipping(header, tuple, column).ok_or_else(damaged)?;
        read_value(tuple, offset, ty).map(|(datum, _)| datum).ok_or_else(damaged)
    }

    /// Where a column begins: those before it are skipped.
    fn offset_by_skipping(&self, header: Header, tuple: &[u8], column: usize) -> Option<usize> {
        let mut offset = header.values();
        for (before, ty) in self.types.iter().enumerate().take(column) {
            if !header.is_null(tuple, before)? {
                offset = skip_value(tuple, offset, *ty)?;
            }
        }
        Some(offset)
    }

    /// All columns of a row, in order.
    pub fn decode<'t>(
        &self,
        tuple: &'t [u8],
        mut each: impl FnMut(usize, Datum<'t>),
    ) -> Result<(), DamagedTuple> {
        self.decode_first(self.types.len(), tuple, &mut each)
    }

    /// The first `count` columns of a row, in order. The rest is not read.
    pub fn decode_first<'t>(
        &self,
        count: usize,
        tuple: &'t [u8],
        mut each: impl FnMut(usize, Datum<'t>),
    ) -> Result<(), DamagedTuple> {
        let damaged = |column| DamagedTuple { column, columns: self.types.len() };
        let header = Header::read(tuple).ok_or(damaged(0))?;
        let mut offset = header.values();
        for (column, ty) in self.types.iter().enumerate().take(count) {
            let null =
                column >= header.columns || header.is_null(tuple, column).ok_or(damaged(column))?;
            if null {
                each(column, Datum::Null);
            } else {
                let (datum, end) = read_value(tuple, offset, *ty).ok_or(damaged(column))?;
                each(column, datum);
                offset = end;
            }
        }
        Ok(())
    }

    /// Checks that a row decodes completely and that nothing follows its last value.
    pub fn verify(&self, tuple: &[u8]) -> Result<(), DamagedTuple> {
        let columns = self.types.len();
        let damaged = |column| DamagedTuple { column, columns };
        let header = Header::read(tuple).ok_or(damaged(0))?;
        if header.columns > columns {
            return Err(damaged(columns));
        }
        let mut offset = header.values();
        for (column, ty) in self.types.iter().enumerate().take(header.columns) {
            if !header.is_null(tuple, column).ok_or(damaged(column))? {
                (_, offset) = read_value(tuple, offset, *ty).ok_or(damaged(column))?;
            }
        }
        if offset == tuple.len() { Ok(()) } else { Err(damaged(columns)) }
    }
}

#[derive(Clone, Copy)]
struct Header {
    columns: usize,
    has_nulls: bool,
}

impl Header {
    #[inline]
    fn read(tuple: &[u8]) -> Option<Self> {
        let packed = u16::from_le_bytes(*tuple.first_chunk()?);
        Some(Self { columns: usize::from(packed >> 1), has_nulls: packed & 1 != 0 })
    }

    #[inline]
    fn values(self) -> usize {
        HEADER + if self.has_nulls { self.columns.div_ceil(8) } else { 0 }
    }

    #[inline]
    fn is_null(self, tuple: &[u8], column: usize) -> Option<bool> {
        if !self.has_nulls {
            return Some(false);
        }
        Some(tuple.get(HEADER + column / 8)? & 1 << (column % 8) != 0)
    }
}

fn encode_value(
    column: usize,
    datum: &Datum<'_>,
    ty: DataType,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    match (ty, *datum) {
        (_, Datum::Null) => {}
        (DataType::Bool, Datum::Bool(v)) => out.push(u8::from(v)),
        (DataType::Int2, Datum::Int2(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (DataType::Int4, Datum::Int4(v)) | (DataType::Date, Datum::Date(v)) => {
            out.extend_from_slice(&v.to_le_bytes());
        }
        (DataType::Int8, Datum::Int8(v))
        | (DataType::Timestamp(_), Datum::Timestamp(v))
        | (DataType::Timestamptz(_), Datum::Timestamptz(v)) => {
            out.extend_from_slice(&v.to_le_bytes());
        }
        (DataType::Float4, Datum::Float4(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (DataType::Float8, Datum::Float8(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (DataType::Numeric { .. }, Datum::Numeric(v)) => encode_bytes(column, v.bytes(), out)?,
        (DataType::Text | DataType::Varchar(_) | DataType::Name, Datum::Text(v)) => {
            encode_bytes(column, v.as_bytes(), out)?;
        }
        (DataType::Char(_), Datum::Text(v)) => {
            encode_bytes(column, v.trim_end_matches(' ').as_bytes(), out)?;
        }
        (DataType::Bytea, Datum::Bytea(v)) => encode_bytes(column, v, out)?,
        _ => return Err(EncodeError::WrongType { column, expected: ty }),
    }
    Ok(())
}

fn encode_bytes(column: usize, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match bytes.len() {
        length @ 0..0x80 => out.push(length as u8),
        length @ 0x80..=MAX_VALUE_BYTES => {
            out.push(LONG_LENGTH | (length >> 8) as u8);
            out.push(length as u8);
        }
        length => return Err(EncodeError::TooLong { column, bytes: length }),
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Start and end of a variable-width value's bytes.
#[inline]
fn variable_bounds(tuple: &[u8], offset: usize) -> Option<(usize, usize)> {
    let first = *tuple.get(offset)?;
    let (start, length) = if first < LONG_LENGTH {
        (offset + 1, usize::from(first))
    } else {
        let low = *tuple.get(offset + 1)?;
        (offset + 2, usize::from(first & !LONG_LENGTH) << 8 | usize::from(low))
    };
    Some((start, start + length))
}

/// A number of bytes from an offset on.
#[inline]
fn chunk<const N: usize>(tuple: &[u8], offset: usize) -> Option<&[u8; N]> {
    tuple.get(offset..)?.first_chunk()
}

#[inline]
fn skip_value(tuple: &[u8], offset: usize, ty: DataType) -> Option<usize> {
    match ty.fixed_width() {
        Some(width) => Some(offset + width),
        None => variable_bounds(tuple, offset).map(|(_, end)| end),
    }
}

#[inline]
fn read_value(tuple: &[u8], offset: usize, ty: DataType) -> Option<(Datum<'_>, usize)> {
    let rest = tuple.get(offset..)?;
    let (datum, width) = match ty {
        DataType::Bool => (Datum::Bool(*rest.first()? != 0), 1),
        DataType::Int2 => (Datum::Int2(i16::from_le_bytes(*rest.first_chunk()?)), 2),
        DataType::Int4 => (Datum::Int4(i32::from_le_bytes(*rest.first_chunk()?)), 4),
        DataType::Date => (Datum::Date(i32::from_le_bytes(*rest.first_chunk()?)), 4),
        DataType::Int8 | DataType::Oid => {
            (Datum::Int8(i64::from_le_bytes(*rest.first_chunk()?)), 8)
        }
        DataType::Timestamp(_) => (Datum::Timestamp(i64::from_le_bytes(*rest.first_chunk()?)), 8),
        DataType::Timestamptz(_) => {
            (Datum::Timestamptz(i64::from_le_bytes(*rest.first_chunk()?)), 8)
        }
        DataType::Float4 => (Datum::Float4(f32::from_le_bytes(*rest.first_chunk()?)), 4),
        DataType::Float8 => (Datum::Float8(f64::from_le_bytes(*rest.first_chunk()?)), 8),
        DataType::Numeric { .. }
        | DataType::Text
        | DataType::Varchar(_)
        | DataType::Char(_)
        | DataType::Name
        | DataType::Bytea => {
            let (start, end) = variable_bounds(tuple, offset)?;
            let bytes = tuple.get(start..end)?;
            let datum = match ty {
                DataType::Bytea => Datum::Bytea(bytes),
                DataType::Numeric { .. } => Datum::Numeric(NumericRef::from_bytes(bytes)?),
                _ => Datum::Text(std::str::from_utf8(bytes).ok()?),
            };
            return Some((datum, end));
        }
        // No column has such a type.
        DataType::Other { .. } => return None,
    };
    Some((datum, offset + width))
}
