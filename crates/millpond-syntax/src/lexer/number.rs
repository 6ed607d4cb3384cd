//! Numbers and parameters.

use super::{Lex, Lexer, TokenKind, is_ident_continue, is_ident_start};
use crate::error::SyntaxError;

impl Lexer<'_> {
    fn skip_digits(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    pub(super) fn number(&mut self, start: usize) -> Lex<TokenKind> {
        let mut kind = TokenKind::Integer;
        self.skip_digits();
        // Of `1..10` the number is 1.
        if self.byte(0) == b'.' && (self.byte(1) != b'.' || self.at == start) {
            kind = TokenKind::Float;
            self.at += 1;
            self.skip_digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if !self.byte(1 + sign).is_ascii_digit() {
                return Err(self.junk("trailing junk after numeric literal", start, 1 + sign));
            }
            kind = TokenKind::Float;
            self.at += 1 + sign;
            self.skip_digits();
        }
        self.no_word("trailing junk after numeric literal", start)?;
        Ok(kind)
    }

    pub(super) fn param(&mut self, start: usize) -> Lex<TokenKind> {
        self.at += 1;
        self.skip_digits();
        self.no_word("trailing junk after parameter", start)?;
        Ok(TokenKind::Param)
    }

    /// A word must not begin where a number ends.
    fn no_word(&self, message: &str, start: usize) -> Lex<()> {
        if !is_ident_start(self.byte(0)) {
            return Ok(());
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|&&byte| is_ident_continue(byte)).count();
        Err(self.junk(message, start, length))
    }

    fn junk(&self, message: &str, start: usize, length: usize) -> Box<SyntaxError> {
        let end = (self.at + length).min(self.text.len());
        SyntaxError::near(message, self.text, start, end)
    }
}
