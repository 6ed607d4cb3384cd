//! The extent of what stands in quotes.

use super::{Lex, Lexer, PlainStrings, TokenKind, is_ident_start};
use crate::error::{SqlState, SyntaxError};
use crate::keyword::Keyword;

impl Lexer<'_> {
    fn unterminated(&mut self, message: &str, start: usize) -> Box<SyntaxError> {
        self.at = start;
        SyntaxError::near(message, self.text, start, self.text.len())
    }

    /// A literal in single quotes, with the parts that continue it on other lines.
    pub(super) fn string(
        &mut self,
        start: usize,
        kind: TokenKind,
        prefix: usize,
    ) -> Lex<TokenKind> {
        self.at += prefix;
        loop {
            self.at += 1;
            if !self.skip_part(kind) {
                let message = match kind {
                    TokenKind::BitString => "unterminated bit string literal",
                    TokenKind::HexString => "unterminated hexadecimal string literal",
                    _ => "unterminated quoted string",
                };
                return Err(self.unterminated(message, start));
            }
            match self.next_part() {
                Some(quote) => self.at = quote,
                None => return Ok(kind),
            }
        }
    }

    /// To behind the closing quote. False if there is none.
    fn skip_part(&mut self, kind: TokenKind) -> bool {
        let doubles = !matches!(kind, TokenKind::BitString | TokenKind::HexString);
        let escapes = kind == TokenKind::EscapeString;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let is_special = |byte: &u8| *byte == b'\'' || escapes && *byte == b'\\';
            let Some(plain) = rest.iter().position(is_special) else {
                self.at = self.bytes.len();
                return false;
            };
            self.at += plain;
            match (self.byte(0), self.byte(1)) {
                (b'\\', _) => self.at += 2,
                (_, b'\'') if doubles => self.at += 2,
                _ => {
                    self.at += 1;
                    return true;
                }
            }
        }
    }

    pub(super) fn quoted_ident(
        &mut self,
        start: usize,
        kind: TokenKind,
        prefix: usize,
    ) -> Lex<TokenKind> {
        self.at += prefix + 1;
        let first = self.at;
        while self.at < self.bytes.len() {
            match (self.byte(0), self.byte(1)) {
                (b'"', b'"') => self.at += 2,
                (b'"', _) if self.at == first => {
                    self.at += 1;
                    let message = "zero-length delimited identifier";
                    return Err(SyntaxError::near(message, self.text, start, self.at));
                }
                (b'"', _) => {
                    self.at += 1;
                    return Ok(kind);
                }
                _ => self.at += 1,
            }
        }
        Err(self.unterminated("unterminated quoted identifier", start))
    }

    /// `$1`, `$tag$...$tag$`, or the character alone.
    pub(super) fn dollar(&mut self, start: usize) -> Lex<TokenKind> {
        if self.byte(1).is_ascii_digit() {
            return self.param(start);
        }
        let mut length = 1;
        while is_ident_start(self.byte(length))
            || (length > 1 && self.byte(length).is_ascii_digit())
        {
            length += 1;
        }
        if self.byte(length) != b'$' {
            self.at += 1;
            return Ok(TokenKind::Char(b'$'));
        }
        let body = start + length + 1;
        let tag = self.text.get(start..body).unwrap_or_default();
        match self.text.get(body..).and_then(|rest| rest.find(tag)) {
            Some(found) => {
                self.at = body + found + tag.len();
                Ok(TokenKind::DollarString)
            }
            None => Err(self.unterminated("unterminated dollar-quoted string", start)),
        }
    }

    /// Unicode escapes in strings may hide a quote from who reads backslashes differently.
    pub(super) fn check_unicode_string(&self, start: usize) -> Lex<()> {
        if self.strings == PlainStrings::Standard {
            return Ok(());
        }
        let message = "unsafe use of string constant with Unicode escapes";
        let detail = "String constants with Unicode escapes cannot be used when \
                      standard_conforming_strings is off.";
        let error = SyntaxError::new(SqlState::FeatureNotSupported, message, start as u32);
        Err(error.with_detail(detail))
    }

    /// Whether the last tokens are a literal with Unicode escapes and UESCAPE.
    pub(super) fn unicode_before_uescape(&self) -> bool {
        let [.., unicode, uescape] = self.list.as_slice() else { return false };
        uescape.kind == TokenKind::Keyword(Keyword::Uescape)
            && matches!(unicode.kind, TokenKind::UnicodeIdent | TokenKind::UnicodeString)
    }

    pub(super) fn uescape_error(&self, start: usize) -> Box<SyntaxError> {
        let message = "UESCAPE must be followed by a simple string literal";
        SyntaxError::near(message, self.text, start, self.at)
    }

    pub(super) fn unfinished_uescape(&mut self, start: usize) -> Lex<()> {
        if self.unicode_before_uescape() { Err(self.uescape_error(start)) } else { Ok(()) }
    }

    /// Makes the literal, UESCAPE and the string that begins at `start` one token.
    pub(super) fn join_uescape(&mut self, start: usize) -> Lex<()> {
        let valid = match self.bytes.get(start..self.at) {
            Some(&[b'\'', escape, b'\'']) => {
                !escape.is_ascii_hexdigit()
                    && !matches!(escape, b'+' | b'\'' | b'"' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
            }
            _ => false,
        };
        if !valid {
            let message = "invalid Unicode escape character";
            let error = SyntaxError::near(message, self.text, start, self.at);
            return Err(error.with_code(SqlState::SyntaxError));
        }
        self.list.pop();
        if let Some(literal) = self.list.last_mut() {
            literal.end = self.at as u32;
        }
        Ok(())
    }
}
