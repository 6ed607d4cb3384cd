//! The rows of a function that makes all of them at once.

use super::{Env, Series};
use crate::Value;
use crate::error::Result;
use crate::memory::{ValueRoom, bytes_of};

/// After how many rows a function asks again whether it may go on.
const ROWS_BETWEEN_CHECKS: usize = 4096;

/// Rows that are being made. They may take as much memory as one value.
pub(super) struct RowList<'e> {
    pub(super) env: &'e Env<'e>,
    count: usize,
    bytes: usize,
    values: Vec<Value>,
}

impl<'e> RowList<'e> {
    pub(super) fn new(env: &'e Env<'e>) -> Self {
        Self { env, count: 0, bytes: 0, values: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn push<Row>(&mut self, row: Row) -> Result<()>
    where
        Row: AsRef<[Value]> + IntoIterator<Item = Value>,
    {
        self.count += 1;
        if self.count.is_multiple_of(ROWS_BETWEEN_CHECKS) {
            self.env.check_long_work()?;
        }
        self.bytes += bytes_of(row.as_ref());
        ValueRoom::check(self.bytes)?;
        self.values.extend(row);
        Ok(())
    }

    /// The values of all rows.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// The rows to be given. Each has `columns` values.
    pub(super) fn into_series(self, columns: usize) -> Series {
        Series::Rows { values: self.values.into_iter(), columns, bytes: self.bytes }
    }
}
