//! A statement's text, and positions in it.

use crate::error::{SqlError, SqlState};

/// A text of statements. The parser says where things are in bytes; clients are told in characters.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub(crate) sql: &'a str,
}

impl<'a> Source<'a> {
    pub fn new(sql: &'a str) -> Self {
        Source { sql }
    }

    /// The position, in characters from 1, of a byte.
    pub fn position(&self, location: u32) -> usize {
        let before = self.sql.get(..location as usize);
        before.map_or(0, |before| before.chars().count()) + 1
    }

    /// A piece of the text.
    pub fn piece(&self, location: u32, length: u32) -> &'a str {
        let start = location as usize;
        self.sql.get(start..start + length as usize).unwrap_or("")
    }

    /// Adds a position to an error that has none, if there is one. Where the stack would end says
    /// nothing about the text.
    pub fn place(&self, mut error: SqlError, location: impl Into<Option<u32>>) -> SqlError {
        if error.position.is_none() && error.sqlstate != SqlState::STATEMENT_TOO_COMPLEX {
            error.position = location.into().map(|location| self.position(location));
        }
        error
    }
}
