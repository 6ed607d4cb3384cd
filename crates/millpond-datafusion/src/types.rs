//! Millpond's types as Arrow's: see the table in the crate's documentation.

use arrow::datatypes::DataType as ArrowType;
use millpond_types::DataType;

/// The digits that Arrow's narrower decimals have.
pub const MOST_DIGITS: u8 = 38;

/// The Arrow type that values of `ty` are computed in; `None` if they are not computed here.
pub fn arrow_type(ty: DataType) -> Option<ArrowType> {
    Some(match ty {
        DataType::Bool => ArrowType::Boolean,
        DataType::Int2 => ArrowType::Int16,
        DataType::Int4 | DataType::Date => ArrowType::Int32,
        DataType::Int8 | DataType::Oid | DataType::Timestamp(_) | DataType::Timestamptz(_) => {
            ArrowType::Int64
        }
        DataType::Float4 => ArrowType::Float32,
        DataType::Float8 => ArrowType::Float64,
        DataType::Numeric { precision_scale: Some((precision, scale)) } => {
            let precision = u8::try_from(precision).ok().filter(|digits| *digits <= MOST_DIGITS)?;
            let scale = u8::try_from(scale).ok().filter(|scale| *scale <= precision)?;
            ArrowType::Decimal128(precision, scale as i8)
        }
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
            ArrowType::Utf8
        }
        DataType::Bytea => ArrowType::Binary,
        DataType::Numeric { precision_scale: None } | DataType::Other { .. } => return None,
    })
}

/// The type of a decimal number with `precision` digits, of which `scale` are after the point.
pub fn numeric(precision: u8, scale: i8) -> DataType {
    DataType::Numeric { precision_scale: Some((precision.into(), scale.into())) }
}

pub fn is_integer(ty: DataType) -> bool {
    matches!(ty, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

pub fn is_numeric(ty: DataType) -> bool {
    matches!(ty, DataType::Numeric { .. })
}

pub fn is_text(ty: DataType) -> bool {
    matches!(ty, DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name)
}

/// Whether two values of these types compare in Arrow as they do in PostgreSQL. Floats don't: there
/// -0 equals 0.
pub fn compare_alike(left: DataType, right: DataType) -> bool {
    match (left, right) {
        (DataType::Float4 | DataType::Float8, _) => false,
        _ if is_integer(left) => is_integer(right),
        _ if is_numeric(left) => is_numeric(right),
        _ if is_text(left) => is_text(right),
        (DataType::Timestamp(_), DataType::Timestamp(_)) => true,
        (DataType::Timestamptz(_), DataType::Timestamptz(_)) => true,
        _ => left == right,
    }
}
