//! Values into Arrow's columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Decimal128Builder, Float32Builder, Float64Builder,
    Int16Builder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow::datatypes::DataType as ArrowType;
use millpond_query::{Result, SqlError, SqlState};
use millpond_types::{Datum, NumericRef};

/// One column being filled.
pub enum ColumnBuilder {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Decimal(Decimal128Builder, i8),
    Text(StringBuilder),
    Bytea(BinaryBuilder),
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
                Self::Decimal(builder.with_data_type(arrow.clone()), *scale)
            }
            ArrowType::Binary => Self::Bytea(BinaryBuilder::with_capacity(rows, rows * 16)),
            _ => Self::Text(StringBuilder::with_capacity(rows, rows * 16)),
        }
    }

    /// Appends a value of the column's type, or NULL.
    #[inline]
    pub fn push(&mut self, datum: Datum<'_>) -> Result<()> {
        match (self, datum) {
            (Self::Bool(builder), Datum::Bool(v)) => builder.append_value(v),
            (Self::Int2(builder), Datum::Int2(v)) => builder.append_value(v),
            (Self::Int4(builder), Datum::Int4(v) | Datum::Date(v)) => builder.append_value(v),
            (Self::Int8(builder), Datum::Int8(v) | Datum::Timestamp(v) | Datum::Timestamptz(v)) => {
                builder.append_value(v);
            }
            (Self::Float4(builder), Datum::Float4(v)) => builder.append_value(v),
            (Self::Float8(builder), Datum::Float8(v)) => builder.append_value(v),
            (Self::Text(builder), Datum::Text(v)) => builder.append_value(v),
            (Self::Bytea(builder), Datum::Bytea(v)) => builder.append_value(v),
            (Self::Decimal(builder, scale), Datum::Numeric(v)) => {
                builder.append_value(unscaled(v, *scale)?);
            }
            (builder, Datum::Null) => builder.push_null(),
            _ => return Err(SqlError::internal("a value of another type than its column")),
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
            Self::Decimal(builder, _) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Bytea(builder) => builder.append_null(),
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
            Self::Decimal(builder, _) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Bytea(builder) => Arc::new(builder.finish()),
        }
    }
}

/// The number times ten to the power of `scale`. It must have exactly `scale` digits after the
/// point, because a result's digits depend on those of what it is computed of.
fn unscaled(value: NumericRef<'_>, scale: i8) -> Result<i128> {
    u16::try_from(scale).ok().and_then(|scale| value.unscaled(scale)).ok_or_else(|| {
        SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "a number of another scale")
    })
}
