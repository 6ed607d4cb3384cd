//! `json` and `jsonb`: read, and written.

mod parse;

use crate::jsonb::write::{MAX_LENGTH, TooLong};
use crate::jsonb::{Json, is_too_deep};

use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

pub use parse::{Reader, to_jsonb};

/// Checks that a text is JSON. Characters that no text can hold may be there as escapes.
pub(super) fn check(text: &str) -> Result<()> {
    let mut reader = Reader::of_escapes(text);
    reader.value(0, None)?;
    reader.end()
}

#[cold]
fn syntax(detail: impl Into<String>) -> DataException {
    DataException::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
        .detail(detail)
}

/// An error if a value that was made of others nests too deep: 54001.
pub fn check_depth(bytes: &[u8]) -> Result<()> {
    match Json::from_bytes(bytes) {
        Some(value) if is_too_deep(value) => Err(too_deep()),
        _ => Ok(()),
    }
}

#[cold]
fn too_deep() -> DataException {
    DataException::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
}

/// A value would not fit: 54000.
#[cold]
pub fn too_long(what: TooLong) -> DataException {
    let error = |message: String| DataException::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
    let parts = match what {
        TooLong::String => {
            let message = "string too long to represent as jsonb string".to_owned();
            return error(message).detail(format!(
                "Due to an implementation restriction, jsonb strings cannot exceed {MAX_LENGTH} \
                 bytes."
            ));
        }
        TooLong::Array => "array",
        TooLong::Object => "object",
    };
    error(format!("total size of jsonb {parts} elements exceeds the maximum of {MAX_LENGTH} bytes"))
}

/// Appends the text of a value. Values nest no deeper than they are read.
pub fn write(value: Json<'_>, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        Json::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Json::String(text) => write_string(text, out),
        Json::Array(array) => {
            out.push(b'[');
            for (place, (element, _)) in array.iter().enumerate() {
                if place > 0 {
                    out.extend_from_slice(b", ");
                }
                write(element, out);
            }
            out.push(b']');
        }
        Json::Object(object) => {
            out.push(b'{');
            for (place, (name, value, _)) in object.iter().enumerate() {
                if place > 0 {
                    out.extend_from_slice(b", ");
                }
                write_string(name, out);
                out.extend_from_slice(b": ");
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// How many bytes `write_string` appends.
pub fn escaped_length(text: &str) -> usize {
    let escaped = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..0x20 => "\\u0000".len(),
        _ => 1,
    });
    escaped.sum::<usize>() + 2
}

/// Appends a string in quotes.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| *byte >= 0x20 && !matches!(*byte, b'"' | b'\\');
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| !is_plain(byte)) {
        let (plain, after) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((&byte, after)) = after.split_first() else { break };
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            quoted => out.extend_from_slice(&[b'\\', quoted]),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
