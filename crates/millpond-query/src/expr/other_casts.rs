//! Conversions to and from types that the engine holds as bytes.

use millpond_types::Interval;
use millpond_types::jsonb::Json;
use millpond_types::other::{
    INTERVAL, JSON, JSONB, TIME, TIMETZ, XID, XID8, names_objects, object_parts, timetz_parts,
};

use super::Val;
use crate::error::{Result, SqlError, SqlState};
use crate::types::array::{self, array_of};
use crate::types::time::{time_usecs, time_value, timetz_value, with_precision};
use crate::types::{FormatOptions, USECS_PER_DAY, Zone, interval, number_of, xid};
use crate::{DataType, Datum, Value};

/// Converts a value that is neither text nor NULL; `None` if the types have no conversion.
pub(super) fn convert(
    datum: &Datum<'_>,
    ty: DataType,
    explicit: bool,
    options: &FormatOptions,
) -> Result<Option<Value>> {
    if let (Some(array), Some(element)) = (array_of(datum), ty.element()) {
        let convert = |datum: Datum<'_>| {
            super::cast::cast(Val::Borrowed(datum), element, explicit, options).map(Val::into_value)
        };
        return array::map(&array, ty, convert).map(Some);
    }
    if let Some(value) = of_json(datum, ty, explicit, options)? {
        return Ok(Some(value));
    }
    if let Datum::Other(oid, bytes) = *datum
        && names_objects(oid)
        && let Some((number, _)) = object_parts(bytes)
    {
        let number = Val::Owned(Value::Int8(number.into()));
        return super::cast::cast(number, ty, explicit, options).map(|val| Some(val.into_value()));
    }
    Ok(match (*datum, ty) {
        (Datum::Other(INTERVAL, bytes), DataType::Other { oid: INTERVAL, typmod }) => {
            match Interval::from_bytes(bytes) {
                Some(value) => Some(interval::with_typmod(value, typmod)?.into()),
                None => None,
            }
        }
        // The low half of a transaction's number.
        (Datum::Other(XID8, bytes), DataType::Other { oid: XID, .. }) => {
            number_of(bytes).map(|number| xid(XID, number as u32))
        }
        (
            Datum::Timestamp(i64::MAX | i64::MIN) | Datum::Timestamptz(i64::MAX | i64::MIN),
            DataType::Other { oid: TIME | TIMETZ, .. },
        ) => Some(Value::Null),
        (_, DataType::Other { oid: TIME, typmod }) => {
            clock_of(datum, options).map(|usecs| time_value(with_precision(usecs, typmod)))
        }
        (_, DataType::Other { oid: TIMETZ, typmod }) => clock_with_zone(datum, options)
            .map(|(usecs, west)| timetz_value(with_precision(usecs, typmod), west)),
        (Datum::Other(TIME, bytes), DataType::Other { oid: INTERVAL, typmod }) => {
            match time_usecs(bytes) {
                Some(usecs) => {
                    let value = Interval { usecs, ..Interval::default() };
                    Some(interval::with_typmod(value, typmod)?.into())
                }
                None => None,
            }
        }
        _ => None,
    })
}

/// Between the two forms of JSON, and from a `jsonb` that is a number or a boolean.
fn of_json(
    datum: &Datum<'_>,
    ty: DataType,
    explicit: bool,
    options: &FormatOptions,
) -> Result<Option<Value>> {
    let Datum::Other(oid @ (JSON | JSONB), bytes) = *datum else { return Ok(None) };
    if matches!(ty.oid(), JSON | JSONB) {
        let text = super::cast::text_of(datum, options);
        return Ok(Some(crate::types::text::parse(ty, &text, options)?));
    }
    if oid == JSON {
        return Ok(None);
    }
    let is_number = !matches!(ty, DataType::Bool);
    let kind = match (Json::from_bytes(bytes), is_number) {
        (Some(Json::Number(number)), true) => {
            let number = Val::Borrowed(Datum::Numeric(number));
            let value = super::cast::cast(number, ty, explicit, options)?;
            return Ok(Some(value.into_value()));
        }
        (Some(Json::Bool(value)), false) => return Ok(Some(Value::Bool(value))),
        (Some(Json::Null), _) => "null",
        (Some(Json::Bool(_)), _) => "boolean",
        (Some(Json::Number(_)), _) => "numeric",
        (Some(Json::String(_)), _) => "string",
        (Some(Json::Array(_)), _) => "array",
        (Some(Json::Object(_)), _) => "object",
        (None, _) => return Ok(None),
    };
    Err(SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("cannot cast jsonb {kind} to type {}", ty.base()),
    ))
}

/// The time of day in a value, in the session's zone.
fn clock_of(datum: &Datum<'_>, options: &FormatOptions) -> Option<i64> {
    match *datum {
        Datum::Timestamp(t) => Some(t.rem_euclid(USECS_PER_DAY)),
        Datum::Timestamptz(t) => Some(options.zone.local(t).rem_euclid(USECS_PER_DAY)),
        Datum::Other(TIME, bytes) => time_usecs(bytes),
        Datum::Other(TIMETZ, bytes) => timetz_parts(bytes).map(|(usecs, _)| usecs),
        Datum::Other(INTERVAL, bytes) => {
            Interval::from_bytes(bytes).map(|value| value.usecs.rem_euclid(USECS_PER_DAY))
        }
        _ => None,
    }
}

/// What a zone's clock shows today at that time of day, in seconds west of UTC.
pub(in crate::expr) fn zone_of_today(usecs: i64, zone: Zone) -> i32 {
    let now = zone.local(millpond_types::current_timestamp());
    let today = now.div_euclid(USECS_PER_DAY) * USECS_PER_DAY;
    -zone.offset_of_local(today + usecs)
}

/// The same with the zone, in seconds west of UTC.
fn clock_with_zone(datum: &Datum<'_>, options: &FormatOptions) -> Option<(i64, i32)> {
    match *datum {
        Datum::Other(TIMETZ, bytes) => timetz_parts(bytes),
        Datum::Timestamptz(t) => Some((clock_of(datum, options)?, -options.zone.offset_at(t))),
        // A time of today.
        Datum::Other(TIME, bytes) => {
            let usecs = time_usecs(bytes)?;
            Some((usecs, zone_of_today(usecs, options.zone)))
        }
        _ => None,
    }
}
