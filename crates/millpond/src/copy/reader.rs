//! Cuts the bytes of a COPY FROM, in the text or CSV format, into rows and their columns.

use std::ops::Range;

use smallvec::SmallVec;

use super::RowFormat;
use super::line::{Line, LineFinder};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_types::format::binary::invalid_utf8;

/// A row longer than this is not read (PostgreSQL's limit of a string).
const MAX_LINE: usize = (1 << 30) - 1;

/// One row: a text or NULL per column.
pub type CopyRow<'a> = SmallVec<[Option<&'a str>; 16]>;

/// Cuts a stream into rows.
#[derive(Debug)]
pub struct RowReader {
    format: RowFormat,
    finder: LineFinder,
    /// The beginning of a row whose end has not come yet.
    pending: Vec<u8>,
    /// Unescaped fields of the current row.
    scratch: Scratch,
    line: u64,
    header_left: bool,
    carriage_returns: Option<bool>,
    /// `\.` has been read: nothing counts after it.
    ended: bool,
}

#[derive(Debug, Default)]
struct Scratch {
    bytes: Vec<u8>,
    fields: Vec<Option<Range<usize>>>,
}

#[cold]
fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

impl RowReader {
    /// A reader of rows in this format.
    pub fn new(format: RowFormat) -> Self {
        Self {
            header_left: format.header,
            format,
            finder: LineFinder::default(),
            pending: Vec::new(),
            scratch: Scratch::default(),
            line: 0,
            carriage_returns: None,
            ended: false,
        }
    }

    /// The number of the line that was read last, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads a piece of the stream and hands over each row that ends in it.
    pub fn feed(
        &mut self,
        mut data: &[u8],
        each: &mut dyn FnMut(&CopyRow<'_>) -> Result<()>,
    ) -> Result<()> {
        if !self.pending.is_empty() {
            data = self.finish_pending(data, each)?;
        }
        // All lines at once are checked faster than one by one; what is wrong shows then. What
        // follows the last of them may end within a character, and is checked when its own end has
        // come.
        let lines = data.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
        let text = std::str::from_utf8(&data[..lines]).ok();
        let all = data.len();
        while !self.ended
            && !data.is_empty()
            && let Some(line) = self.finder.find(data, &self.format)
        {
            let (row, rest) = data.split_at(line.length);
            let text = text.and_then(|text| text.get(all - data.len()..));
            self.row(row, text, &line, each)?;
            data = &rest[1..];
        }
        if !self.ended {
            self.keep(data)?;
        }
        Ok(())
    }

    /// Reads what is left when the stream ends without a newline.
    pub fn finish(&mut self, each: &mut dyn FnMut(&CopyRow<'_>) -> Result<()>) -> Result<()> {
        if self.ended || self.pending.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        let (line, unterminated) = self.finder.rest(&pending);
        if unterminated {
            self.line += 1;
            return Err(bad_format("unterminated CSV quoted field"));
        }
        self.row(&pending, None, &line, each)
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

    /// Adds data to the pending row up to its end; returns what follows.
    fn finish_pending<'d>(
        &mut self,
        mut data: &'d [u8],
        each: &mut dyn FnMut(&CopyRow<'_>) -> Result<()>,
    ) -> Result<&'d [u8]> {
        // Line by line of the new data, until one of its newlines ends the row.
        loop {
            let piece = match data.iter().position(|&byte| byte == b'\n') {
                Some(newline) => newline + 1,
                None => data.len(),
            };
            let (piece, rest) = data.split_at(piece);
            self.keep(piece)?;
            data = rest;
            if let Some(line) = self.finder.find(&self.pending, &self.format) {
                let mut pending = std::mem::take(&mut self.pending);
                let result = self.row(&pending[..line.length], None, &line, each);
                pending.clear();
                self.pending = pending;
                result?;
                return Ok(data);
            }
            if data.is_empty() {
                return Ok(data);
            }
        }
    }

    /// Takes a row apart. `text`: what begins with its bytes, if that is known to be text.
    fn row(
        &mut self,
        mut bytes: &[u8],
        text: Option<&str>,
        line: &Line,
        each: &mut dyn FnMut(&CopyRow<'_>) -> Result<()>,
    ) -> Result<()> {
        self.line += 1;
        if self.ended {
            return Ok(());
        }
        bytes = self.strip_carriage_return(bytes)?;
        if bytes == b"\\." {
            self.ended = true;
            return Ok(());
        }
        let text = match text.and_then(|text| text.get(..bytes.len())) {
            Some(text) => text,
            None => std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, &error))?,
        };
        let mut row = CopyRow::new();
        let scratch = &mut self.scratch;
        if !line.special {
            split_plain(text, &self.format, &mut row);
        } else if self.format.csv {
            unquote(text.as_bytes(), &self.format, scratch)?;
            scratch.fill(&mut row)?;
        } else {
            unescape(text.as_bytes(), &self.format, scratch)?;
            scratch.fill(&mut row)?;
        }
        if std::mem::take(&mut self.header_left) {
            return check_header(&row, &self.format);
        }
        check_count(&row, text, &self.format)?;
        each(&row)
    }

    /// Lines may all end in CR LF instead.
    fn strip_carriage_return<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8]> {
        let stripped = bytes.strip_suffix(b"\r");
        let expected = *self.carriage_returns.get_or_insert(stripped.is_some());
        match stripped {
            Some(stripped) if expected => Ok(stripped),
            None if !expected => Ok(bytes),
            Some(_) => Err(bad_format(if self.format.csv {
                "unquoted carriage return found in data"
            } else {
                "literal carriage return found in data"
            })),
            // The last line may have no line end at all.
            None if self.pending.is_empty() => Ok(bytes),
            None => Err(bad_format("literal newline found in data")),
        }
    }
}

fn flag(list: &[bool], column: usize) -> bool {
    list.get(column).copied().unwrap_or(false)
}

fn check_count(row: &CopyRow<'_>, line: &str, format: &RowFormat) -> Result<()> {
    let columns = format.columns.len();
    if row.len() < columns {
        // A table without columns has empty lines.
        return Err(bad_format(format!(
            "missing data for column \"{}\"",
            format.columns.get(row.len()).map_or("", String::as_str)
        )));
    }
    if row.len() > columns && !(columns == 0 && line.is_empty()) {
        return Err(bad_format("extra data after last expected column"));
    }
    Ok(())
}

fn check_header(row: &CopyRow<'_>, format: &RowFormat) -> Result<()> {
    if !format.header_match {
        return Ok(());
    }
    if row.len() != format.columns.len() {
        return Err(bad_format(format!(
            "wrong number of fields in header line: got {}, expected {}",
            row.len(),
            format.columns.len()
        )));
    }
    for (i, (field, column)) in row.iter().zip(&format.columns).enumerate() {
        if *field != Some(column.as_str()) {
            let got = field.map_or("null value".to_owned(), |name| format!("\"{name}\""));
            return Err(bad_format(format!(
                "column name mismatch in header line field {}: got {got}, expected \"{column}\"",
                i + 1
            )));
        }
    }
    Ok(())
}

/// A line without escapes and quotes.
fn split_plain<'a>(text: &'a str, format: &RowFormat, row: &mut CopyRow<'a>) {
    let mut push = |field: &'a str| {
        let is_null = field.len() == format.null.len() && field.bytes().eq(format.null.bytes());
        let is_null = is_null && !flag(&format.force_not_null, row.len());
        row.push((!is_null).then_some(field));
    };
    // Fields are short: looking for their ends byte by byte is fastest.
    let mut rest = text;
    while let Some(end) = rest.bytes().position(|byte| byte == format.delimiter) {
        push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    push(rest);
}

impl Scratch {
    fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    fn fill<'s>(&'s self, row: &mut CopyRow<'s>) -> Result<()> {
        for field in &self.fields {
            row.push(match field {
                None => None,
                Some(range) => {
                    let bytes = &self.bytes[range.clone()];
                    Some(std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, &error))?)
                }
            });
        }
        Ok(())
    }
}

/// A line of the text format with backslashes.
fn unescape(text: &[u8], format: &RowFormat, scratch: &mut Scratch) -> Result<()> {
    scratch.clear();
    let mut at = 0;
    loop {
        let (field_start, out_start) = (at, scratch.bytes.len());
        while let Some(&byte) = text.get(at).filter(|&&byte| byte != format.delimiter) {
            at += 1;
            if byte == b'\\' {
                at = unescape_one(text, at, &mut scratch.bytes);
            } else {
                scratch.bytes.push(byte);
            }
        }
        // The null string is compared before escapes are taken away.
        let null = &text[field_start..at] == format.null.as_bytes();
        scratch.fields.push((!null).then_some(out_start..scratch.bytes.len()));
        if at >= text.len() {
            return Ok(());
        }
        at += 1;
    }
}

/// The character after a backslash, at `at`; returns where the text goes on.
fn unescape_one(text: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let Some(&byte) = text.get(at) else {
        out.push(b'\\');
        return at;
    };
    let digits = |from: usize, radix: u32, most: usize| {
        let run = text[from..].iter().take(most);
        run.map_while(|&b| char::from(b).to_digit(radix)).collect::<SmallVec<[u32; 3]>>()
    };
    let value = |digits: &[u32], radix| digits.iter().fold(0u32, |v, d| v * radix + d) as u8;
    match byte {
        b'b' => out.push(8),
        b'f' => out.push(12),
        b'n' => out.push(b'\n'),
        b'r' => out.push(b'\r'),
        b't' => out.push(b'\t'),
        b'v' => out.push(11),
        b'0'..=b'7' => {
            let octal = digits(at, 8, 3);
            out.push(value(&octal, 8));
            return at + octal.len();
        }
        b'x' => {
            let hex = digits(at + 1, 16, 2);
            if !hex.is_empty() {
                out.push(value(&hex, 16));
                return at + 1 + hex.len();
            }
            out.push(b'x');
        }
        other => out.push(other),
    }
    at + 1
}

/// A line of a csv with quotes.
fn unquote(text: &[u8], format: &RowFormat, scratch: &mut Scratch) -> Result<()> {
    scratch.clear();
    let mut at = 0;
    loop {
        let out_start = scratch.bytes.len();
        let mut had_quotes = false;
        let mut quoted = false;
        while let Some(&byte) = text.get(at) {
            let next = text.get(at + 1).copied();
            if quoted
                && byte == format.escape
                && next.is_some_and(|next| next == format.quote || next == format.escape)
            {
                scratch.bytes.extend(next);
                at += 2;
            } else if byte == format.quote {
                quoted = !quoted;
                had_quotes = true;
                at += 1;
            } else if byte == format.delimiter && !quoted {
                break;
            } else {
                scratch.bytes.push(byte);
                at += 1;
            }
        }
        if quoted {
            return Err(bad_format("unterminated CSV quoted field"));
        }
        let column = scratch.fields.len();
        let is_null_string = &scratch.bytes[out_start..] == format.null.as_bytes();
        let may_be_null = if had_quotes {
            flag(&format.force_null, column)
        } else {
            !flag(&format.force_not_null, column)
        };
        let null = is_null_string && may_be_null;
        scratch.fields.push((!null).then_some(out_start..scratch.bytes.len()));
        if at >= text.len() {
            return Ok(());
        }
        at += 1;
    }
}
