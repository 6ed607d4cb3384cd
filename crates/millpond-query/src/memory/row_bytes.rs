//! Rows as bytes, for memory and temporary files that one statement reads back: each value says its
//! own type.
//!
//! ```text
//! row:   value value ...
//! value: tag (1 byte), then nothing, a number of fixed size, or a length (4 bytes) and the bytes;
//!        the type's number (4 bytes) comes first where the tag does not say it
//! ```

use millpond_types::NumericRef;
use smallvec::SmallVec;

use crate::Datum;
use crate::error::{Result, SqlError, SqlState};

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT2: u8 = 3;
const INT4: u8 = 4;
const INT8: u8 = 5;
const FLOAT4: u8 = 6;
const FLOAT8: u8 = 7;
const DATE: u8 = 8;
const TIMESTAMP: u8 = 9;
const TIMESTAMPTZ: u8 = 10;
const NUMERIC: u8 = 11;
const TEXT: u8 = 12;
const BYTEA: u8 = 13;
const OTHER: u8 = 14;

/// The values of one row.
pub type Datums<'a> = SmallVec<[Datum<'a>; 12]>;

/// Appends a row's values.
pub(crate) fn push(row: &[Datum<'_>], out: &mut Vec<u8>) -> Result<()> {
    for datum in row {
        match *datum {
            Datum::Null => out.push(NULL),
            Datum::Bool(value) => out.push(if value { TRUE } else { FALSE }),
            Datum::Int2(value) => fixed(INT2, &value.to_le_bytes(), out),
            Datum::Int4(value) => fixed(INT4, &value.to_le_bytes(), out),
            Datum::Int8(value) => fixed(INT8, &value.to_le_bytes(), out),
            Datum::Float4(value) => fixed(FLOAT4, &value.to_le_bytes(), out),
            Datum::Float8(value) => fixed(FLOAT8, &value.to_le_bytes(), out),
            Datum::Date(value) => fixed(DATE, &value.to_le_bytes(), out),
            Datum::Timestamp(value) => fixed(TIMESTAMP, &value.to_le_bytes(), out),
            Datum::Timestamptz(value) => fixed(TIMESTAMPTZ, &value.to_le_bytes(), out),
            Datum::Numeric(value) => sized(NUMERIC, value.bytes(), out)?,
            Datum::Text(value) => sized(TEXT, value.as_bytes(), out)?,
            Datum::Bytea(value) => sized(BYTEA, value, out)?,
            Datum::Other(oid, value) => {
                out.push(OTHER);
                out.extend_from_slice(&oid.to_le_bytes());
                sized_bytes(value, out)?;
            }
        }
    }
    Ok(())
}

fn fixed(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn sized(tag: u8, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.push(tag);
    sized_bytes(bytes, out)
}

fn sized_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let too_long = |_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a value is too long");
    out.extend_from_slice(&u32::try_from(bytes.len()).map_err(too_long)?.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// The values of a row. An error if the bytes are not those that [`push`] has made.
pub(crate) fn read(bytes: &[u8]) -> Result<Datums<'_>> {
    let (mut rest, mut row) = (bytes, Datums::new());
    while !rest.is_empty() {
        row.push(next(&mut rest).ok_or_else(damaged)?);
    }
    Ok(row)
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<Datum<'a>> {
    let (tag, after) = rest.split_first()?;
    *rest = after;
    Some(match *tag {
        NULL => Datum::Null,
        FALSE => Datum::Bool(false),
        TRUE => Datum::Bool(true),
        INT2 => Datum::Int2(i16::from_le_bytes(take(rest)?)),
        INT4 => Datum::Int4(i32::from_le_bytes(take(rest)?)),
        INT8 => Datum::Int8(i64::from_le_bytes(take(rest)?)),
        FLOAT4 => Datum::Float4(f32::from_le_bytes(take(rest)?)),
        FLOAT8 => Datum::Float8(f64::from_le_bytes(take(rest)?)),
        DATE => Datum::Date(i32::from_le_bytes(take(rest)?)),
        TIMESTAMP => Datum::Timestamp(i64::from_le_bytes(take(rest)?)),
        TIMESTAMPTZ => Datum::Timestamptz(i64::from_le_bytes(take(rest)?)),
        NUMERIC => Datum::Numeric(NumericRef::from_bytes(take_sized(rest)?)?),
        TEXT => Datum::Text(std::str::from_utf8(take_sized(rest)?).ok()?),
        BYTEA => Datum::Bytea(take_sized(rest)?),
        OTHER => Datum::Other(u32::from_le_bytes(take(rest)?), take_sized(rest)?),
        _ => return None,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*bytes)
}

fn take_sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

#[cold]
pub(crate) fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a temporary file holds other rows than were written")
}

#[cfg(test)]
mod tests {
    use millpond_types::Numeric;

    use super::*;

    #[test]
    fn rows_come_back_as_they_went() {
        let number: Numeric = "-12.50".parse().unwrap();
        let row = [
            Datum::Null,
            Datum::Bool(true),
            Datum::Bool(false),
            Datum::Int2(-2),
            Datum::Int4(i32::MIN),
            Datum::Int8(i64::MAX),
            Datum::Float4(0.5),
            Datum::Float8(-0.0),
            Datum::Date(-1),
            Datum::Timestamp(2),
            Datum::Timestamptz(3),
            Datum::Numeric(number.as_ref()),
            Datum::Text("täxt"),
            Datum::Other(1186, &[7; 16]),
            Datum::Bytea(&[0, 255]),
        ];
        let mut bytes = Vec::new();
        push(&row, &mut bytes).unwrap();
        assert_eq!(read(&bytes).unwrap().as_slice(), &row);
        // A cut inside of a value is noticed.
        for end in [bytes.len() - 1, bytes.len() - 6] {
            read(&bytes[..end]).unwrap_err();
        }
        read(&[99]).unwrap_err();
        assert!(read(&[]).unwrap().is_empty());
    }
}
