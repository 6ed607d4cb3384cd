//! PostgreSQL's text format of every type.

use crate::NumericRef;

use super::length::{fit_timestamp, missing_spaces};
use super::{FormatOptions, bytea, coerce_text, datetime, float, integer, invalid_syntax, other};
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;
use crate::{DataType, Datum, Numeric, Value};

/// Appends the text of a value that is not NULL (of NULL: nothing).
#[inline]
pub fn encode(ty: DataType, datum: &Datum<'_>, options: &FormatOptions, out: &mut Vec<u8>) {
    match *datum {
        Datum::Null => {}
        Datum::Bool(v) => out.push(if v { b't' } else { b'f' }),
        Datum::Int2(v) => integer::write_i64(v.into(), out),
        Datum::Int4(v) => integer::write_i64(v.into(), out),
        Datum::Int8(v) => integer::write_i64(v, out),
        Datum::Float4(v) => float::write_f32(v, options.extra_float_digits, out),
        Datum::Float8(v) => float::write_f64(v, options.extra_float_digits, out),
        Datum::Numeric(v) => write_numeric(v, out),
        Datum::Text(v) => {
            out.extend_from_slice(v.as_bytes());
            out.extend(std::iter::repeat_n(b' ', missing_spaces(ty, v)));
        }
        Datum::Bytea(v) => bytea::write(v, options.bytea_escape, out),
        Datum::Date(v) => datetime::write_date(v, options.date_style, out),
        Datum::Timestamp(v) => datetime::write_timestamp(v, None, options.date_style, out),
        Datum::Timestamptz(v) => {
            datetime::write_timestamp(v, Some(options.zone), options.date_style, out);
        }
        Datum::Other(oid, bytes) => other::encode_text(ty, oid, bytes, options, out),
    }
}

fn write_numeric(value: NumericRef<'_>, out: &mut Vec<u8>) {
    use std::io::Write;
    // Writing to memory can't fail.
    let _ = write!(out, "{value}");
}

/// The text of a value, owned; `None` for NULL.
pub fn to_string(ty: DataType, datum: &Datum<'_>, options: &FormatOptions) -> Option<String> {
    if datum.is_null() {
        return None;
    }
    let mut out = Vec::new();
    encode(ty, datum, options, &mut out);
    let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some(String::from_utf8(out).unwrap_or_else(|error| lossy(error.into_bytes())))
}

/// Reads a value of a column's type, its modifier included.
pub fn parse(ty: DataType, text: &str, options: &FormatOptions) -> Result<Value> {
    let mut hold = Value::Null;
    match parse_borrowed(ty, text, options, &mut hold)? {
        Datum::Numeric(_) | Datum::Bytea(_) | Datum::Other(..) => Ok(hold),
        datum => Ok(datum.to_value()),
    }
}

/// Reads a value without copying strings: what needs memory of its own is put into `hold`.
pub fn parse_borrowed<'a>(
    ty: DataType,
    text: &'a str,
    options: &FormatOptions,
    hold: &'a mut Value,
) -> Result<Datum<'a>> {
    Ok(match ty {
        DataType::Bool => Datum::Bool(parse_bool(text)?),
        DataType::Int2 => {
            Datum::Int2(integer::parse(ty, text, i16::MIN.into(), i16::MAX.into())? as i16)
        }
        DataType::Int4 => {
            Datum::Int4(integer::parse(ty, text, i32::MIN.into(), i32::MAX.into())? as i32)
        }
        DataType::Int8 => Datum::Int8(integer::parse(ty, text, i64::MIN, i64::MAX)?),
        DataType::Oid => Datum::Int8(integer::parse_oid(text)?),
        DataType::Float4 => Datum::Float4(float::parse_f32(text)?),
        DataType::Float8 => Datum::Float8(float::parse_f64(text)?),
        DataType::Numeric { precision_scale } => {
            let number: Numeric = text.parse()?;
            *hold = Value::Numeric(match precision_scale {
                Some((precision, scale)) => number.as_ref().with_precision(precision, scale)?,
                None => number,
            });
            hold.as_datum()
        }
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
            Datum::Text(coerce_text(ty, check_text(text)?, false)?)
        }
        DataType::Bytea => {
            *hold = Value::Bytea(bytea::parse(text)?);
            hold.as_datum()
        }
        DataType::Date => Datum::Date(datetime::parse_date(text, options)?),
        DataType::Timestamp(digits) => {
            let stamp = datetime::parse_timestamp(text, options)?;
            Datum::Timestamp(fit_timestamp(digits, stamp)?)
        }
        DataType::Timestamptz(digits) => {
            let stamp = datetime::parse_timestamptz(text, options)?;
            Datum::Timestamptz(fit_timestamp(digits, stamp)?)
        }
        DataType::Other { oid, typmod } => {
            *hold = other::parse_text(oid, typmod, text, options)?;
            hold.as_datum()
        }
    })
}

/// Strings hold no zero bytes.
pub fn check_text(text: &str) -> Result<&str> {
    if text.as_bytes().contains(&0) {
        return Err(DataException::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    Ok(text)
}

fn parse_bool(text: &str) -> Result<bool> {
    let word = text.trim_matches(|c: char| c.is_ascii_whitespace()).to_ascii_lowercase();
    let abbreviates = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&*word);
    if abbreviates("true", 1) || abbreviates("yes", 1) || abbreviates("on", 2) || word == "1" {
        Ok(true)
    } else if abbreviates("false", 1)
        || abbreviates("no", 1)
        || abbreviates("off", 2)
        || word == "0"
    {
        Ok(false)
    } else {
        Err(invalid_syntax(DataType::Bool, text))
    }
}
