//! Where lines end: newlines that are neither escaped nor quoted.

use super::RowFormat;

/// Looks for the end of a line in data that comes in pieces.
///
/// `position` says how much of the pending bytes has been looked at, so that no byte is looked
/// at twice however small the pieces are.
#[derive(Debug, Default)]
pub(super) struct LineFinder {
    position: usize,
    /// csv: inside of quotes.
    quoted: bool,
    /// The byte at `position` is escaped.
    escaped: bool,
    /// A backslash or a quote has been seen in this line.
    special: bool,
}

/// A line found: its length without the newline.
pub(super) struct Line {
    pub(super) length: usize,
    /// Whether it has escapes or quotes.
    pub(super) special: bool,
}

impl LineFinder {
    /// The first line of `bytes`, of which an earlier call may have seen a part.
    pub(super) fn find(&mut self, bytes: &[u8], format: &RowFormat) -> Option<Line> {
        let found = if format.csv { self.find_csv(bytes, format) } else { self.find_text(bytes) };
        let line = found.map(|length| Line { length, special: self.special });
        if line.is_some() {
            *self = Self::default();
        }
        line
    }

    /// The end of the data: all that is left is a line.
    pub(super) fn rest(&mut self, bytes: &[u8]) -> (Line, bool) {
        let line = Line { length: bytes.len(), special: self.special };
        let unterminated = self.quoted;
        *self = Self::default();
        (line, unterminated)
    }

    fn find_text(&mut self, bytes: &[u8]) -> Option<usize> {
        for (i, &byte) in bytes.iter().enumerate().skip(self.position) {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
                self.special = true;
            } else if byte == b'\n' {
                return Some(i);
            }
        }
        self.position = bytes.len();
        None
    }

    fn find_csv(&mut self, bytes: &[u8], format: &RowFormat) -> Option<usize> {
        let own_escape = format.escape != format.quote;
        for (i, &byte) in bytes.iter().enumerate().skip(self.position) {
            if self.escaped {
                self.escaped = false;
            } else if byte == format.quote {
                // A doubled quote leaves the quotes and enters them again.
                self.quoted = !self.quoted;
                self.special = true;
            } else if own_escape && self.quoted && byte == format.escape {
                self.escaped = true;
            } else if byte == b'\n' && !self.quoted {
                return Some(i);
            }
        }
        self.position = bytes.len();
        None
    }
}
