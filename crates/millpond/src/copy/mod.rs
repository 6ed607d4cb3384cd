//! The row formats of COPY: text and csv, read as a stream that may be cut anywhere, and written.
//!
//! [`RowReader`] finds rows and fields; the values are read by [`millpond_types::format::text`]. A
//! line without escapes or quotes, as nearly all are, is cut in place without copying a byte.

mod encoding;
mod fields;
mod header;
mod line;
mod reader;
mod writer;

use millpond_query::error::{SqlError, SqlState};
pub use reader::RowReader;
pub(crate) use reader::shown;
use smallvec::SmallVec;
pub use writer::RowWriter;

/// One row: a text or NULL per column. The last ones may be missing.
pub type CopyRow<'a> = SmallVec<[Option<&'a str>; 16]>;

/// How rows are written. The lists have an entry per column, or are empty.
#[derive(Debug, Clone)]
pub struct RowFormat {
    /// Comma-separated values instead of PostgreSQL's text format.
    pub csv: bool,
    /// Between fields; one ASCII character.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// Whether the first line names the columns.
    pub header: bool,
    /// Whether that line must name exactly these columns.
    pub header_match: bool,
    /// Around fields of a csv.
    pub quote: u8,
    /// Before quotes inside of quoted fields.
    pub escape: u8,
    /// Names of the columns, in order.
    pub columns: Vec<String>,
    /// Columns that are always quoted.
    pub force_quote: Vec<bool>,
    /// Columns in which the unquoted null string is an ordinary value.
    pub force_not_null: Vec<bool>,
    /// Columns in which the null string is NULL even when quoted.
    pub force_null: Vec<bool>,
}

impl RowFormat {
    /// PostgreSQL's text format for these columns.
    pub fn text(columns: Vec<String>) -> Self {
        Self {
            csv: false,
            delimiter: b'\t',
            null: "\\N".to_owned(),
            header: false,
            header_match: false,
            quote: b'"',
            escape: b'"',
            columns,
            force_quote: Vec::new(),
            force_not_null: Vec::new(),
            force_null: Vec::new(),
        }
    }

    /// csv for these columns.
    pub fn csv(columns: Vec<String>) -> Self {
        Self { csv: true, delimiter: b',', null: String::new(), ..Self::text(columns) }
    }
}

#[cold]
fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

#[cfg(test)]
mod tests;
