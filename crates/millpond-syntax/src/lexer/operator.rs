//! Operators.

use super::{Lex, Lexer, TokenKind};
use crate::error::SyntaxError;

/// PostgreSQL's names have fewer bytes than this.
pub(super) const NAME_LENGTH: usize = 64;

pub(super) fn is_operator(byte: u8) -> bool {
    matches!(
        byte,
        b'~' | b'!'
            | b'@'
            | b'#'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
            | b'+'
            | b'-'
            | b'*'
            | b'/'
            | b'%'
            | b'<'
            | b'>'
            | b'='
    )
}

/// An operator with one of these may end in `+` or `-`.
fn keeps_sign(byte: u8) -> bool {
    matches!(byte, b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'%')
}

impl Lexer<'_> {
    /// The longest run of an operator's characters that no comment begins in. SQL's own operators
    /// do not swallow a sign that follows.
    pub(super) fn operator(&mut self, start: usize) -> Lex<TokenKind> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let mut length = rest.iter().take_while(|&&byte| is_operator(byte)).count();
        let comment = (1..length).find(|&at| matches!(rest.get(at..at + 2), Some(b"--" | b"/*")));
        if let Some(comment) = comment {
            length = comment;
        }
        let mut name = rest.get(..length).unwrap_or_default();
        if !name.iter().any(|&byte| keeps_sign(byte)) {
            while let [before @ .., b'+' | b'-'] = name {
                if before.is_empty() {
                    break;
                }
                name = before;
            }
        }
        self.at = start + name.len();
        let kind = match name {
            [one]
                if matches!(one, b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'<' | b'>' | b'=') =>
            {
                TokenKind::Char(*one)
            }
            b"=>" => TokenKind::EqualsGreater,
            b"<=" => TokenKind::LessEquals,
            b">=" => TokenKind::GreaterEquals,
            b"<>" | b"!=" => TokenKind::NotEquals,
            _ if name.len() >= NAME_LENGTH => {
                return Err(SyntaxError::near("operator too long", self.text, start, self.at));
            }
            _ => TokenKind::Op,
        };
        Ok(kind)
    }
}
