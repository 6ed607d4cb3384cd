//! A statement's text, and positions in it.

use sqlparser::tokenizer::{Location, Span, TokenWithSpan};

use crate::error::{SqlError, SqlState};

/// The text of a query with the beginnings of its lines, so that the parser's lines and columns
/// become the character positions that PostgreSQL reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) sql: &'a str,
}

impl<'a> Source<'a> {
    pub(crate) fn new(sql: &'a str) -> Self {
        Source { sql }
    }

    /// The byte at which a location is; the end of the text for none.
    pub(crate) fn byte(&self, location: Location) -> usize {
        if location.line == 0 {
            return self.sql.len();
        }
        let mut start = 0;
        for _ in 1..location.line {
            match self.sql[start..].find('\n') {
                Some(end) => start += end + 1,
                None => return self.sql.len(),
            }
        }
        let column = usize::try_from(location.column).unwrap_or(1).saturating_sub(1);
        match self.sql[start..].char_indices().nth(column) {
            Some((offset, _)) => start + offset,
            None => self.sql.len(),
        }
    }

    /// The position, in characters from 1, of a byte.
    pub(crate) fn position(&self, byte: usize) -> usize {
        self.sql.get(..byte).map_or(0, |before| before.chars().count()) + 1
    }

    /// The position of a location; `None` when there is none.
    pub(crate) fn position_of(&self, location: Location) -> Option<usize> {
        (location.line > 0).then(|| self.position(self.byte(location)))
    }

    /// A piece of the text.
    pub(crate) fn piece(&self, location: u32, length: u32) -> &'a str {
        let start = location as usize;
        self.sql.get(start..start + length as usize).unwrap_or("")
    }

    /// Adds a position to an error that has none.
    pub(crate) fn place_at(&self, mut error: SqlError, location: u32) -> SqlError {
        if error.position.is_none() {
            error.position = Some(self.position(location as usize));
        }
        error
    }

    /// Adds a position to an error that has none.
    pub(crate) fn place(&self, mut error: SqlError, span: Span) -> SqlError {
        if error.position.is_none() {
            error.position = self.position_of(span.start);
        }
        error
    }

    /// "syntax error at or near", for the token at a byte.
    pub(crate) fn syntax_error_at(&self, start: usize, end: usize) -> SqlError {
        match self.sql.get(start..end).map(str::trim_end).filter(|text| !text.is_empty()) {
            Some(text) => {
                SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{text}\""))
                    .at(self.position(start))
            }
            None => SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input")
                .at(self.position(self.sql.len())),
        }
    }

    /// "syntax error at or near" for a token.
    pub(crate) fn syntax_error(&self, token: &TokenWithSpan) -> SqlError {
        if token.token == sqlparser::tokenizer::Token::EOF {
            return self.syntax_error_at(self.sql.len(), self.sql.len());
        }
        self.syntax_error_at(self.byte(token.span.start), self.byte(token.span.end))
    }
}
