//! Checks the header line.

use super::{CopyRow, RowFormat, bad_format};
use millpond_query::error::Result;

/// Whether the line names exactly the columns.
pub(super) fn check_names(row: &CopyRow<'_>, format: &RowFormat) -> Result<()> {
    if row.len() != format.columns.len() {
        return Err(bad_format(format!(
            "wrong number of fields in header line: got {}, expected {}",
            row.len(),
            format.columns.len()
        )));
    }
    for (i, (field, column)) in row.iter().zip(&format.columns).enumerate() {
        if *field != Some(column.as_str()) {
            let got = match field {
                Some(name) => format!("\"{name}\""),
                None => format!("null value (\"{}\")", format.null),
            };
            return Err(bad_format(format!(
                "column name mismatch in header line field {}: got {got}, expected \"{column}\"",
                i + 1
            )));
        }
    }
    Ok(())
}
