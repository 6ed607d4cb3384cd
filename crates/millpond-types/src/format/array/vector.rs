//! `int2vector` and `oidvector` as text: numbers with spaces between.

use crate::array::{ArrayRef, Dimension};

use super::build;
use crate::error::{DataException, Result};
use crate::format::{FormatOptions, text};
use crate::sqlstate::SqlState;
use crate::{DataType, Value, other};

fn element_of(oid: u32) -> Option<DataType> {
    DataType::from_oid(other::find(oid)?.element?, -1)
}

/// Appends a vector's text.
pub(in crate::format) fn write(oid: u32, bytes: &[u8], options: &FormatOptions, out: &mut Vec<u8>) {
    let Some(element) = element_of(oid) else { return };
    let Some(vector) = ArrayRef::from_bytes(element.oid(), bytes) else { return };
    for (place, value) in vector.iter().enumerate() {
        if place > 0 {
            out.push(b' ');
        }
        text::encode(element, &value, options, out);
    }
}

/// Reads a vector.
pub(in crate::format) fn parse(oid: u32, input: &str, options: &FormatOptions) -> Result<Value> {
    let Some(element) = element_of(oid) else {
        return Err(DataException::new(SqlState::INTERNAL_ERROR, "a vector of no type"));
    };
    let mut values = Vec::new();
    for word in input.split_ascii_whitespace() {
        values.push(text::parse(element, word, options)?);
    }
    let dimension = Dimension { length: values.len() as u32, lower: 0 };
    build(oid, &[dimension], values.iter().map(Value::as_datum))
}
