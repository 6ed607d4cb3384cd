//! Rows of bytes in one piece of memory.
//!
//! A statement that keeps a million rows in a million allocations frees them one by one. A client
//! that cancels it waits for that.

use super::row_bytes;
use crate::Datum;
use crate::error::Result;

/// What a row takes beside its bytes.
const BYTES_OF_ROW: usize = size_of::<usize>();

/// Rows by their numbers, from 0.
#[derive(Debug, Default)]
pub(crate) struct ByteRows {
    bytes: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl ByteRows {
    /// Adds a row, and says how many bytes it takes.
    pub(crate) fn push(&mut self, row: &[u8]) -> usize {
        self.bytes.extend_from_slice(row);
        self.end_row()
    }

    /// Adds a row of values, as [`row_bytes`] has them, and says how many bytes it takes.
    pub(crate) fn push_values(&mut self, row: &[Datum<'_>]) -> Result<usize> {
        let start = self.bytes.len();
        let pushed = row_bytes::push(row, &mut self.bytes);
        pushed.inspect_err(|_| self.bytes.truncate(start))?;
        Ok(self.end_row())
    }

    fn end_row(&mut self) -> usize {
        let start = self.ends.last().copied().unwrap_or_default();
        self.ends.push(self.bytes.len());
        self.bytes.len() - start + BYTES_OF_ROW
    }

    /// A row by its number.
    pub(crate) fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = match number.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_numbers() {
        let mut rows = ByteRows::default();
        assert_eq!(rows.push(b"one"), 3 + BYTES_OF_ROW);
        assert_eq!(rows.push(b""), BYTES_OF_ROW);
        let values = [Datum::Int4(7), Datum::Null, Datum::Text("two")];
        rows.push_values(&values).unwrap();
        rows.push(b"three");
        assert_eq!(rows.get(0), Some(&b"one"[..]));
        assert_eq!(rows.get(1), Some(&b""[..]));
        assert_eq!(row_bytes::read(rows.get(2).unwrap()).unwrap().as_slice(), &values);
        assert_eq!(rows.get(3), Some(&b"three"[..]));
        assert_eq!(rows.get(4), None);
    }
}
