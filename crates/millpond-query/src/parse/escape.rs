//! Escapes in plain strings, which are only read where `standard_conforming_strings` is off.

use millpond_syntax::{Token, TokenKind};

use super::Source;
use crate::error::{SqlError, SqlState};

/// A plain string with an escape: where it begins, and the first byte behind a backslash.
pub(super) struct FirstEscape {
    start: u32,
    follow: u8,
}

/// Of each plain string with an escape the first one.
pub(super) fn first_escapes(sql: &str, tokens: &[Token]) -> Vec<FirstEscape> {
    let found = tokens.iter().filter(|token| token.kind == TokenKind::EscapeString);
    let found = found.filter_map(|token| {
        let text = sql.get(token.start as usize..token.end as usize)?;
        let backslash = text.find('\\').filter(|_| text.starts_with('\''))?;
        let follow = *text.as_bytes().get(backslash + 1)?;
        Some(FirstEscape { start: token.start, follow })
    });
    found.collect()
}

/// What PostgreSQL says of it.
pub(super) fn warning(escape: &FirstEscape, source: &Source<'_>) -> SqlError {
    let (what, hint) = match escape.follow {
        b'\'' => {
            ("\\'", "Use '' to write quotes in strings, or use the escape string syntax (E'...').")
        }
        b'\\' => ("\\\\", "Use the escape string syntax for backslashes, e.g., E'\\\\'."),
        _ => ("escape", "Use the escape string syntax for escapes, e.g., E'\\r\\n'."),
    };
    let message = format!("nonstandard use of {what} in a string literal");
    let warning = SqlError::warning(SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER, message);
    warning.hint(hint).at(source.position(escape.start))
}
