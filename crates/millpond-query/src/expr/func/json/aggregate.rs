//! What the aggregates of JSON make of the values that they have taken in.

use millpond_types::other::RECORD;

use super::build::{key_text, members_of, text_value};
use super::encode::{jsonb_array_of, write_text};
use super::invalid;
use crate::error::Result;
use crate::types::FormatOptions;
use crate::types::array::array_of;
use crate::types::json::write_string;
use crate::{Datum, Value};

/// The result of `json_agg`: a list of the values, a list or an object among them on a line
/// of its own.
pub(crate) fn json_list(values: &[Value], options: &FormatOptions) -> Result<Value> {
    let mut out = vec![b'['];
    for (place, value) in values.iter().enumerate() {
        let value = value.as_datum();
        if place > 0 {
            out.extend_from_slice(b", ");
            if matches!(value, Datum::Other(RECORD, _)) || array_of(&value).is_some() {
                out.extend_from_slice(b"\n ");
            }
        }
        write_text(&value, options, &mut out)?;
    }
    out.push(b']');
    Ok(text_value(out))
}

/// The result of `jsonb_agg`.
pub(crate) fn jsonb_list(values: &[Value], options: &FormatOptions) -> Result<Value> {
    jsonb_array_of(values.iter().map(Value::as_datum), options)
}

/// Whether a value can be a name; else why not.
pub(crate) fn check_name(name: &Datum<'_>) -> Result<()> {
    if name.is_null() { Err(invalid("field name must not be null")) } else { Ok(()) }
}

/// The result of `json_object_agg` of names and values in turn.
pub(crate) fn json_object(values: &[Value], options: &FormatOptions) -> Result<Value> {
    let mut out = vec![b'{', b' '];
    for (place, pair) in values.chunks_exact(2).enumerate() {
        let [name, value] = pair else { continue };
        if place > 0 {
            out.extend_from_slice(b", ");
        }
        write_string(&key_text(&name.as_datum(), options)?, &mut out);
        out.extend_from_slice(b" : ");
        write_text(&value.as_datum(), options, &mut out)?;
    }
    out.extend_from_slice(b" }");
    Ok(text_value(out))
}

/// The result of `jsonb_object_agg` of the same: of equal names the last value counts.
pub(crate) fn jsonb_object(values: &[Value], options: &FormatOptions) -> Result<Value> {
    let datums: Vec<Datum<'_>> = values.iter().map(Value::as_datum).collect();
    members_of(&datums, options)
}
