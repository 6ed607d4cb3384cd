//! Encodes the values of result rows, and decodes the parameters of statements.

use super::frontend::{BadBytes, WireError};
use super::reply;
use millpond::types::{FormatOptions, binary, text};
use millpond::{ColumnDesc, DataType, Datum, Result, SqlError, SqlState, Value};
use millpond_sync::prefetch::prefetch;

/// The formats in which a portal's columns are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ResultFormats {
    /// All as text.
    #[default]
    Text,
    /// All as binary.
    Binary,
    /// One code for each column.
    Each(Box<[i16]>),
}

impl ResultFormats {
    /// The format code of a column.
    #[inline]
    pub fn of(&self, column: usize) -> i16 {
        match self {
            ResultFormats::Text => 0,
            ResultFormats::Binary => 1,
            ResultFormats::Each(codes) => codes.get(column).copied().unwrap_or(0),
        }
    }
}

/// How a column's values are encoded.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text,
    Binary,
    /// Binary, of a type that the engine stores as a wider integer: `oid`.
    Narrow,
    /// Binary, of a type whose text is also its binary form: `name`, `"char"`, arrays as literals.
    Verbatim,
}

/// Encodes the rows of one result. Statements reuse it, to reuse its memory.
#[derive(Debug, Default)]
pub struct RowCodec {
    columns: Vec<(DataType, Form)>,
    options: FormatOptions,
}

impl RowCodec {
    /// Prepares for rows of these columns.
    pub fn set(&mut self, columns: &[ColumnDesc], formats: &ResultFormats, options: FormatOptions) {
        self.options = options;
        self.columns.clear();
        self.columns.extend(columns.iter().enumerate().map(|(i, column)| {
            let form = match formats.of(i) {
                0 => Form::Text,
                _ if column.type_oid == column.ty.oid() => Form::Binary,
                _ if matches!(column.ty, DataType::Int8) => Form::Narrow,
                _ if column.ty.is_string() => Form::Verbatim,
                _ => Form::Binary,
            };
            (column.ty, form)
        }));
    }

    /// Prefetches its memory.
    pub fn prefetch(&self) {
        prefetch(&self.columns[..]);
    }

    /// Appends a DataRow.
    #[inline]
    pub fn data_row(&self, out: &mut Vec<u8>, row: &[Datum<'_>]) {
        let start = out.len();
        let [high, low] = (row.len() as u16).to_be_bytes();
        out.extend_from_slice(&[b'D', 0, 0, 0, 0, high, low]);
        for (i, value) in row.iter().enumerate() {
            if value.is_null() {
                out.extend_from_slice(&[0xff; 4]);
                continue;
            }
            let length_at = out.len();
            out.extend_from_slice(&[0; 4]);
            self.value(out, i, value);
            let length = (out.len() - length_at - 4) as u32;
            if let Some(place) = out.get_mut(length_at..length_at + 4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
        reply::end(out, start);
    }

    #[inline]
    fn value(&self, out: &mut Vec<u8>, column: usize, value: &Datum<'_>) {
        let (ty, form) = self.columns.get(column).copied().unwrap_or((DataType::Text, Form::Text));
        match (form, value) {
            (Form::Text, _) | (Form::Verbatim, Datum::Text(_)) => {
                text::encode(ty, value, &self.options, out);
            }
            // Object ids are unsigned and have 32 bits at most.
            (Form::Narrow, Datum::Int8(id)) => out.extend_from_slice(&(*id as u32).to_be_bytes()),
            _ => binary::encode(ty, value, out),
        }
    }
}

/// Decodes a parameter.
pub fn param(
    value: Option<&[u8]>,
    code: i16,
    ty: DataType,
    index: usize,
    options: &FormatOptions,
) -> Result<Value> {
    let Some(bytes) = value else { return Ok(Value::Null) };
    let decoded = match code {
        0 => std::str::from_utf8(bytes)
            .map_err(|e| {
                let message = WireError::Encoding(BadBytes::of(bytes, e)).to_string();
                SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
            })
            .and_then(|text| Ok(text::parse(ty, text::check_text(text)?, options)?)),
        1 => binary::decode(ty, bytes).map_err(SqlError::from),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unsupported format code: {code}"),
        )),
    };
    decoded.map_err(|error| match error.context {
        Some(_) => error,
        None => error.context(format!("unnamed portal parameter ${}", index + 1)),
    })
}
