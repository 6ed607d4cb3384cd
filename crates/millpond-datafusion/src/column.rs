//! Arrow's columns as values, row by row.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use millpond_query::{Result, SqlError};
use millpond_types::{DataType, Datum, Numeric};

/// A column of a batch, whose values are of a type.
pub enum Column {
    Bool(BooleanArray),
    Int2(Int16Array),
    Int4(Int32Array),
    Int8(Int64Array),
    Float4(Float32Array),
    Float8(Float64Array),
    Numeric(Vec<Option<Numeric>>),
    Text(StringArray),
    Bytea(BinaryArray),
    Date(Int32Array),
    Timestamp(Int64Array),
    Timestamptz(Int64Array),
}

impl Column {
    /// An error if the array is not what values of `ty` are computed in.
    pub fn new(ty: DataType, array: &ArrayRef) -> Result<Self> {
        let other = || SqlError::internal(format!("a column of {} for {ty}", array.data_type()));
        Ok(match ty {
            DataType::Bool => Self::Bool(array.as_boolean_opt().ok_or_else(other)?.clone()),
            DataType::Int2 => {
                Self::Int2(array.as_primitive_opt::<Int16Type>().ok_or_else(other)?.clone())
            }
            DataType::Int4 => {
                Self::Int4(array.as_primitive_opt::<Int32Type>().ok_or_else(other)?.clone())
            }
            DataType::Int8 | DataType::Oid => {
                Self::Int8(array.as_primitive_opt::<Int64Type>().ok_or_else(other)?.clone())
            }
            DataType::Float4 => {
                Self::Float4(array.as_primitive_opt::<Float32Type>().ok_or_else(other)?.clone())
            }
            DataType::Float8 => {
                Self::Float8(array.as_primitive_opt::<Float64Type>().ok_or_else(other)?.clone())
            }
            DataType::Numeric { .. } => Self::Numeric(numerics(array).ok_or_else(other)?),
            DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
                Self::Text(array.as_string_opt().ok_or_else(other)?.clone())
            }
            DataType::Bytea => Self::Bytea(array.as_binary_opt().ok_or_else(other)?.clone()),
            DataType::Date => {
                Self::Date(array.as_primitive_opt::<Int32Type>().ok_or_else(other)?.clone())
            }
            DataType::Timestamp(_) => {
                Self::Timestamp(array.as_primitive_opt::<Int64Type>().ok_or_else(other)?.clone())
            }
            DataType::Timestamptz(_) => {
                Self::Timestamptz(array.as_primitive_opt::<Int64Type>().ok_or_else(other)?.clone())
            }
            DataType::Other { .. } => return Err(other()),
        })
    }

    /// The value in a row.
    pub fn datum(&self, row: usize) -> Datum<'_> {
        match self {
            Self::Bool(array) if array.is_valid(row) => Datum::Bool(array.value(row)),
            Self::Int2(array) if array.is_valid(row) => Datum::Int2(array.value(row)),
            Self::Int4(array) if array.is_valid(row) => Datum::Int4(array.value(row)),
            Self::Int8(array) if array.is_valid(row) => Datum::Int8(array.value(row)),
            Self::Float4(array) if array.is_valid(row) => Datum::Float4(array.value(row)),
            Self::Float8(array) if array.is_valid(row) => Datum::Float8(array.value(row)),
            Self::Text(array) if array.is_valid(row) => Datum::Text(array.value(row)),
            Self::Bytea(array) if array.is_valid(row) => Datum::Bytea(array.value(row)),
            Self::Date(array) if array.is_valid(row) => Datum::Date(array.value(row)),
            Self::Timestamp(array) if array.is_valid(row) => Datum::Timestamp(array.value(row)),
            Self::Timestamptz(array) if array.is_valid(row) => Datum::Timestamptz(array.value(row)),
            Self::Numeric(values) => values
                .get(row)
                .and_then(Option::as_ref)
                .map_or(Datum::Null, |value| Datum::Numeric(value.as_ref())),
            _ => Datum::Null,
        }
    }
}

/// The columns of a batch, of these types.
pub fn columns(types: &[DataType], batch: &RecordBatch) -> Result<Vec<Column>> {
    types.iter().zip(batch.columns()).map(|(ty, array)| Column::new(*ty, array)).collect()
}

fn numerics(array: &ArrayRef) -> Option<Vec<Option<Numeric>>> {
    let decimals = array.as_primitive_opt::<Decimal128Type>()?;
    let scale = u16::try_from(decimals.scale()).ok()?;
    let number = |value: Option<i128>| match value {
        Some(value) => Numeric::from_unscaled(value, scale).map(Some),
        None => Some(None),
    };
    decimals.iter().map(number).collect()
}
