//! Values made to fit their columns: `varchar(n)`, `char(n)`, `name`, `numeric(p,s)`,
//! `timestamp(p)`.

use std::borrow::Cow;

use super::calendar::in_timestamp_range;
use super::interval::round_usecs;
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;
use crate::{DataType, Numeric, NumericRef};

/// How many bytes a `name` has at most.
const MAX_NAME: usize = 63;

/// Makes a string fit a column: too long a value is an error unless only spaces are lost, or cut
/// when the cast is explicit. A name is always cut. Values of `char(n)` lose their trailing spaces,
/// as they are stored.
pub fn coerce_text(ty: DataType, text: &str, explicit: bool) -> Result<&str> {
    let limit = match ty {
        DataType::Char(0) => usize::MAX,
        DataType::Varchar(Some(limit)) | DataType::Char(limit) => limit as usize,
        DataType::Name => return Ok(&text[..text.floor_char_boundary(MAX_NAME)]),
        _ => return Ok(text),
    };
    let fitting = if text.len() <= limit {
        text
    } else {
        match text.char_indices().nth(limit) {
            None => text,
            Some((end, _)) => {
                let (kept, lost) = text.split_at(end);
                if !explicit && lost.bytes().any(|byte| byte != b' ') {
                    return Err(DataException::new(
                        SqlState::STRING_DATA_RIGHT_TRUNCATION,
                        format!("value too long for type {ty}"),
                    ));
                }
                kept
            }
        }
    };
    Ok(if matches!(ty, DataType::Char(_)) { fitting.trim_end_matches(' ') } else { fitting })
}

/// A string as clients see it: `char(n)` with its padding.
pub fn pad(ty: DataType, text: &str) -> Cow<'_, str> {
    let missing = missing_spaces(ty, text);
    if missing == 0 {
        return Cow::Borrowed(text);
    }
    let mut padded = String::with_capacity(text.len() + missing);
    padded.push_str(text);
    padded.extend(std::iter::repeat_n(' ', missing));
    Cow::Owned(padded)
}

/// How many spaces `char(n)` prints after the text.
pub(super) fn missing_spaces(ty: DataType, text: &str) -> usize {
    match ty {
        DataType::Char(width) => (width as usize).saturating_sub(if text.is_ascii() {
            text.len()
        } else {
            text.chars().count()
        }),
        _ => 0,
    }
}

/// Makes a number fit a column: rounds to its scale, fails when it exceeds its precision.
pub fn coerce_numeric(ty: DataType, value: NumericRef<'_>) -> Result<Numeric> {
    match ty {
        DataType::Numeric { precision_scale: Some((precision, scale)) } => {
            value.with_precision(precision, scale).map_err(DataException::from)
        }
        _ => Ok(value.to_owned()),
    }
}

/// Rounds a time stamp to the digits after the second's point that its column has.
pub fn fit_timestamp(digits: Option<u8>, stamp: i64) -> Result<i64> {
    let (Some(digits), false) = (digits, matches!(stamp, i64::MAX | i64::MIN)) else {
        return Ok(stamp);
    };
    round_usecs(stamp, digits.into()).filter(|rounded| in_timestamp_range(*rounded)).ok_or_else(
        || DataException::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"),
    )
}
