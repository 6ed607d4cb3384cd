//! Writing rows.

use super::RowFormat;
use crate::{DataType, Datum};
use millpond_types::format::{FormatOptions, text};

/// Writes rows in a format.
#[derive(Debug)]
pub struct RowWriter {
    format: RowFormat,
    field: Vec<u8>,
}

impl RowWriter {
    /// A writer of rows in this format.
    pub fn new(format: RowFormat) -> Self {
        Self { format, field: Vec::new() }
    }

    /// Appends the header line, if the format has one.
    pub fn header(&mut self, out: &mut Vec<u8>) {
        if !self.format.header {
            return;
        }
        for (i, column) in self.format.columns.iter().enumerate() {
            self.format.start_field(i, out);
            self.format.write_field(column.as_bytes(), false, self.format.columns.len() == 1, out);
        }
        out.push(b'\n');
    }

    /// Appends a row with its newline.
    pub fn row(
        &mut self,
        types: &[DataType],
        row: &[Datum<'_>],
        options: &FormatOptions,
        out: &mut Vec<u8>,
    ) {
        for (i, (ty, datum)) in types.iter().zip(row).enumerate() {
            self.format.start_field(i, out);
            if datum.is_null() {
                out.extend_from_slice(self.format.null.as_bytes());
                continue;
            }
            self.field.clear();
            text::encode(*ty, datum, options, &mut self.field);
            let force = self.format.force_quote.get(i).copied().unwrap_or(false);
            self.format.write_field(&self.field, force, row.len() == 1, out);
        }
        out.push(b'\n');
    }
}

impl RowFormat {
    fn start_field(&self, column: usize, out: &mut Vec<u8>) {
        if column > 0 {
            out.push(self.delimiter);
        }
    }

    fn write_field(&self, field: &[u8], force_quote: bool, only: bool, out: &mut Vec<u8>) {
        if self.csv {
            self.write_csv(field, force_quote, only, out);
        } else {
            self.write_text(field, out);
        }
    }

    fn write_text(&self, field: &[u8], out: &mut Vec<u8>) {
        for &byte in field {
            let escaped = match byte {
                8 => b'b',
                9 => b't',
                10 => b'n',
                11 => b'v',
                12 => b'f',
                13 => b'r',
                b'\\' => b'\\',
                _ if byte == self.delimiter => byte,
                _ => {
                    out.push(byte);
                    continue;
                }
            };
            out.extend([b'\\', escaped]);
        }
    }

    fn write_csv(&self, field: &[u8], force_quote: bool, only: bool, out: &mut Vec<u8>) {
        let special = |&byte: &u8| {
            byte == self.delimiter || byte == self.quote || byte == b'\n' || byte == b'\r'
        };
        let quote = force_quote
            || field == self.null.as_bytes()
            || field.iter().any(special)
            || only && field == b"\\.";
        if !quote {
            return out.extend_from_slice(field);
        }
        out.push(self.quote);
        for &byte in field {
            if byte == self.quote || byte == self.escape {
                out.push(self.escape);
            }
            out.push(byte);
        }
        out.push(self.quote);
    }
}
