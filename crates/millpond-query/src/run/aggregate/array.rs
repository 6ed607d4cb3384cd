//! `array_agg`.

use millpond_types::array::{ArrayBuilder, ArrayRef, Dimension, MAX_DIMENSIONS};
use millpond_types::other;

use crate::error::{Result, SqlError, SqlState};
use crate::expr::check_length;
use crate::{DataType, Datum, Value};

/// An array of all values; of arrays one with a dimension more. NULL without a value.
pub(super) fn of_values(values: &[Value], ty: DataType) -> Result<Value> {
    let DataType::Other { oid, .. } = ty else {
        return Err(SqlError::internal("array_agg of a type without arrays"));
    };
    if values.is_empty() {
        return Ok(Value::Null);
    }
    let element = other::find(oid).and_then(|array| array.element);
    let element = element.ok_or_else(|| SqlError::internal("an array of no type"))?;
    let own = Dimension { length: length(values.len())?, lower: 1 };
    let is_array = |value: &Value| matches!(value, Value::Other(ty, _) if *ty == oid);
    let array = if values.iter().any(is_array) {
        // Arrays of arrays are arrays of more dimensions.
        of_arrays(values, oid, element, own)?
    } else {
        let mut array = ArrayBuilder::new(&[own]);
        for value in values {
            push(&mut array, &value.as_datum())?;
        }
        array
    };
    Ok(Value::Other(oid, array.finish()))
}

fn of_arrays(values: &[Value], oid: u32, element: u32, own: Dimension) -> Result<ArrayBuilder> {
    let mut inner: Option<Vec<Dimension>> = None;
    let mut parts = Vec::with_capacity(values.len());
    for value in values {
        let Value::Other(_, bytes) = value else {
            return Err(null_array());
        };
        let part = ArrayRef::from_bytes(element, bytes)
            .ok_or_else(|| SqlError::internal(format!("a damaged array of type {oid}")))?;
        if part.dimensions().is_empty() {
            let message = "cannot accumulate empty arrays";
            return Err(error(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        if *inner.get_or_insert_with(|| part.dimensions().to_vec()) != part.dimensions() {
            let message = "cannot accumulate arrays of different dimensionality";
            return Err(error(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        parts.push(part);
    }
    let mut dimensions = vec![own];
    dimensions.extend(inner.unwrap_or_default());
    if dimensions.len() > MAX_DIMENSIONS {
        let message = format!(
            "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
            dimensions.len()
        );
        return Err(error(SqlState::PROGRAM_LIMIT_EXCEEDED, &message));
    }
    let mut array = ArrayBuilder::new(&dimensions);
    for part in parts {
        check_length(array.len() + part.elements_len())?;
        array.push_all(&part);
    }
    Ok(array)
}

fn push(array: &mut ArrayBuilder, datum: &Datum<'_>) -> Result<()> {
    let too_large = || error(SqlState::PROGRAM_LIMIT_EXCEEDED, "array is too large");
    array.push(datum).ok_or_else(too_large)?;
    check_length(array.len())
}

fn length(count: usize) -> Result<u32> {
    let too_large = |_| error(SqlState::PROGRAM_LIMIT_EXCEEDED, "array is too large");
    u32::try_from(count).map_err(too_large)
}

#[cold]
pub(super) fn null_array() -> SqlError {
    error(SqlState::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays")
}

#[cold]
fn error(state: SqlState, message: &str) -> SqlError {
    SqlError::new(state, message)
}
