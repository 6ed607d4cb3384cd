//! `SIMILAR TO`: SQL's regular expressions as PostgreSQL's.

use crate::error::{Result, SqlError, SqlState};
use crate::expr::like;

/// The expression that matches the same texts. Between two escaped quotation marks stands the part
/// that `substring` returns.
pub(super) fn to_regex(pattern: &str, escape: Option<&str>) -> Result<String> {
    let escape = match escape {
        None => Some('\\'),
        Some(text) => like::escape_char(text)?,
    };
    let mut out = String::from("^(?:");
    let (mut escaped, mut brackets, mut separators) = (false, Brackets::default(), 0);
    for c in pattern.chars() {
        if std::mem::take(&mut escaped) {
            if c == '"' && brackets.depth == 0 {
                // What is before the part is as short as can be, the part as long as can be.
                out.push_str(match separators {
                    0 => "){1,1}?(",
                    1 => "){1,1}(?:",
                    _ => return Err(too_many_separators()),
                });
                separators += 1;
            } else {
                out.extend(['\\', c]);
                (brackets.is_start, brackets.may_negate) = (false, false);
            }
        } else if Some(c) == escape {
            escaped = true;
        } else if brackets.depth > 0 {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            brackets.take(c);
        } else {
            match c {
                '[' => {
                    brackets = Brackets { depth: 1, is_start: true, may_negate: true };
                    out.push(c);
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => out.extend(['\\', c]),
                c => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// A bracket expression that is being read.
#[derive(Default)]
struct Brackets {
    /// How many brackets are open: its own, and those of classes within it.
    depth: usize,
    /// A closing bracket here is one of the characters.
    is_start: bool,
    may_negate: bool,
}

impl Brackets {
    /// Takes a character in that is not escaped.
    fn take(&mut self, c: char) {
        match c {
            ']' if !self.is_start => self.depth -= 1,
            '[' => self.depth += 1,
            _ => {}
        }
        let negates = c == '^' && self.may_negate;
        (self.is_start, self.may_negate) = (negates, false);
    }
}

#[cold]
fn too_many_separators() -> SqlError {
    SqlError::new(
        SqlState::INVALID_USE_OF_ESCAPE_CHARACTER,
        "SQL regular expression may not contain more than two escape-double-quote separators",
    )
}
