//! Text and binary formats of the types that the engine holds as bytes.

use crate::Interval;
use crate::jsonb::Json;
use crate::other::{
    CID, INTERVAL, JSON, JSONB, JSONPATH, PG_LSN, RECORD, TID, TIME, TIMETZ, UUID, XID, XID8,
    is_vector, names_objects, object_parts, timetz_parts,
};

use super::jsonpath::JsonPath;
use super::{FormatOptions, array, binary, interval, json, lsn, record, tid, time, uuid, xid};
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;
use crate::{DataType, Value};

/// The type of a value: the column's, which may have a modifier, or its own.
fn type_of(ty: DataType, oid: u32) -> DataType {
    if ty.oid() == oid { ty } else { DataType::Other { oid, typmod: -1 } }
}

/// Appends the text of a value.
pub(super) fn encode_text(
    ty: DataType,
    oid: u32,
    bytes: &[u8],
    options: &FormatOptions,
    out: &mut Vec<u8>,
) {
    match oid {
        TIME => {
            if let Some(usecs) = time::time_usecs(bytes) {
                time::write(usecs, None, out);
            }
        }
        TIMETZ => {
            if let Some((usecs, west)) = timetz_parts(bytes) {
                time::write(usecs, Some(west), out);
            }
        }
        INTERVAL => {
            if let Some(value) = Interval::from_bytes(bytes) {
                interval::write(value, options.interval_style, out);
            }
        }
        UUID => uuid::write(bytes, out),
        TID => tid::write(bytes, out),
        XID | CID => xid::write(bytes, out),
        XID8 => xid::write_xid8(bytes, out),
        PG_LSN => lsn::write(bytes, out),
        JSON | JSONPATH => out.extend_from_slice(bytes),
        JSONB => {
            if let Some(value) = Json::from_bytes(bytes) {
                json::write(value, out);
            }
        }
        RECORD => record::write(bytes, options, out),
        _ if names_objects(oid) => {
            if let Some((_, name)) = object_parts(bytes) {
                out.extend_from_slice(name.as_bytes());
            }
        }
        _ if is_vector(oid) => array::write_vector(oid, bytes, options, out),
        _ => array::write(type_of(ty, oid), bytes, options, out),
    }
}

/// Reads a value of a type, its modifier included.
pub(super) fn parse_text(
    oid: u32,
    typmod: i32,
    text: &str,
    options: &FormatOptions,
) -> Result<Value> {
    match oid {
        TIME => time::parse_time(text, typmod, options),
        TIMETZ => time::parse_timetz(text, typmod, options),
        INTERVAL => Ok(interval::parse(text, typmod, options.interval_style)?.into()),
        UUID => uuid::parse(text),
        TID => tid::parse(text),
        XID | CID => xid::parse(oid, text),
        XID8 => xid::parse_xid8(text),
        PG_LSN => lsn::parse(text),
        JSON => {
            json::check(text)?;
            Ok(Value::Other(JSON, text.as_bytes().into()))
        }
        JSONB => Ok(Value::Other(JSONB, json::to_jsonb(text)?.into())),
        JSONPATH => {
            let printed = JsonPath::parse(text)?.to_string();
            Ok(Value::Other(JSONPATH, printed.into_bytes().into()))
        }
        RECORD => Err(no_record_input()),
        _ if is_vector(oid) => array::parse_vector(oid, text, options),
        _ => {
            let ty = DataType::Other { oid, typmod };
            if ty.element().is_some() {
                array::parse(ty, text, options)
            } else {
                Err(no_input(oid))
            }
        }
    }
}

/// Appends the binary form of a value.
pub(super) fn encode_binary(ty: DataType, oid: u32, bytes: &[u8], out: &mut Vec<u8>) {
    match oid {
        TIME => {
            if let Some(usecs) = time::time_usecs(bytes) {
                out.extend_from_slice(&usecs.to_be_bytes());
            }
        }
        TIMETZ => {
            if let Some((usecs, west)) = timetz_parts(bytes) {
                out.extend_from_slice(&usecs.to_be_bytes());
                out.extend_from_slice(&west.to_be_bytes());
            }
        }
        INTERVAL => {
            if let Some(value) = Interval::from_bytes(bytes) {
                out.extend_from_slice(&value.usecs.to_be_bytes());
                out.extend_from_slice(&value.days.to_be_bytes());
                out.extend_from_slice(&value.months.to_be_bytes());
            }
        }
        UUID | TID | XID | CID | XID8 | PG_LSN | JSON => out.extend_from_slice(bytes),
        JSONB => {
            // The version of the form.
            out.push(1);
            if let Some(value) = Json::from_bytes(bytes) {
                json::write(value, out);
            }
        }
        JSONPATH => {
            out.push(1);
            out.extend_from_slice(bytes);
        }
        RECORD => record::encode_binary(bytes, out),
        _ if names_objects(oid) => {
            if let Some((number, _)) = object_parts(bytes) {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        _ => array::encode_binary(type_of(ty, oid), bytes, out),
    }
}

/// Reads a value in the binary form; `None` if the bytes are not of that form.
pub(super) fn decode_binary(oid: u32, typmod: i32, bytes: &[u8]) -> Result<Option<Value>> {
    fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
        bytes.get(at..at + N)?.try_into().ok()
    }
    let usecs = number(bytes, 0).map(i64::from_be_bytes);
    Ok(match (oid, usecs, bytes.len()) {
        (RECORD, ..) => return Err(no_record_input()),
        (TIME, Some(usecs), 8) => {
            Some(time::time_value(time::with_precision(time::checked(usecs)?, typmod)))
        }
        (TIMETZ, Some(usecs), 12) => number(bytes, 8)
            .map(i32::from_be_bytes)
            .map(|west| {
                let usecs = time::with_precision(time::checked(usecs)?, typmod);
                Ok::<_, DataException>(time::timetz_value(usecs, time::checked_zone(west)?))
            })
            .transpose()?,
        (INTERVAL, Some(usecs), 16) => {
            let parts = number(bytes, 8).zip(number(bytes, 12));
            match parts.map(|(days, months)| Interval {
                months: i32::from_be_bytes(months),
                days: i32::from_be_bytes(days),
                usecs,
            }) {
                Some(value) => Some(interval::with_typmod(value, typmod)?.into()),
                None => None,
            }
        }
        (JSON | JSONB | JSONPATH, ..) => {
            let text = if oid == JSON { Some(bytes) } else { bytes.strip_prefix(&[1]) };
            let Some(text) = text else { return Ok(None) };
            let text =
                std::str::from_utf8(text).map_err(|error| binary::invalid_utf8(text, &error))?;
            Some(parse_text(
                oid,
                typmod,
                super::text::check_text(text)?,
                &FormatOptions::default(),
            )?)
        }
        (UUID, _, 16) => Some(Value::Other(UUID, bytes.into())),
        (TID, _, 6) => Some(Value::Other(TID, bytes.into())),
        (XID | CID, _, 4) => Some(Value::Other(oid, bytes.into())),
        (XID8 | PG_LSN, _, 8) => Some(Value::Other(oid, bytes.into())),
        _ => array::decode_binary(DataType::Other { oid, typmod }, bytes)?,
    })
}

#[cold]
fn no_record_input() -> DataException {
    DataException::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "input of anonymous composite types is not implemented",
    )
}

fn no_input(oid: u32) -> DataException {
    let ty = DataType::Other { oid, typmod: -1 };
    DataException::new(SqlState::FEATURE_NOT_SUPPORTED, format!("no input of type {ty} yet"))
}
