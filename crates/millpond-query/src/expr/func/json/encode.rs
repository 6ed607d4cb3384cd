//! Any value as JSON.

use millpond_types::jsonb::write;
use millpond_types::other::{JSON, JSONB, RECORD};
use millpond_types::record::fields;

use super::{made_value, object_bytes};
use crate::error::{Result, SqlError};
use crate::expr::cast::{text_of, write_text_of};
use crate::expr::func::check_length;
use crate::types::array::array_of;
use crate::types::json::{escaped_length, to_jsonb, too_long, write_string};
use crate::types::{DateStyle, FormatOptions, Zone};
use crate::{DataType, Datum, Numeric, Value};

/// A value's text as JSON has it: dates and times by ISO 8601, whatever `DateStyle` says.
pub(super) fn text(datum: &Datum<'_>, options: &FormatOptions) -> String {
    let options = &FormatOptions { date_style: DateStyle::default(), ..*options };
    let text = text_of(datum, options);
    match datum {
        Datum::Timestamp(_) => text.replacen(' ', "T", 1),
        Datum::Timestamptz(usecs) if !matches!(*usecs, i64::MIN | i64::MAX) => {
            let text = text.replacen(' ', "T", 1);
            with_minutes(text, options.zone, *usecs)
        }
        _ => text,
    }
}

/// The offset of a time zone with its minutes, which SQL's text leaves out if they are 0.
fn with_minutes(text: String, zone: Zone, usecs: i64) -> String {
    if zone.offset_at(usecs) % 3600 != 0 {
        return text;
    }
    match text.strip_suffix(" BC") {
        Some(text) => format!("{text}:00 BC"),
        None => format!("{text}:00"),
    }
}

/// Whether a number's text is a number of JSON: not NaN, and not infinite.
fn is_number(text: &[u8]) -> bool {
    text.last().is_some_and(u8::is_ascii_digit)
}

fn is_numeric(datum: &Datum<'_>) -> bool {
    matches!(
        datum,
        Datum::Int2(_)
            | Datum::Int4(_)
            | Datum::Int8(_)
            | Datum::Float4(_)
            | Datum::Float8(_)
            | Datum::Numeric(_)
    )
}

/// Appends a value's JSON as text.
pub(super) fn write_text(
    datum: &Datum<'_>,
    options: &FormatOptions,
    out: &mut Vec<u8>,
) -> Result<()> {
    match datum {
        Datum::Null => out.extend_from_slice(b"null"),
        Datum::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Datum::Other(JSON, bytes) => out.extend_from_slice(bytes),
        Datum::Other(JSONB, _) => out.extend_from_slice(text_of(datum, options).as_bytes()),
        Datum::Other(RECORD, bytes) => write_record(bytes, options, ",", out)?,
        Datum::Text(text) => write_checked_string(text, out)?,
        datum if is_numeric(datum) => write_number(datum, options, out),
        datum => {
            if let Some(array) = array_of(datum) {
                let lengths: Vec<usize> =
                    array.dimensions().iter().map(|one| one.length as usize).collect();
                let mut elements = array.iter();
                return write_list(&lengths, &mut elements, array.element(), options, ",", out);
            }
            write_checked_string(&text(datum, options), out)?;
        }
    }
    check_length(out.len())
}

/// Appends a string in quotes, unless it becomes too long.
fn write_checked_string(text: &str, out: &mut Vec<u8>) -> Result<()> {
    check_length(out.len() + escaped_length(text))?;
    write_string(text, out);
    Ok(())
}

/// Appends a number. JSON has no NaN and no infinity: they become strings.
fn write_number(datum: &Datum<'_>, options: &FormatOptions, out: &mut Vec<u8>) {
    let start = out.len();
    write_text_of(datum, options, out);
    if !is_number(out.get(start..).unwrap_or_default()) {
        out.insert(start, b'"');
        out.push(b'"');
    }
}

/// Calls `write` with a value as JSON has it, of a type that its datum does not tell: an `oid` is
/// no number there.
fn as_json<R>(value: &Datum<'_>, type_oid: u32, write: impl FnOnce(&Datum<'_>) -> R) -> R {
    match value {
        Datum::Int8(oid) if type_oid == DataType::Oid.oid() => {
            write(&Datum::Text(&oid.to_string()))
        }
        value => write(value),
    }
}

/// Appends an array of these dimensions. `separator` stands between the outermost elements.
pub(super) fn write_list<'a>(
    lengths: &[usize],
    elements: &mut dyn Iterator<Item = Datum<'a>>,
    type_oid: u32,
    options: &FormatOptions,
    separator: &str,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'[');
    if let Some((length, inner)) = lengths.split_first() {
        for place in 0..*length {
            if place > 0 {
                out.extend_from_slice(separator.as_bytes());
            }
            if inner.is_empty() {
                let element = elements.next().unwrap_or(Datum::Null);
                as_json(&element, type_oid, |value| write_text(value, options, out))?;
            } else {
                write_list(inner, elements, type_oid, options, ",", out)?;
            }
        }
    }
    out.push(b']');
    Ok(())
}

/// Appends a record as an object. `separator` stands between its fields.
pub(super) fn write_record(
    bytes: &[u8],
    options: &FormatOptions,
    separator: &str,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    for (place, field) in fields(bytes).enumerate() {
        if place > 0 {
            out.extend_from_slice(separator.as_bytes());
        }
        write_string(field.name, out);
        out.push(b':');
        as_json(&field.value, field.type_oid, |value| write_text(value, options, out))?;
    }
    out.push(b'}');
    Ok(())
}

/// Appends a value's `jsonb`.
pub(super) fn write_jsonb(
    datum: &Datum<'_>,
    options: &FormatOptions,
    out: &mut Vec<u8>,
) -> Result<()> {
    let written = match datum {
        Datum::Null => {
            write::null(out);
            Ok(())
        }
        Datum::Bool(value) => {
            write::bool(*value, out);
            Ok(())
        }
        Datum::Other(JSONB, bytes) => {
            out.extend_from_slice(bytes);
            Ok(())
        }
        Datum::Other(JSON, bytes) => {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| SqlError::internal("a json value that is no text"))?;
            out.extend_from_slice(&to_jsonb(text)?);
            Ok(())
        }
        Datum::Other(RECORD, bytes) => {
            let mut members = Vec::new();
            for field in fields(bytes) {
                let mut value = Vec::new();
                as_json(&field.value, field.type_oid, |datum| {
                    write_jsonb(datum, options, &mut value)
                })?;
                members.push((field.name, value));
            }
            let members = members.iter().map(|(name, value)| (*name, value.as_slice()));
            out.extend_from_slice(&object_bytes(members)?);
            Ok(())
        }
        datum => {
            if let Some(array) = array_of(datum) {
                let lengths: Vec<usize> =
                    array.dimensions().iter().map(|one| one.length as usize).collect();
                let type_oid = array.element();
                return write_jsonb_list(&lengths, &mut array.iter(), type_oid, options, out);
            }
            if let Some(int) = datum.as_i64() {
                return Ok(write::number(Numeric::from(int).as_ref(), out).map_err(too_long)?);
            }
            let text = text(datum, options);
            if is_numeric(datum) && is_number(text.as_bytes()) {
                let number: Numeric = text.parse()?;
                write::number(number.as_ref(), out)
            } else {
                write::string(&text, out)
            }
        }
    };
    Ok(written.map_err(too_long)?)
}

/// The `jsonb` array of values.
pub(super) fn jsonb_array_of<'a>(
    values: impl Iterator<Item = Datum<'a>>,
    options: &FormatOptions,
) -> Result<Value> {
    let mut out = Vec::new();
    let mut array = write::Array::begin(&mut out);
    for value in values {
        array.element();
        write_jsonb(&value, options, &mut out)?;
        if out.len() > write::MAX_LENGTH {
            return Err(too_long(write::TooLong::Array).into());
        }
    }
    array.end(&mut out).map_err(too_long)?;
    made_value(out)
}

fn write_jsonb_list<'a>(
    lengths: &[usize],
    elements: &mut dyn Iterator<Item = Datum<'a>>,
    type_oid: u32,
    options: &FormatOptions,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut array = write::Array::begin(out);
    if let Some((length, inner)) = lengths.split_first() {
        for _ in 0..*length {
            array.element();
            if inner.is_empty() {
                let element = elements.next().unwrap_or(Datum::Null);
                as_json(&element, type_oid, |value| write_jsonb(value, options, out))?;
            } else {
                write_jsonb_list(inner, elements, type_oid, options, out)?;
            }
        }
    }
    Ok(array.end(out).map_err(too_long)?)
}

/// A value as the name of a member.
pub(super) fn name_text(datum: &Datum<'_>, options: &FormatOptions) -> String {
    text(datum, options)
}
