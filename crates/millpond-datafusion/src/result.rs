//! DataFusion's batches into rows for a [`RowSink`].

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Decimal256Type, Field, Float32Type,
    Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};

use super::errors::from_arrow;
use super::types::{EPOCH_DAYS, EPOCH_US, has_free_scale, result_type};
use millpond_query::error::{Result, SqlError};
use millpond_types::{DataType, Datum, Numeric, Value};

/// The columns of one batch, readable row by row.
pub struct ResultBatch {
    columns: Vec<Column>,
    rows: usize,
}

enum Column {
    Bool(BooleanArray),
    Int2(Int16Array),
    Int4(Int32Array),
    Int8(Int64Array),
    Float4(Float32Array),
    Float8(Float64Array),
    Numeric(Vec<Option<Numeric>>),
    Text(StringArray),
    Bytea(BinaryArray),
    Date(Date32Array),
    Timestamp(TimestampMicrosecondArray),
    Timestamptz(TimestampMicrosecondArray),
}

impl ResultBatch {
    /// Brings every column to the type that rows are read from.
    pub fn new(batch: &RecordBatch) -> Result<Self> {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns());
        let columns =
            columns.map(|(field, array)| Column::new(field, array)).collect::<Result<_>>()?;
        Ok(Self { columns, rows: batch.num_rows() })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Puts the values of one row into `row`, which is emptied first.
    pub fn row<'b>(&'b self, index: usize, row: &mut Vec<Datum<'b>>) {
        row.clear();
        row.extend(self.columns.iter().map(|column| column.datum(index)));
    }
}

impl Column {
    fn new(field: &Field, array: &ArrayRef) -> Result<Self> {
        let wanted = result_type(array.data_type()).ok_or_else(|| {
            SqlError::unsupported(format_args!(
                "a result of type {} in column \"{}\"",
                array.data_type(),
                field.name()
            ))
        })?;
        let array = if *array.data_type() == wanted {
            array.clone()
        } else {
            cast(array, &wanted).map_err(from_arrow)?
        };
        Ok(match &wanted {
            ArrowType::Boolean => Self::Bool(array.as_boolean().clone()),
            ArrowType::Int16 => Self::Int2(array.as_primitive::<Int16Type>().clone()),
            ArrowType::Int32 => Self::Int4(array.as_primitive::<Int32Type>().clone()),
            ArrowType::Int64 => Self::Int8(array.as_primitive::<Int64Type>().clone()),
            ArrowType::Float32 => Self::Float4(array.as_primitive::<Float32Type>().clone()),
            ArrowType::Float64 => Self::Float8(array.as_primitive::<Float64Type>().clone()),
            ArrowType::Binary => Self::Bytea(array.as_binary::<i32>().clone()),
            ArrowType::Date32 => Self::Date(array.as_primitive::<Date32Type>().clone()),
            ArrowType::Timestamp(_, zone) => {
                let array = array.as_primitive::<TimestampMicrosecondType>().clone();
                if zone.is_some() { Self::Timestamptz(array) } else { Self::Timestamp(array) }
            }
            ArrowType::Decimal128(..) => {
                let decimals: &Decimal128Array = array.as_primitive::<Decimal128Type>();
                Self::Numeric(numerics(field, decimals, |row| decimals.value_as_string(row))?)
            }
            ArrowType::Decimal256(..) => {
                let decimals: &Decimal256Array = array.as_primitive::<Decimal256Type>();
                Self::Numeric(numerics(field, decimals, |row| decimals.value_as_string(row))?)
            }
            _ => Self::Text(array.as_string::<i32>().clone()),
        })
    }

    fn datum(&self, row: usize) -> Datum<'_> {
        match self {
            Self::Bool(array) if array.is_valid(row) => Datum::Bool(array.value(row)),
            Self::Int2(array) if array.is_valid(row) => Datum::Int2(array.value(row)),
            Self::Int4(array) if array.is_valid(row) => Datum::Int4(array.value(row)),
            Self::Int8(array) if array.is_valid(row) => Datum::Int8(array.value(row)),
            Self::Float4(array) if array.is_valid(row) => Datum::Float4(array.value(row)),
            Self::Float8(array) if array.is_valid(row) => Datum::Float8(array.value(row)),
            Self::Text(array) if array.is_valid(row) => Datum::Text(array.value(row)),
            Self::Bytea(array) if array.is_valid(row) => Datum::Bytea(array.value(row)),
            Self::Date(array) if array.is_valid(row) => Datum::Date(days(array.value(row))),
            Self::Timestamp(array) if array.is_valid(row) => Datum::Timestamp(us(array.value(row))),
            Self::Timestamptz(array) if array.is_valid(row) => {
                Datum::Timestamptz(us(array.value(row)))
            }
            Self::Numeric(values) => match &values[row] {
                Some(value) => Datum::Numeric(value.as_ref()),
                None => Datum::Null,
            },
            _ => Datum::Null,
        }
    }
}

fn numerics(
    field: &Field,
    array: &dyn Array,
    text_of: impl Fn(usize) -> String,
) -> Result<Vec<Option<Numeric>>> {
    let free_scale = has_free_scale(field);
    let options = millpond_types::format::FormatOptions::default();
    let numeric = |row| {
        if array.is_null(row) {
            return Ok(None);
        }
        let text = text_of(row);
        let shown = if free_scale { without_trailing_zeros(&text) } else { &text };
        match millpond_types::format::text::parse(
            DataType::Numeric { precision_scale: None },
            shown,
            &options,
        )? {
            Value::Numeric(numeric) => Ok(Some(numeric)),
            _ => Err(SqlError::internal("a decimal did not parse as numeric")),
        }
    };
    (0..array.len()).map(numeric).collect()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Days since 2000; the infinities stay what they are.
fn days(unix: i32) -> i32 {
    if unix == i32::MAX || unix == i32::MIN { unix } else { unix.saturating_sub(EPOCH_DAYS) }
}

/// Microseconds since 2000; the infinities stay what they are.
fn us(unix: i64) -> i64 {
    if unix == i64::MAX || unix == i64::MIN { unix } else { unix.saturating_sub(EPOCH_US) }
}
