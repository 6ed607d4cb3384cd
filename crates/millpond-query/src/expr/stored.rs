//! Comparisons of stored columns on their bytes.
//!
//! A scan compares a column of most rows with a constant or another column, and drops the row. To
//! make a value of the column, whose type can be any, takes longer than to compare its bytes. What
//! is NULL, damaged, or of a type that is not compared here has no result here:
//! [`Expr::eval`](super::Expr::eval) says what it is.

use std::cmp::Ordering;

use millpond_types::NumericRef;
use millpond_types::compare::compare_bytes;

use super::int::{of_column, of_value};
use super::{Env, Expr, Row};
use crate::{DataType, Value};

type Stored<'a> = (DataType, &'a [u8]);

/// The order of two operands, at least one of which is a column.
#[inline]
pub(super) fn compare(env: &Env<'_>, a: &Expr, b: &Expr) -> Option<Ordering> {
    let row = env.row;
    let value = match b {
        Expr::Const(value) => value,
        Expr::Param(number) => env.params.get(*number)?,
        Expr::Column(b) => {
            let Expr::Column(a) = a else { return None };
            return compare_columns(row.stored_value(*a)?, row.stored_value(*b)?);
        }
        _ => return None,
    };
    match (a, value) {
        (Expr::Column(a), _) => match of_value(value) {
            Some(int) => Some(of_column(row, *a)?.value.cmp(&int.value)),
            None => compare_other(row, *a, value),
        },
        (date, Value::Timestamp(value)) => {
            Some(midnight(row.stored_value(date_column(date)?)?)?.cmp(value))
        }
        _ => None,
    }
}

fn compare_other(row: Row<'_>, column: usize, value: &Value) -> Option<Ordering> {
    compare_with(row.stored_value(column)?, value)
}

/// The column that becomes a timestamp, by a cast or to be compared with one.
fn date_column(e: &Expr) -> Option<usize> {
    let date = match e {
        Expr::Cast(date, DataType::Timestamp(_), _) => date,
        Expr::Func(func, args) if func.is_date_in_order() => args.first()?,
        _ => return None,
    };
    match date {
        Expr::Column(column) => Some(*column),
        _ => None,
    }
}

/// A date as a timestamp. Dates that have none, and infinite ones, are not converted here.
fn midnight((ty, bytes): Stored<'_>) -> Option<i64> {
    const MICROS_OF_DAY: i64 = 86_400_000_000;
    // Within the range of timestamps.
    const MOST_DAYS: i32 = 1_000_000;
    let days = if ty == DataType::Date { four(bytes)? } else { return None };
    (-MOST_DAYS..MOST_DAYS).contains(&days).then(|| i64::from(days) * MICROS_OF_DAY)
}

/// Whether a column is among constants. `None` if it is not compared here, or a constant is NULL.
#[inline]
pub(super) fn is_among(row: Row<'_>, column: usize, list: &[Expr]) -> Option<bool> {
    let stored = row.stored_value(column)?;
    let mut found = false;
    for item in list {
        let Expr::Const(value) = item else { return None };
        found |= compare_with(stored, value)?.is_eq();
    }
    Some(found)
}

#[inline]
pub(super) fn compare_with((ty, bytes): Stored<'_>, value: &Value) -> Option<Ordering> {
    Some(match (ty, value) {
        (DataType::Text | DataType::Varchar(_) | DataType::Char(_), Value::Text(text)) => {
            compare_bytes(bytes, text.as_bytes())
        }
        (DataType::Numeric { .. }, Value::Numeric(value)) => {
            NumericRef::from_bytes(bytes)?.cmp(&value.as_ref())
        }
        (DataType::Date, Value::Date(value)) => four(bytes)?.cmp(value),
        (DataType::Timestamp(_), Value::Timestamp(value))
        | (DataType::Timestamptz(_), Value::Timestamptz(value)) => eight(bytes)?.cmp(value),
        (_, Value::Int2(value)) => int(ty, bytes)?.cmp(&(*value).into()),
        (_, Value::Int4(value)) => int(ty, bytes)?.cmp(&(*value).into()),
        (_, Value::Int8(value)) => int(ty, bytes)?.cmp(value),
        _ => return None,
    })
}

fn compare_columns((ty, a): Stored<'_>, (other, b): Stored<'_>) -> Option<Ordering> {
    use DataType::{Char, Date, Int2, Int4, Int8, Text, Timestamp, Timestamptz, Varchar};
    Some(match (ty, other) {
        (Date, Date) => four(a)?.cmp(&four(b)?),
        (Timestamp(_), Timestamp(_)) | (Timestamptz(_), Timestamptz(_)) => {
            eight(a)?.cmp(&eight(b)?)
        }
        (Int2 | Int4 | Int8, Int2 | Int4 | Int8) => int(ty, a)?.cmp(&int(other, b)?),
        (Text | Varchar(_) | Char(_), Text | Varchar(_) | Char(_)) => a.cmp(b),
        (DataType::Numeric { .. }, DataType::Numeric { .. }) => {
            NumericRef::from_bytes(a)?.cmp(&NumericRef::from_bytes(b)?)
        }
        _ => return None,
    })
}

#[inline]
fn int(ty: DataType, bytes: &[u8]) -> Option<i64> {
    match ty {
        DataType::Int2 => Some(i16::from_le_bytes(*bytes.first_chunk()?).into()),
        DataType::Int4 => Some(four(bytes)?.into()),
        DataType::Int8 => eight(bytes),
        _ => None,
    }
}

#[inline]
fn four(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(*bytes.first_chunk()?))
}

#[inline]
fn eight(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(*bytes.first_chunk()?))
}

impl<'a> Row<'a> {
    /// The type and the bytes of a stored column that is not NULL, if where columns begin is noted.
    #[inline]
    pub(super) fn stored_value(&self, column: usize) -> Option<Stored<'a>> {
        match self {
            Row::Scanned(layout, bytes, offsets) => layout.stored_value(bytes, offsets, column),
            Row::Slots(slots) => slots.stored_value(column),
            Row::Stored(..) | Row::Datums(_) | Row::None => None,
        }
    }
}
