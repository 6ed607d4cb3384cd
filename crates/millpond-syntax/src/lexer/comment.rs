//! What stands between tokens.

use super::{Lex, Lexer, is_space};
use crate::error::SyntaxError;

impl Lexer<'_> {
    /// Skips space and comments.
    pub(super) fn skip_space(&mut self) -> Lex<()> {
        loop {
            match self.byte(0) {
                byte if is_space(byte) => self.at += 1,
                b'-' if self.byte(1) == b'-' => self.skip_line(),
                b'/' if self.byte(1) == b'*' => self.skip_block()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && !matches!(self.byte(0), b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Block comments nest.
    fn skip_block(&mut self) -> Lex<()> {
        let start = self.at;
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.at += 1,
            }
        }
        self.at = start;
        Err(SyntaxError::near("unterminated /* comment", self.text, start, self.text.len()))
    }

    /// Where the next part of a literal begins, if space with a line's end and a quote follow.
    pub(super) fn next_part(&self) -> Option<usize> {
        next_part(self.bytes, self.at)
    }
}

/// From the byte after a literal's closing quote: the byte of the quote that continues it. Between
/// them are space and comments of one line, and at least one line's end.
pub(super) fn next_part(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut line_ended = false;
    loop {
        match *bytes.get(at)? {
            b'\'' if line_ended => return Some(at),
            b'\n' | b'\r' => {
                line_ended = true;
                at += 1;
            }
            byte if is_space(byte) => at += 1,
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                while !matches!(*bytes.get(at)?, b'\n' | b'\r') {
                    at += 1;
                }
            }
            _ => return None,
        }
    }
}
