//! Rows into Arrow's columns: what a scan hands to DataFusion.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Decimal256Builder,
    Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, i256};

use super::types::{EPOCH_DAYS, EPOCH_US};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_types::{Datum, NumericRef};

/// One column being filled.
pub enum ColumnBuilder {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Decimal128(Decimal128Builder, i8),
    Decimal256(Decimal256Builder, i8),
    Text(StringBuilder),
    Bytea(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl ColumnBuilder {
    /// An empty column of a type that [`arrow_type`](super::types::arrow_type) makes, with room for
    /// `rows`.
    pub fn new(arrow: &ArrowType, rows: usize) -> Self {
        match arrow {
            ArrowType::Boolean => Self::Bool(BooleanBuilder::with_capacity(rows)),
            ArrowType::Int16 => Self::Int2(Int16Builder::with_capacity(rows)),
            ArrowType::Int32 => Self::Int4(Int32Builder::with_capacity(rows)),
            ArrowType::Int64 => Self::Int8(Int64Builder::with_capacity(rows)),
            ArrowType::Float32 => Self::Float4(Float32Builder::with_capacity(rows)),
            ArrowType::Float64 => Self::Float8(Float64Builder::with_capacity(rows)),
            ArrowType::Decimal128(_, scale) => {
                let builder = Decimal128Builder::with_capacity(rows);
                Self::Decimal128(builder.with_data_type(arrow.clone()), *scale)
            }
            ArrowType::Decimal256(_, scale) => {
                let builder = Decimal256Builder::with_capacity(rows);
                Self::Decimal256(builder.with_data_type(arrow.clone()), *scale)
            }
            ArrowType::Binary => Self::Bytea(BinaryBuilder::with_capacity(rows, rows * 16)),
            ArrowType::Date32 => Self::Date(Date32Builder::with_capacity(rows)),
            ArrowType::Timestamp(..) => {
                let builder = TimestampMicrosecondBuilder::with_capacity(rows);
                Self::Timestamp(builder.with_data_type(arrow.clone()))
            }
            _ => Self::Text(StringBuilder::with_capacity(rows, rows * 16)),
        }
    }

    /// Appends a value of the column's type, or NULL.
    #[inline]
    pub fn push(&mut self, datum: Datum<'_>) -> Result<()> {
        match (self, datum) {
            (Self::Bool(builder), Datum::Bool(v)) => builder.append_value(v),
            (Self::Int2(builder), Datum::Int2(v)) => builder.append_value(v),
            (Self::Int4(builder), Datum::Int4(v)) => builder.append_value(v),
            (Self::Int8(builder), Datum::Int8(v)) => builder.append_value(v),
            (Self::Float4(builder), Datum::Float4(v)) => builder.append_value(v),
            (Self::Float8(builder), Datum::Float8(v)) => builder.append_value(v),
            (Self::Text(builder), Datum::Text(v)) => builder.append_value(v),
            (Self::Bytea(builder), Datum::Bytea(v)) => builder.append_value(v),
            (Self::Date(builder), Datum::Date(v)) => builder.append_value(unix_days(v)),
            (Self::Timestamp(builder), Datum::Timestamp(v) | Datum::Timestamptz(v)) => {
                builder.append_value(unix_us(v));
            }
            (Self::Decimal128(builder, scale), Datum::Numeric(v)) => {
                let unscaled = unscaled(v, *scale)?;
                builder.append_value(unscaled.to_i128().ok_or_else(out_of_range)?);
            }
            (Self::Decimal256(builder, scale), Datum::Numeric(v)) => {
                builder.append_value(unscaled(v, *scale)?);
            }
            (builder, Datum::Null) => builder.push_null(),
            (_, Datum::Other(oid, _)) => {
                let ty = millpond_types::DataType::Other { oid, typmod: -1 };
                return Err(SqlError::unsupported(format!("a value of type {ty} in this query")));
            }
            _ => {
                return Err(SqlError::internal(
                    "a row holds a value of another type than its column",
                ));
            }
        }
        Ok(())
    }

    fn push_null(&mut self) {
        match self {
            Self::Bool(builder) => builder.append_null(),
            Self::Int2(builder) => builder.append_null(),
            Self::Int4(builder) => builder.append_null(),
            Self::Int8(builder) => builder.append_null(),
            Self::Float4(builder) => builder.append_null(),
            Self::Float8(builder) => builder.append_null(),
            Self::Decimal128(builder, _) => builder.append_null(),
            Self::Decimal256(builder, _) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Bytea(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Timestamp(builder) => builder.append_null(),
        }
    }

    /// The column so far; the builder is empty afterwards.
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(builder) => Arc::new(builder.finish()),
            Self::Int2(builder) => Arc::new(builder.finish()),
            Self::Int4(builder) => Arc::new(builder.finish()),
            Self::Int8(builder) => Arc::new(builder.finish()),
            Self::Float4(builder) => Arc::new(builder.finish()),
            Self::Float8(builder) => Arc::new(builder.finish()),
            Self::Decimal128(builder, _) => Arc::new(builder.finish()),
            Self::Decimal256(builder, _) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Bytea(builder) => Arc::new(builder.finish()),
            Self::Date(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder) => Arc::new(builder.finish()),
        }
    }
}

/// Days since 1970; the infinities stay what they are.
fn unix_days(days: i32) -> i32 {
    if days == i32::MAX || days == i32::MIN { days } else { days.saturating_add(EPOCH_DAYS) }
}

/// Microseconds since 1970; the infinities stay what they are.
pub fn unix_us(us: i64) -> i64 {
    if us == i64::MAX || us == i64::MIN { us } else { us.saturating_add(EPOCH_US) }
}

fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric value out of range for this query")
        .detail("Computations outside key access hold 76 digits, 20 of them after the point unless the column says otherwise.")
}

/// The number times ten to the power of `scale`, which must be a whole number.
fn unscaled(value: NumericRef<'_>, scale: i8) -> Result<i256> {
    let text = value.to_string();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = usize::try_from(scale).map_err(|_| out_of_range())?;
    let kept = &fraction[..fraction.len().min(scale)];
    let lost = &fraction[kept.len()..];
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'.')
        || lost.bytes().any(|digit| digit != b'0')
    {
        return Err(out_of_range());
    }
    let mut number = String::with_capacity(whole.len() + scale + 1);
    if negative {
        number.push('-');
    }
    number.push_str(whole);
    number.push_str(kept);
    number.extend(std::iter::repeat_n('0', scale - kept.len()));
    i256::from_string(&number).ok_or_else(out_of_range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::arrow_type;
    use datafusion::arrow::array::{Array, Decimal256Array};
    use millpond_types::DataType;

    #[test]
    fn numerics_keep_their_value_or_say_so() {
        let parse = |text: &str| {
            millpond_types::format::text::parse(
                DataType::Numeric { precision_scale: None },
                text,
                &millpond_types::format::FormatOptions::default(),
            )
        };
        let free = arrow_type(DataType::Numeric { precision_scale: None });
        let mut builder = ColumnBuilder::new(&free, 4);
        for text in ["1.5", "-0.00000000000000000001", "12345678901234567890"] {
            builder.push(parse(text).unwrap().as_datum()).unwrap();
        }
        assert!(builder.push(parse("0.000000000000000000001").unwrap().as_datum()).is_err());
        assert!(builder.push(parse("NaN").unwrap().as_datum()).is_err());
        let array = builder.finish();
        let decimals = array.as_any().downcast_ref::<Decimal256Array>().unwrap();
        assert_eq!(decimals.len(), 3);
        assert_eq!(decimals.value_as_string(1), "-0.00000000000000000001");
    }
}
