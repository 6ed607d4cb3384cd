//! Values on the wire: rows of a result, parameters of a statement.

use super::reply;
use crate::proto::sink::ResultFormats;
use millpond::types::{binary, text};
use millpond::{DataType, Datum, Result, SqlError, SqlState, Value};

/// Appends a DataRow.
#[inline]
pub fn data_row(out: &mut Vec<u8>, row: &[Datum<'_>], formats: &ResultFormats) -> Result<()> {
    let start = reply::begin(out, b'D');
    out.extend_from_slice(&(row.len() as u16).to_be_bytes());
    for (i, value) in row.iter().enumerate() {
        if value.is_null() {
            out.extend_from_slice(&[0xff; 4]);
            continue;
        }
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        if formats.of(i) == 0 {
            text::encode(value, out);
        } else {
            binary::encode(value, out);
        }
        let length = (out.len() - length_at - 4) as u32;
        if let Some(place) = out.get_mut(length_at..length_at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
    reply::end(out, start);
    Ok(())
}

/// Decodes a parameter.
pub fn param(value: Option<&[u8]>, code: i16, ty: DataType, index: usize) -> Result<Value> {
    let Some(bytes) = value else { return Ok(Value::Null) };
    let context = |error: SqlError| error.context(format!("parameter ${}", index + 1));
    match code {
        0 => {
            let text = std::str::from_utf8(bytes).map_err(|e| {
                let bad = super::frontend::BadBytes::of(bytes, e);
                let message = super::frontend::WireError::Encoding(bad).to_string();
                context(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message))
            })?;
            text::parse(ty, text).map_err(|e| context(e.into()))
        }
        1 => binary::decode(ty, bytes).map_err(|e| context(e.into())),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unsupported format code: {code}"),
        )),
    }
}
