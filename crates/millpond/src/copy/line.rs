//! Where lines end: newlines that are neither escaped nor quoted, and the marker `\.`.

use super::RowFormat;
use super::bad_format;
use millpond_query::error::{Result, SqlError};

/// How the lines of a stream end: as its first line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Newline {
    Lf,
    Cr,
    CrLf,
}

/// Looks for the end of a line in data that comes in pieces.
///
/// `position` says how much of the pending bytes has been looked at, so that no byte is looked
/// at twice however small the pieces are.
#[derive(Debug, Default)]
pub(super) struct LineFinder {
    newline: Option<Newline>,
    position: usize,
    /// csv: inside of quotes.
    quoted: bool,
    /// A backslash or a quote has been seen in this line.
    special: bool,
    /// csv: the newlines in quotes, of the kind that is counted.
    newlines: u64,
}

/// A line found.
#[derive(Debug)]
pub(super) struct Line {
    /// Without what ends it.
    pub(super) length: usize,
    /// With what ends it.
    pub(super) taken: usize,
    /// Whether it has escapes or quotes.
    pub(super) special: bool,
    /// Newlines in its quotes.
    pub(super) newlines: u64,
    /// Whether `\.` ends it: no data follows.
    pub(super) last: bool,
}

/// What `\.` is, judged by the bytes after it.
enum Marker {
    End,
    /// An ordinary value.
    Data,
    /// The next byte has not come yet.
    Unknown,
}

impl LineFinder {
    /// The first line of `bytes`, of which an earlier call may have seen a part. `None`: more bytes
    /// are needed.
    pub(super) fn find(&mut self, bytes: &[u8], format: &RowFormat) -> Result<Option<Line>> {
        self.search(bytes, format, false)
    }

    /// The first line of `bytes`, with which the data ends.
    pub(super) fn find_at_end(&mut self, bytes: &[u8], format: &RowFormat) -> Result<Line> {
        let found = self.search(bytes, format, true)?;
        Ok(found.unwrap_or_else(|| self.line(bytes.len(), 0, false)))
    }

    /// The newlines in quotes in the line whose end has not been found yet.
    pub(super) fn newlines(&self) -> u64 {
        self.newlines
    }

    fn search(&mut self, bytes: &[u8], format: &RowFormat, at_end: bool) -> Result<Option<Line>> {
        if format.csv {
            self.find_csv(bytes, format, at_end)
        } else {
            self.find_text(bytes, at_end)
        }
    }

    /// The line that ends at `length`; the search for the next one begins.
    fn line(&mut self, length: usize, end: usize, last: bool) -> Line {
        let (special, newlines) = (self.special, self.newlines);
        *self = Self { newline: self.newline, ..Self::default() };
        Line { length, taken: length + end, special, newlines, last }
    }

    fn find_text(&mut self, bytes: &[u8], at_end: bool) -> Result<Option<Line>> {
        let is_special = |&byte: &u8| byte == b'\n' || byte == b'\\' || byte == b'\r';
        let mut at = self.position;
        while let Some(found) = bytes[at..].iter().position(is_special) {
            at += found;
            self.position = at;
            let next = bytes.get(at + 1).copied();
            if bytes[at] != b'\\' {
                let end = self.line_end(bytes[at], next, false, at_end)?;
                return Ok(end.map(|end| self.line(at, end, false)));
            }
            self.special = true;
            match next {
                None => return Ok(None),
                Some(b'.') => match self.marker(&bytes[at + 2..], false, at_end)? {
                    Marker::End => return Ok(Some(self.line(at, bytes.len() - at, true))),
                    Marker::Data | Marker::Unknown => return Ok(None),
                },
                Some(_) => at += 2,
            }
        }
        self.position = bytes.len();
        Ok(None)
    }

    fn find_csv(&mut self, bytes: &[u8], format: &RowFormat, at_end: bool) -> Result<Option<Line>> {
        // Only at the beginning of a line; elsewhere `\.` is a value.
        if self.position == 0 && bytes.first() == Some(&b'\\') {
            let marker = match bytes.get(1) {
                Some(b'.') => self.marker(&bytes[2..], true, at_end)?,
                None if !at_end => Marker::Unknown,
                _ => Marker::Data,
            };
            match marker {
                Marker::End => return Ok(Some(self.line(0, bytes.len(), true))),
                Marker::Unknown => return Ok(None),
                Marker::Data => {}
            }
        }
        let RowFormat { quote, escape, .. } = *format;
        let is_special =
            |&byte: &u8| byte == quote || byte == b'\n' || byte == b'\r' || byte == escape;
        let mut at = self.position;
        while let Some(found) = bytes[at..].iter().position(is_special) {
            at += found;
            self.position = at;
            let (byte, next) = (bytes[at], bytes.get(at + 1).copied());
            let escapes = self.quoted && byte == escape && escape != quote;
            if next.is_none() && !at_end && (escapes || byte == b'\r') {
                return Ok(None);
            }
            at += 1;
            if escapes && (next == Some(quote) || next == Some(escape)) {
                at += 1;
                continue;
            }
            if byte == quote && !escapes {
                // A doubled quote leaves the quotes and enters them again.
                self.quoted = !self.quoted;
                self.special = true;
            }
            if self.quoted {
                self.newlines += u64::from(byte == self.counted());
            } else if byte == b'\n' || byte == b'\r' {
                let end = self.line_end(byte, next, true, at_end)?;
                return Ok(end.map(|end| self.line(at - 1, end, false)));
            }
        }
        self.position = bytes.len();
        Ok(None)
    }

    /// The newline that counts as a line inside of quotes. It is a carriage return as long as no
    /// line has ended, as it is in PostgreSQL.
    fn counted(&self) -> u8 {
        if self.newline == Some(Newline::Lf) { b'\n' } else { b'\r' }
    }

    /// The length of the line end that begins with `byte`; `None` if it depends on a byte that has
    /// not come yet.
    fn line_end(
        &mut self,
        byte: u8,
        next: Option<u8>,
        csv: bool,
        at_end: bool,
    ) -> Result<Option<usize>> {
        let end = match (byte, self.newline, next) {
            (b'\n', None | Some(Newline::Lf), _) => (Newline::Lf, 1),
            (b'\n', ..) => return Err(newline_in_data(csv)),
            (_, Some(Newline::Lf), _) => return Err(carriage_return_in_data(csv)),
            (_, Some(Newline::Cr), _) => (Newline::Cr, 1),
            (_, _, None) if !at_end => return Ok(None),
            (_, _, Some(b'\n')) => (Newline::CrLf, 2),
            (_, None, _) => (Newline::Cr, 1),
            (_, Some(Newline::CrLf), _) => return Err(carriage_return_in_data(csv)),
        };
        self.newline = Some(end.0);
        Ok(Some(end.1))
    }

    /// What a `\.` is that `rest` follows.
    fn marker(&self, mut rest: &[u8], csv: bool, at_end: bool) -> Result<Marker> {
        let other = || if csv { Ok(Marker::Data) } else { Err(corrupt_marker()) };
        if self.newline == Some(Newline::CrLf) {
            match rest.first() {
                None if !at_end => return Ok(Marker::Unknown),
                Some(b'\n') if !csv => return Err(other_newline()),
                Some(b'\r') => rest = &rest[1..],
                _ => return other(),
            }
        }
        match (rest.first(), self.newline) {
            (None, _) if !at_end => Ok(Marker::Unknown),
            (Some(b'\n'), Some(Newline::Cr)) => Err(other_newline()),
            (Some(b'\r'), Some(Newline::Lf | Newline::CrLf)) => Err(other_newline()),
            (Some(b'\n' | b'\r'), _) => Ok(Marker::End),
            _ => other(),
        }
    }
}

#[cold]
fn newline_in_data(csv: bool) -> SqlError {
    if csv {
        bad_format("unquoted newline found in data")
            .hint("Use quoted CSV field to represent newline.")
    } else {
        bad_format("literal newline found in data").hint("Use \"\\n\" to represent newline.")
    }
}

#[cold]
fn carriage_return_in_data(csv: bool) -> SqlError {
    if csv {
        bad_format("unquoted carriage return found in data")
            .hint("Use quoted CSV field to represent carriage return.")
    } else {
        bad_format("literal carriage return found in data")
            .hint("Use \"\\r\" to represent carriage return.")
    }
}

#[cold]
fn corrupt_marker() -> SqlError {
    bad_format("end-of-copy marker corrupt")
}

#[cold]
fn other_newline() -> SqlError {
    bad_format("end-of-copy marker does not match previous newline style")
}
