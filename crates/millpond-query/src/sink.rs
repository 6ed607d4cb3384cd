//! Where results go: [`RowSink`], the description of columns, and command tags.

use std::fmt;

use smol_str::SmolStr;

use crate::error::{Result, SqlError};
use crate::types::FormatOptions;
use crate::{DataType, Datum};

/// The number of the type `void`.
pub const VOID_OID: u32 = 2278;

/// One column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDesc {
    /// The column's name.
    pub name: SmolStr,
    /// The type of its values.
    pub ty: DataType,
    /// The type's number that clients are told. It is `ty.oid()`, except where a catalog view shows
    /// a type that is stored as another (`name` as text, `oid` as bigint, ...).
    pub type_oid: u32,
    /// The table that the column comes from, 0 when it is computed.
    pub table_oid: u32,
    /// The column's number in that table (from 1), 0 when it is computed.
    pub attnum: i16,
}

impl ColumnDesc {
    /// What a function returns that returns nothing: an empty text, of type `void`.
    pub fn void(name: impl Into<SmolStr>) -> Self {
        ColumnDesc { type_oid: VOID_OID, ..Self::computed(name, DataType::Text) }
    }

    /// A computed column.
    pub fn computed(name: impl Into<SmolStr>, ty: DataType) -> Self {
        ColumnDesc { name: name.into(), ty, type_oid: ty.oid(), table_oid: 0, attnum: 0 }
    }
}

/// What a finished statement reports: `SELECT 3`, `INSERT 0 1`, `CREATE TABLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTag {
    verb: &'static str,
    rows: Option<u64>,
    failed_commit: bool,
}

impl CommandTag {
    /// A tag without a row count.
    pub const fn plain(verb: &'static str) -> Self {
        CommandTag { verb, rows: None, failed_commit: false }
    }

    /// The tag of a COMMIT that has found its transaction failed, and has rolled it back:
    /// `ROLLBACK`.
    pub const fn failed_commit() -> Self {
        CommandTag { verb: "ROLLBACK", rows: None, failed_commit: true }
    }

    /// A tag with a row count. `INSERT` gets its customary 0 in between.
    pub const fn counted(verb: &'static str, rows: u64) -> Self {
        CommandTag { verb, rows: Some(rows), failed_commit: false }
    }

    /// Whether the statement was a COMMIT that has rolled back instead, because the transaction had
    /// failed.
    pub fn is_failed_commit(&self) -> bool {
        self.failed_commit
    }

    /// Its first words.
    pub fn verb(&self) -> &'static str {
        self.verb
    }

    /// How many rows the statement returned or changed.
    pub fn rows(&self) -> u64 {
        self.rows.unwrap_or(0)
    }

    /// Appends the tag as it goes over the wire, without allocating.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.verb.as_bytes());
        let Some(mut rows) = self.rows else { return };
        if self.verb == "INSERT" {
            out.extend_from_slice(b" 0");
        }
        // A space and the digits, in one piece.
        let mut digits = [b' '; 21];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (rows % 10) as u8;
            rows /= 10;
            if rows == 0 {
                break;
            }
        }
        out.extend_from_slice(&digits[at - 1..]);
    }
}

impl fmt::Display for CommandTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rows {
            Some(rows) if self.verb == "INSERT" => write!(f, "INSERT 0 {rows}"),
            Some(rows) => write!(f, "{} {rows}", self.verb),
            None => f.write_str(self.verb),
        }
    }
}

/// What a COPY transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyFormat {
    /// How many columns a row has. All are in text format (also for csv).
    pub columns: u16,
}

/// Receives what statements produce.
///
/// Everything since the last [`complete`](RowSink::complete) belongs to the statement that is
/// running. When that statement answers `Executed::WouldBlock`, it
/// has called [`discard`](RowSink::discard) first. It starts over when it is resumed. So a sink
/// must not let rows go out before the statement ends, as long as the connection's wait is
/// [`Wait::Never`](crate::Wait::Never). On a thread that may block, a sink may send rows as they
/// come.
pub trait RowSink {
    /// The statement returns rows of these columns. Called once before the first row, by simple
    /// queries (and by an extended `EXPLAIN` or `SHOW` only through the prepared statement's
    /// description).
    fn columns(&mut self, columns: &[ColumnDesc]) -> Result<()>;

    /// How values are to be written from now on: an earlier statement of the same text may have
    /// changed that.
    fn formats(&mut self, options: &FormatOptions) {
        let _ = options;
    }

    /// One row.
    fn row(&mut self, row: &[Datum<'_>]) -> Result<()>;

    /// The statement has ended well.
    fn complete(&mut self, tag: CommandTag) -> Result<()>;

    /// The statement was empty.
    fn empty(&mut self) -> Result<()> {
        Ok(())
    }

    /// Forget everything since the last `complete` (or `empty`).
    fn discard(&mut self);

    /// A notice or warning for the client.
    fn notice(&mut self, notice: &SqlError) {
        let _ = notice;
    }

    /// A setting that clients are told about has changed.
    fn parameter(&mut self, name: &str, value: &str) {
        let _ = (name, value);
    }

    /// A `COPY TO STDOUT` begins.
    fn copy_out(&mut self, format: CopyFormat) -> Result<()> {
        let _ = format;
        Err(SqlError::unsupported("COPY TO STDOUT through this interface"))
    }

    /// One row of a `COPY TO STDOUT`, with its line end.
    fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        let _ = data;
        Ok(())
    }

    /// A `COPY TO STDOUT` has sent its last row; `complete` follows.
    fn copy_done(&mut self) -> Result<()> {
        Ok(())
    }
}
