//! Conversions between types.

use super::func::{check_length, overflow, underflow};
use super::types::NUMERIC;
use super::{Val, other_casts};
use crate::error::{Result, SqlError, SqlState};
use crate::types::USECS_PER_DAY;

use crate::types::{
    FormatOptions, coerce_numeric, coerce_text, fit_timestamp, in_timestamp_range, text,
};
use crate::{DataType, Datum, Numeric, Value};

#[cold]
fn out_of_range(ty: DataType) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{} out of range", ty.base()))
}

#[cold]
fn impossible(datum: &Datum<'_>, ty: DataType) -> SqlError {
    let from = type_of(datum).map_or_else(|| "unknown".to_owned(), |ty| ty.to_string());
    SqlError::new(SqlState::CANNOT_COERCE, format!("cannot cast type {from} to {ty}"))
}

/// The type that a value says it has.
pub fn type_of(datum: &Datum<'_>) -> Option<DataType> {
    Some(match datum {
        Datum::Null => return None,
        Datum::Bool(_) => DataType::Bool,
        Datum::Int2(_) => DataType::Int2,
        Datum::Int4(_) => DataType::Int4,
        Datum::Int8(_) => DataType::Int8,
        Datum::Float4(_) => DataType::Float4,
        Datum::Float8(_) => DataType::Float8,
        Datum::Numeric(_) => NUMERIC,
        Datum::Text(_) => DataType::Text,
        Datum::Bytea(_) => DataType::Bytea,
        Datum::Date(_) => DataType::Date,
        Datum::Timestamp(_) => DataType::Timestamp(None),
        Datum::Timestamptz(_) => DataType::Timestamptz(None),
        Datum::Other(oid, _) => DataType::Other { oid: *oid, typmod: -1 },
    })
}

/// Whether the value is of the type already (but for its modifier).
fn is_of(datum: &Datum<'_>, ty: DataType) -> bool {
    match ty {
        DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
            matches!(datum, Datum::Text(_))
        }
        _ => type_of(datum).is_some_and(|found| found == ty.base()),
    }
}

/// Converts a value to a type. `explicit`: as a written cast does, which cuts text that is too
/// long.
pub fn cast<'a>(
    value: Val<'a>,
    ty: DataType,
    explicit: bool,
    options: &FormatOptions,
) -> Result<Val<'a>> {
    let datum = value.datum();
    if datum.is_null() {
        return Ok(Val::Borrowed(Datum::Null));
    }
    if is_of(&datum, ty) {
        return match (value, ty) {
            (Val::Borrowed(Datum::Text(text)), ty) => {
                Ok(Val::Borrowed(Datum::Text(coerce_text(ty, text, explicit)?)))
            }
            (Val::Owned(Value::Text(text)), ty) if ty != DataType::Text => {
                let fitting = coerce_text(ty, &text, explicit)?;
                Ok(Value::Text(fitting.to_owned()).into())
            }
            (value, DataType::Numeric { precision_scale: Some(_) }) => match value.datum() {
                Datum::Numeric(number) => Ok(Value::Numeric(coerce_numeric(ty, number)?).into()),
                _ => Ok(value),
            },
            (
                value,
                DataType::Other { typmod: 0.., .. }
                | DataType::Timestamp(Some(_))
                | DataType::Timestamptz(Some(_)),
            ) => convert(&value.datum(), ty, explicit, options).map(Val::Owned),
            (value, _) => Ok(value),
        };
    }
    convert(&datum, ty, explicit, options).map(Val::Owned)
}

fn convert(
    datum: &Datum<'_>,
    ty: DataType,
    explicit: bool,
    options: &FormatOptions,
) -> Result<Value> {
    if let Datum::Text(input) = datum {
        return Ok(text::parse(ty, input, options)?);
    }
    let of_others = |ty| matches!(ty, DataType::Other { .. });
    if !ty.is_string() && (of_others(ty) || matches!(datum, Datum::Other(..))) {
        return other_casts::convert(datum, ty, explicit, options)?
            .ok_or_else(|| impossible(datum, ty));
    }
    Ok(match ty {
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
            let output = text_of(datum, options);
            check_length(output.len())?;
            match ty {
                DataType::Text => Value::Text(output),
                ty => Value::Text(coerce_text(ty, &output, explicit)?.to_owned()),
            }
        }
        DataType::Int2 => Value::Int2(to_int(datum, ty)?.try_into().map_err(|_| out_of_range(ty))?),
        DataType::Int4 => Value::Int4(to_int(datum, ty)?.try_into().map_err(|_| out_of_range(ty))?),
        DataType::Int8 => Value::Int8(to_int(datum, ty)?),
        DataType::Oid => Value::Int8(to_oid(datum)?),
        // By its text, so that it is rounded once, and an error shows the number.
        DataType::Float4 | DataType::Float8 if is_of(datum, NUMERIC) => {
            text::parse(ty, &text_of(datum, options), options)?
        }
        DataType::Float4 => {
            let wide = to_float(datum, ty)?;
            let narrow = wide as f32;
            if narrow.is_infinite() && !wide.is_infinite() {
                return Err(overflow());
            }
            if narrow == 0.0 && wide != 0.0 {
                return Err(underflow());
            }
            Value::Float4(narrow)
        }
        DataType::Float8 => Value::Float8(to_float(datum, ty)?),
        DataType::Numeric { .. } => {
            let number = match *datum {
                Datum::Float4(f) => Numeric::from_f32(f),
                Datum::Float8(f) => Numeric::from_f64(f),
                _ => Numeric::from(datum.as_i64().ok_or_else(|| impossible(datum, ty))?),
            };
            Value::Numeric(coerce_numeric(ty, number.as_ref())?)
        }
        DataType::Bool => match *datum {
            Datum::Int4(int) => Value::Bool(int != 0),
            _ => return Err(impossible(datum, ty)),
        },
        DataType::Date => match *datum {
            Datum::Timestamp(t) => Value::Date(day_of(t, ty)?),
            Datum::Timestamptz(t) => Value::Date(day_of(options.zone.local(t), ty)?),
            _ => return Err(impossible(datum, ty)),
        },
        DataType::Timestamp(digits) => Value::Timestamp(fit_timestamp(
            digits,
            match *datum {
                Datum::Timestamptz(t) => checked(options.zone.local(t))?,
                _ => to_micros(datum, ty)?,
            },
        )?),
        DataType::Timestamptz(digits) => Value::Timestamptz(fit_timestamp(
            digits,
            match *datum {
                Datum::Timestamptz(t) => t,
                _ => checked(options.zone.utc(to_micros(datum, ty)?))?,
            },
        )?),
        DataType::Bytea | DataType::Other { .. } => return Err(impossible(datum, ty)),
    })
}

/// A value as a message shows it: whatever session it is for, in UTC.
pub(crate) fn to_text(datum: &Datum<'_>) -> String {
    text_of(datum, &FormatOptions::default())
}

/// A value as a cast to text prints it.
pub(crate) fn text_of(datum: &Datum<'_>, options: &FormatOptions) -> String {
    match datum {
        Datum::Bool(value) => value.to_string(),
        Datum::Null => String::new(),
        datum => text::to_string(printed_type(datum), datum, options).unwrap_or_default(),
    }
}

/// Appends the same for a value that is neither NULL nor a boolean.
pub(crate) fn write_text_of(datum: &Datum<'_>, options: &FormatOptions, out: &mut Vec<u8>) {
    text::encode(printed_type(datum), datum, options, out);
}

fn printed_type(datum: &Datum<'_>) -> DataType {
    type_of(datum).unwrap_or(DataType::Text)
}

/// Whether converting a value to a type asks for the session's settings.
pub(crate) fn asks_session(datum: &Datum<'_>, ty: DataType) -> bool {
    let same = is_of(datum, ty);
    let as_text = || {
        use Datum::{Bytea, Date, Float4, Float8, Timestamp};
        ty.is_string() && matches!(datum, Date(_) | Timestamp(_) | Float4(_) | Float8(_) | Bytea(_))
    };
    let is_day = matches!(ty, DataType::Date | DataType::Timestamp(_));
    !same
        && (matches!(ty, DataType::Timestamptz(_))
            || is_day && matches!(datum, Datum::Text(_))
            || matches!(datum, Datum::Timestamptz(_) | Datum::Other(..))
            || !ty.is_storable()
            || as_text())
}

/// A time stamp that another zone may have moved out of the range that there is.
fn checked(timestamp: i64) -> Result<i64> {
    match timestamp {
        i64::MAX | i64::MIN => Ok(timestamp),
        t if in_timestamp_range(t) => Ok(t),
        _ => Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")),
    }
}

/// The day of a time stamp.
pub(crate) fn day_of(timestamp: i64, ty: DataType) -> Result<i32> {
    Ok(match timestamp {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        t => i32::try_from(t.div_euclid(USECS_PER_DAY)).map_err(|_| out_of_range(ty))?,
    })
}

fn to_int(datum: &Datum<'_>, ty: DataType) -> Result<i64> {
    match *datum {
        Datum::Bool(value) => Ok(value.into()),
        Datum::Float4(f) => float_to_int(f.into(), ty),
        Datum::Float8(f) => float_to_int(f, ty),
        Datum::Numeric(number) => {
            let name = match ty {
                DataType::Int2 => "smallint",
                DataType::Int4 => "integer",
                _ => "bigint",
            };
            number.to_i64(name).map_err(SqlError::from)
        }
        _ => datum.as_i64().ok_or_else(|| impossible(datum, ty)),
    }
}

/// An integer as a number of an object. A negative one of 32 bits is taken for its bits.
fn to_oid(datum: &Datum<'_>) -> Result<i64> {
    match *datum {
        Datum::Int4(int) => Ok((int as u32).into()),
        _ => {
            let int = datum.as_i64().ok_or_else(|| impossible(datum, DataType::Oid))?;
            let oid = u32::try_from(int).map_err(|_| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range")
            })?;
            Ok(oid.into())
        }
    }
}

fn float_to_int(f: f64, ty: DataType) -> Result<i64> {
    let rounded = f.round_ties_even();
    // 2^63 itself is out of range, and so is NaN.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
        Ok(rounded as i64)
    } else {
        Err(out_of_range(ty))
    }
}

fn to_float(datum: &Datum<'_>, ty: DataType) -> Result<f64> {
    Ok(match *datum {
        Datum::Float4(f) => f.into(),
        Datum::Float8(f) => f,
        _ => datum.as_i64().ok_or_else(|| impossible(datum, ty))? as f64,
    })
}

#[cold]
fn date_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
}

fn to_micros(datum: &Datum<'_>, ty: DataType) -> Result<i64> {
    match *datum {
        Datum::Date(i32::MAX) => Ok(i64::MAX),
        Datum::Date(i32::MIN) => Ok(i64::MIN),
        Datum::Date(days) => i64::from(days)
            .checked_mul(USECS_PER_DAY)
            .filter(|usecs| in_timestamp_range(*usecs))
            .ok_or_else(date_out_of_range),
        Datum::Timestamp(t) => Ok(t),
        _ => Err(impossible(datum, ty)),
    }
}
