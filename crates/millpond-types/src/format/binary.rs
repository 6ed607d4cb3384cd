//! PostgreSQL's binary format of every type: big-endian, as drivers send and read it.

use crate::numeric::{Decimal, MAX_SCALE, Parts};
use crate::{DATE_INFINITY, DATE_NEG_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY};

use super::length::{fit_timestamp, missing_spaces};
use super::{coerce_text, in_date_range, in_timestamp_range, other, text};
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;
use crate::{DataType, Datum, Numeric, NumericRef, Value};

const NUMERIC_NEGATIVE: u16 = 0x4000;
const NUMERIC_NAN: u16 = 0xc000;
const NUMERIC_INFINITY: u16 = 0xd000;
const NUMERIC_NEG_INFINITY: u16 = 0xf000;

/// Appends the binary form of a value that is not NULL (of NULL: nothing).
pub fn encode(ty: DataType, datum: &Datum<'_>, out: &mut Vec<u8>) {
    match *datum {
        Datum::Null => {}
        Datum::Bool(v) => out.push(u8::from(v)),
        Datum::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int8(v) if ty == DataType::Oid => out.extend_from_slice(&(v as u32).to_be_bytes()),
        Datum::Int8(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => {
            out.extend_from_slice(&v.to_be_bytes());
        }
        Datum::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Numeric(v) => encode_numeric(v, out),
        Datum::Text(v) => {
            out.extend_from_slice(v.as_bytes());
            out.extend(std::iter::repeat_n(b' ', missing_spaces(ty, v)));
        }
        Datum::Bytea(v) => out.extend_from_slice(v),
        Datum::Other(oid, bytes) => other::encode_binary(ty, oid, bytes, out),
    }
}

fn encode_numeric(value: NumericRef<'_>, out: &mut Vec<u8>) {
    let (digits, weight, sign, dscale) = match value.parts() {
        Parts::NaN => (Default::default(), 0, NUMERIC_NAN, 0),
        // PostgreSQL takes a bit of these signs for a scale.
        Parts::Infinity => (Default::default(), 0, NUMERIC_INFINITY, 0x20),
        Parts::NegInfinity => (Default::default(), 0, NUMERIC_NEG_INFINITY, 0x20),
        Parts::Finite(d) => {
            (d.digits, d.weight as i16, if d.negative { NUMERIC_NEGATIVE } else { 0 }, d.dscale)
        }
    };
    for word in [digits.len() as u16, weight as u16, sign, dscale].iter().chain(&digits) {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cold]
fn malformed(ty: DataType) -> DataException {
    DataException::new(
        SqlState::INVALID_BINARY_REPRESENTATION,
        format!("incorrect binary data format for type {}", ty.base()),
    )
}

/// Reads a value of a column's type, its modifier included.
pub fn decode(ty: DataType, bytes: &[u8]) -> Result<Value> {
    let fixed = || malformed(ty);
    fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.try_into().ok()
    }
    Ok(match ty {
        DataType::Bool => Value::Bool(array::<1>(bytes).ok_or_else(fixed)?[0] != 0),
        DataType::Int2 => Value::Int2(i16::from_be_bytes(array(bytes).ok_or_else(fixed)?)),
        DataType::Int4 => Value::Int4(i32::from_be_bytes(array(bytes).ok_or_else(fixed)?)),
        DataType::Int8 => Value::Int8(i64::from_be_bytes(array(bytes).ok_or_else(fixed)?)),
        DataType::Oid => Value::Int8(u32::from_be_bytes(array(bytes).ok_or_else(fixed)?).into()),
        DataType::Float4 => Value::Float4(f32::from_be_bytes(array(bytes).ok_or_else(fixed)?)),
        DataType::Float8 => Value::Float8(f64::from_be_bytes(array(bytes).ok_or_else(fixed)?)),
        DataType::Date => {
            Value::Date(check_date(i32::from_be_bytes(array(bytes).ok_or_else(fixed)?))?)
        }
        DataType::Timestamp(digits) | DataType::Timestamptz(digits) => {
            let stamp = check_timestamp(i64::from_be_bytes(array(bytes).ok_or_else(fixed)?))?;
            let stamp = fit_timestamp(digits, stamp)?;
            match ty {
                DataType::Timestamp(_) => Value::Timestamp(stamp),
                _ => Value::Timestamptz(stamp),
            }
        }
        DataType::Bytea => Value::Bytea(bytes.to_owned()),
        DataType::Other { oid, typmod } => {
            other::decode_binary(oid, typmod, bytes)?.ok_or_else(fixed)?
        }
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
            let string = std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, &error))?;
            Value::Text(coerce_text(ty, text::check_text(string)?, false)?.to_owned())
        }
        DataType::Numeric { precision_scale } => {
            let number = decode_numeric(bytes).ok_or_else(fixed)??;
            Value::Numeric(match precision_scale {
                Some((precision, scale)) => number.as_ref().with_precision(precision, scale)?,
                None => number,
            })
        }
    })
}

/// The error for bytes that are not UTF-8, naming the first bad ones.
#[cold]
pub fn invalid_utf8(bytes: &[u8], error: &std::str::Utf8Error) -> DataException {
    let start = error.valid_up_to();
    let length = error.error_len().unwrap_or(bytes.len() - start).clamp(1, 4);
    let shown = Vec::from_iter(bytes[start..].iter().take(length).map(|b| format!("0x{b:02x}")));
    DataException::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
    )
}

fn check_date(date: i32) -> Result<i32> {
    match date {
        DATE_INFINITY | DATE_NEG_INFINITY => Ok(date),
        _ if in_date_range(date.into()) => Ok(date),
        _ => Err(DataException::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range")),
    }
}

fn check_timestamp(timestamp: i64) -> Result<i64> {
    match timestamp {
        TIMESTAMP_INFINITY | TIMESTAMP_NEG_INFINITY => Ok(timestamp),
        _ if in_timestamp_range(timestamp) => Ok(timestamp),
        _ => Err(DataException::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")),
    }
}

fn decode_numeric(bytes: &[u8]) -> Option<Result<Numeric>> {
    let mut words = bytes.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    let (count, weight, sign, dscale) =
        (words.next()?, words.next()? as i16, words.next()?, words.next()?);
    if bytes.len() != 8 + 2 * usize::from(count) {
        return None;
    }
    let negative = match sign {
        NUMERIC_NAN => return Some(Ok(Numeric::nan())),
        NUMERIC_INFINITY => return Some(Ok(Numeric::infinity())),
        NUMERIC_NEG_INFINITY => return Some(Ok(Numeric::neg_infinity())),
        0 => false,
        NUMERIC_NEGATIVE => true,
        _ => return None,
    };
    if dscale > MAX_SCALE {
        return None;
    }
    let decimal = Decimal { negative, weight: weight.into(), dscale, digits: words.collect() };
    if decimal.digits.iter().any(|&digit| digit > 9999) {
        return None;
    }
    // Digits beyond the display scale are cut, as PostgreSQL does.
    Some(
        Numeric::from_decimal(decimal)
            .and_then(|n| n.as_ref().round(dscale as i16))
            .map_err(Into::into),
    )
}
