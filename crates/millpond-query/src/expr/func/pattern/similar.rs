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
    let (mut escaped, mut in_brackets, mut separators) = (false, false, 0);
    for c in pattern.chars() {
        if std::mem::take(&mut escaped) {
            if c == '"' && !in_brackets {
                // What is before the part is as short as can be, the part as long as can be.
                out.push_str(match separators {
                    0 => "){1,1}?(",
                    1 => "){1,1}(?:",
                    _ => return Err(too_many_separators()),
                });
                separators += 1;
            } else {
                out.extend(['\\', c]);
            }
        } else if Some(c) == escape {
            escaped = true;
        } else if in_brackets {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            in_brackets = c != ']';
        } else {
            match c {
                '[' => {
                    in_brackets = true;
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

#[cold]
fn too_many_separators() -> SqlError {
    SqlError::new(
        SqlState::INVALID_USE_OF_ESCAPE_CHARACTER,
        "SQL regular expression may not contain more than two escape-double-quote separators",
    )
}
