//! Cuts the bytes of a COPY FROM, in the text or CSV format, into rows and their columns.

use super::encoding::{LONGEST_CHARACTER, invalid_text, valid_prefix};
use super::fields::{Scratch, split_plain, unescape, unquote};
use super::header::check_names;
use super::line::{Line, LineFinder};
use super::{CopyRow, RowFormat, bad_format};
use millpond_query::error::{Result, SqlError, SqlState};

/// A row longer than this is not read (PostgreSQL's limit of a string).
const MAX_LINE: usize = (1 << 30) - 1;
/// Errors show this many bytes of a line or value.
const SHOWN: usize = 100;

/// Takes each row as it is read.
type Each<'a> = &'a mut dyn FnMut(&CopyRow<'_>) -> Result<()>;

/// Cuts a stream into rows.
#[derive(Debug)]
pub struct RowReader {
    format: RowFormat,
    finder: LineFinder,
    /// The beginning of a row whose end has not come yet.
    pending: Vec<u8>,
    /// How many bytes of `pending` are known to be text.
    verified: usize,
    /// Unescaped fields of the current row.
    scratch: Scratch,
    /// The number of the line that is being read.
    line: u64,
    /// The number of the line of the last row.
    row_line: u64,
    /// The beginning of the line in which an error was found after it had been read.
    failed: Option<String>,
    header_left: bool,
    /// `\.` has been read: nothing counts after it.
    ended: bool,
}

impl RowReader {
    /// A reader of rows in this format.
    pub fn new(format: RowFormat) -> Self {
        Self {
            header_left: format.header,
            format,
            finder: LineFinder::default(),
            pending: Vec::new(),
            verified: 0,
            scratch: Scratch::default(),
            line: 1,
            row_line: 0,
            failed: None,
            ended: false,
        }
    }

    /// The number of the line that is being read, or in which an error was found, counted from 1.
    /// Newlines in quotes count.
    pub fn line(&self) -> u64 {
        self.line + self.finder.newlines()
    }

    /// The number of the line of the last row that was handed over; 0 before the first.
    pub fn row_line(&self) -> u64 {
        self.row_line
    }

    /// The beginning of the line in which an error was found. `None` if the error was found before
    /// the end of the line.
    pub fn failed_line(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Reads a piece of the stream and hands over each row that ends in it.
    pub fn feed(&mut self, mut data: &[u8], each: Each<'_>) -> Result<()> {
        if !self.ended && !self.pending.is_empty() {
            data = self.finish_pending(data, each)?;
        }
        if self.ended || !self.pending.is_empty() {
            return Ok(());
        }
        // All lines at once are checked faster than one by one. What follows the last of them may
        // end within a character, and is checked when its own end has come.
        let lines = data.iter().rposition(is_newline).map_or(0, |at| at + 1);
        // What a carriage return is depends on the character after it.
        let ahead = if data[..lines].ends_with(b"\r") { LONGEST_CHARACTER } else { 0 };
        let text = valid_prefix(&data[..data.len().min(lines + ahead)]);
        let mut rest = text;
        while !self.ended
            && let Some(line) = self.finder.find(rest.as_bytes(), &self.format)?
        {
            self.row(&rest[..line.length], &line, each)?;
            rest = &rest[line.taken..];
        }
        if self.ended {
            return Ok(());
        }
        if text.len() < lines {
            self.check(&data[text.len()..])?;
        }
        self.keep(&data[text.len() - rest.len()..])?;
        self.verified = rest.len();
        Ok(())
    }

    /// Reads what is left when the stream ends without a newline.
    pub fn finish(&mut self, each: Each<'_>) -> Result<()> {
        while !self.ended && (self.header_left || !self.pending.is_empty()) {
            self.verify();
            let (text, bad) = self.pending.split_at(self.verified);
            let line = if bad.is_empty() {
                self.finder.find_at_end(text, &self.format)?
            } else {
                let found = self.finder.find(text, &self.format)?;
                found.ok_or_else(|| invalid_text(bad))?
            };
            self.pending_row(&line, self.pending.len(), each)?;
        }
        Ok(())
    }

    /// Bytes of a row whose end has not come yet.
    pub fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    fn keep(&mut self, data: &[u8]) -> Result<()> {
        if self.pending.len() + data.len() > MAX_LINE {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "a row of COPY data is longer than 1 GB",
            ));
        }
        self.pending.extend_from_slice(data);
        Ok(())
    }

    fn verify(&mut self) {
        self.verified += valid_prefix(&self.pending[self.verified..]).len();
    }

    /// Refuses what follows text, as soon as no byte to come can change the message.
    fn check(&self, rest: &[u8]) -> Result<()> {
        if rest.len() < LONGEST_CHARACTER { Ok(()) } else { Err(invalid_text(rest)) }
    }

    /// Adds data to the pending row up to its end; returns what follows.
    fn finish_pending<'d>(&mut self, mut data: &'d [u8], each: Each<'_>) -> Result<&'d [u8]> {
        // Line by line of the new data, until one of its newlines ends the row.
        while !data.is_empty() {
            let piece = data.iter().position(is_newline).map_or(data.len(), |at| at + 1);
            let before = self.pending.len();
            self.keep(&data[..piece])?;
            self.verify();
            let found = self.finder.find(&self.pending[..self.verified], &self.format)?;
            let Some(line) = found else {
                self.check(&self.pending[self.verified..])?;
                data = &data[piece..];
                continue;
            };
            self.pending_row(&line, before, each)?;
            if self.ended {
                return Ok(&[]);
            }
            if self.pending.is_empty() {
                return Ok(&data[line.taken - before..]);
            }
        }
        Ok(data)
    }

    /// Reads the line at the beginning of the pending bytes, of which the first `kept` stay until
    /// they are read.
    fn pending_row(&mut self, line: &Line, kept: usize, each: Each<'_>) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        self.verified = 0;
        let result = self.row(valid_prefix(&pending[..line.length]), line, each);
        pending.truncate(kept);
        pending.drain(..line.taken.min(kept));
        self.pending = pending;
        result
    }

    /// Takes a line apart.
    fn row(&mut self, text: &str, line: &Line, each: Each<'_>) -> Result<()> {
        self.line += line.newlines;
        self.ended = line.last;
        if line.last && text.is_empty() && !self.header_left {
            return Ok(());
        }
        let result = self.fields(text, line, each);
        match result {
            Ok(()) => self.line += u64::from(!line.last),
            Err(_) => self.failed = Some(shown(text)),
        }
        result
    }

    fn fields(&mut self, text: &str, line: &Line, each: Each<'_>) -> Result<()> {
        let is_header = std::mem::take(&mut self.header_left);
        if is_header && !self.format.header_match {
            return Ok(());
        }
        let mut row = CopyRow::new();
        if is_header {
            // The lists of columns are for values.
            let (force_null, force_not_null) = (Vec::new(), Vec::new());
            let format = RowFormat { force_null, force_not_null, ..self.format.clone() };
            split(text, line, &format, &mut self.scratch, &mut row)?;
            return check_names(&row, &format);
        }
        split(text, line, &self.format, &mut self.scratch, &mut row)?;
        // A table without columns has empty lines.
        let columns = self.format.columns.len();
        if row.len() > columns && !(columns == 0 && text.is_empty()) {
            return Err(bad_format("extra data after last expected column"));
        }
        self.row_line = self.line;
        each(&row)
    }
}

fn is_newline(byte: &u8) -> bool {
    *byte == b'\n' || *byte == b'\r'
}

/// Cuts a line into its fields.
fn split<'a>(
    text: &'a str,
    line: &Line,
    format: &RowFormat,
    scratch: &'a mut Scratch,
    row: &mut CopyRow<'a>,
) -> Result<()> {
    if !line.special {
        split_plain(text, format, row);
        return Ok(());
    }
    if format.csv {
        unquote(text.as_bytes(), format, scratch)?;
    } else {
        unescape(text.as_bytes(), format, scratch)?;
    }
    scratch.fill(row)
}

/// The beginning of a line or value, as errors show it.
pub(crate) fn shown(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN)])
}
