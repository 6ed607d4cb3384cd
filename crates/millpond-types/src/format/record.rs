//! Records as text, `(1,"a b",)`, and in the binary format.

use crate::record::fields;

use super::{FormatOptions, binary, text};
use crate::DataType;

/// Appends a record's text.
pub(super) fn write(bytes: &[u8], options: &FormatOptions, out: &mut Vec<u8>) {
    out.push(b'(');
    for (place, field) in fields(bytes).enumerate() {
        if place > 0 {
            out.push(b',');
        }
        if !field.value.is_null() {
            let ty = DataType::from_oid(field.type_oid, -1).unwrap_or(DataType::Text);
            let mut value = Vec::new();
            text::encode(ty, &field.value, options, &mut value);
            write_field(&value, out);
        }
    }
    out.push(b')');
}

/// Appends a field, in quotes where it would be read as something else.
fn write_field(value: &[u8], out: &mut Vec<u8>) {
    let special = |byte: &u8| {
        matches!(byte, b'"' | b'\\' | b'(' | b')' | b',' | b'\x0b') || byte.is_ascii_whitespace()
    };
    if !value.is_empty() && !value.iter().any(special) {
        return out.extend_from_slice(value);
    }
    out.push(b'"');
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// Appends the binary form: the number of fields; then each one's type, length and bytes.
pub(super) fn encode_binary(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(fields(bytes).count() as u32).to_be_bytes());
    for field in fields(bytes) {
        out.extend_from_slice(&field.type_oid.to_be_bytes());
        let start = out.len();
        out.extend_from_slice(&(-1i32).to_be_bytes());
        if field.value.is_null() {
            continue;
        }
        let ty = DataType::from_oid(field.type_oid, -1).unwrap_or(DataType::Text);
        binary::encode(ty, &field.value, out);
        let length = (out.len() - start - 4) as u32;
        if let Some(slot) = out.get_mut(start..start + 4) {
            slot.copy_from_slice(&length.to_be_bytes());
        }
    }
}
