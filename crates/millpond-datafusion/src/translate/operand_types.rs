//! The types that operands have, and that they are brought to.

use millpond_query::expr::Expr;
use millpond_types::{DataType, Datum, Value};

use super::Translated;
use crate::errors::Failure;
use crate::types::{MOST_DIGITS, arrow_type, compare_alike, is_text, numeric};

pub(super) fn declared_type(expr: &Expr) -> Option<DataType> {
    match expr {
        Expr::Cast(_, ty, _) => Some(*ty),
        Expr::Compare(..) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) | Expr::Like(_) => {
            Some(DataType::Bool)
        }
        _ => None,
    }
}

/// The type of a constant. A number has its digits.
pub(super) fn type_of(value: &Value) -> Option<DataType> {
    Some(match value.as_datum() {
        Datum::Numeric(number) => {
            let text = number.to_string();
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            let scale = i8::try_from(fraction.len()).ok()?;
            let digits = whole.trim_start_matches('-').len() + fraction.len();
            let precision = u8::try_from(digits).ok().filter(|digits| *digits <= MOST_DIGITS)?;
            numeric(precision.max(1), scale)
        }
        datum => millpond_query::expr::cast::type_of(&datum)?,
    })
}

pub(super) fn digits_of(ty: DataType) -> Option<(u16, u16)> {
    match ty {
        DataType::Numeric { precision_scale: Some((precision, scale)) } => {
            Some((precision, u16::try_from(scale).ok()?))
        }
        _ => None,
    }
}

pub(super) fn scale_of(ty: DataType) -> Option<u16> {
    digits_of(ty).map(|(_, scale)| scale)
}

pub(super) fn is_wider(from: DataType, to: DataType) -> bool {
    matches!(
        (from, to),
        (DataType::Int2, DataType::Int4 | DataType::Int8) | (DataType::Int4, DataType::Int8)
    )
}

/// The type that all of these become without loss.
pub(super) fn common_type(mut types: impl Iterator<Item = DataType>) -> Translated<DataType> {
    let first = types.next().ok_or(Failure::Declined)?;
    types.try_fold(first, |common, ty| {
        if let (Some((p1, s1)), Some((p2, s2))) = (digits_of(common), digits_of(ty)) {
            let scale = s1.max(s2);
            let precision = (p1 - s1).max(p2 - s2) + scale;
            if precision > u16::from(MOST_DIGITS) {
                return Err(Failure::Declined);
            }
            return Ok(numeric(precision as u8, scale as i8));
        }
        match (common, ty) {
            _ if common == ty => Ok(common),
            _ if is_wider(common, ty) => Ok(ty),
            _ if is_wider(ty, common) => Ok(common),
            _ if is_text(common) && is_text(ty) => Ok(DataType::Text),
            // They differ in the digits of seconds.
            _ if arrow_type(common) == arrow_type(ty) && compare_alike(common, ty) => Ok(common),
            _ => Err(Failure::Declined),
        }
    })
}
