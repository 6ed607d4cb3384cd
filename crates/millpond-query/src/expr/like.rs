//! `LIKE`: `%` matches any characters, `_` one, and an escape character makes the next one itself.

use crate::error::{Result, SqlError, SqlState};

/// Whether a text matches a pattern. `escape` is a backslash, or nothing. Takes time proportional
/// to text times pattern at worst, and no stack.
pub(super) fn matches(text: &str, pattern: &str, escape: Option<char>) -> Result<bool> {
    let escape = escape.and_then(|c| u8::try_from(c).ok()).filter(u8::is_ascii);
    matches_with(text.as_bytes(), pattern.as_bytes(), escape, char_width)
}

/// What all texts begin with that match a pattern.
pub(crate) fn literal_prefix(pattern: &str) -> &str {
    // What a backslash makes itself is left out.
    let end = pattern.find(['%', '_', '\\']).unwrap_or(pattern.len());
    pattern.get(..end).unwrap_or_default()
}

/// Whether a byte string matches a pattern.
pub(super) fn matches_bytes(bytes: &[u8], pattern: &[u8]) -> Result<bool> {
    matches_with(bytes, pattern, Some(b'\\'), |_| 1)
}

/// `width` says how many bytes a character has, by its first byte.
fn matches_with(
    text: &[u8],
    pattern: &[u8],
    escape: Option<u8>,
    width: fn(u8) -> usize,
) -> Result<bool> {
    let (mut t, mut p) = (0, 0);
    // Where to go on when what follows the last `%` doesn't match: one character further.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match pattern.get(p) {
            Some(b'%') if escape != Some(b'%') => {
                p += 1;
                retry = Some((t, p));
                continue;
            }
            None if t == text.len() => return Ok(true),
            Some(&byte) if t < text.len() => {
                let width = width(text[t]);
                if Some(byte) == escape {
                    let Some(&literal) = pattern.get(p + 1) else { return Err(ends_with_escape()) };
                    if literal == text[t] {
                        (t, p) = (t + 1, p + 2);
                        continue;
                    }
                } else if byte == b'_' {
                    (t, p) = (t + width, p + 1);
                    continue;
                } else if byte == text[t] {
                    (t, p) = (t + 1, p + 1);
                    continue;
                }
            }
            _ => {}
        }
        match retry {
            Some((start, after)) if start < text.len() => {
                let next = start + width(text[start]);
                // A character that is itself can only match where it is.
                let skipped = match pattern.get(after) {
                    Some(byte) if !matches!(byte, b'%' | b'_') && Some(*byte) != escape => {
                        let rest = text.get(next..).unwrap_or_default();
                        let Some(skipped) = rest.iter().position(|other| other == byte) else {
                            return Ok(false);
                        };
                        skipped
                    }
                    _ => 0,
                };
                retry = Some((next + skipped, after));
                (t, p) = (next + skipped, after);
            }
            _ => return Ok(false),
        }
    }
}

#[cold]
fn ends_with_escape() -> SqlError {
    SqlError::new(
        SqlState::INVALID_ESCAPE_SEQUENCE,
        "LIKE pattern must not end with escape character",
    )
}

fn char_width(first: u8) -> usize {
    match first {
        0..=0xdf if first < 0x80 => 1,
        0xf0..=0xff => 4,
        0xe0..=0xef => 3,
        _ => 2,
    }
}

/// The pattern with a backslash wherever it has the escape character of an ESCAPE clause, and none
/// elsewhere.
pub(super) fn with_backslashes(pattern: &str, escape: &str) -> Result<String> {
    let escape = escape_char(escape)?;
    if escape == Some('\\') {
        return Ok(pattern.to_owned());
    }
    let mut out = String::with_capacity(pattern.len());
    let mut escaped = false;
    for c in pattern.chars() {
        if Some(c) == escape && !escaped {
            out.push('\\');
            escaped = true;
            continue;
        }
        if c == '\\' && !escaped {
            out.push('\\');
        }
        out.push(c);
        escaped = false;
    }
    Ok(out)
}

/// The same for byte strings.
pub(super) fn bytes_with_backslashes(pattern: &[u8], escape: &[u8]) -> Result<Vec<u8>> {
    let escape = match escape {
        [] => None,
        [byte] => Some(*byte),
        _ => return Err(invalid_escape()),
    };
    if escape == Some(b'\\') {
        return Ok(pattern.to_owned());
    }
    let mut out = Vec::with_capacity(pattern.len());
    let mut escaped = false;
    for &byte in pattern {
        if Some(byte) == escape && !escaped {
            out.push(b'\\');
            escaped = true;
            continue;
        }
        if byte == b'\\' && !escaped {
            out.push(b'\\');
        }
        out.push(byte);
        escaped = false;
    }
    Ok(out)
}

#[cold]
fn invalid_escape() -> SqlError {
    SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
        .hint("Escape string must be empty or one character.")
}

/// The escape character that an ESCAPE clause names.
pub(super) fn escape_char(text: &str) -> Result<Option<char>> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (first, None) => Ok(first),
        _ => Err(invalid_escape()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rule itself: characters against the pattern, one by one.
    fn naive(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skipped| naive(&text[skipped..], rest)),
            ['_', rest @ ..] => !text.is_empty() && naive(&text[1..], rest),
            ['\\', literal, rest @ ..] | [literal, rest @ ..] => {
                text.first() == Some(literal) && naive(&text[1..], rest)
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn patterns_match_by_the_rule(
            text in "[aö€%]{0,8}",
            pattern in "([aö€]|%|_|\\\\[aö€%_]){0,6}",
        ) {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let wanted = naive(&chars(&text), &chars(&pattern));
            prop_assert_eq!(matches(&text, &pattern, Some('\\')).unwrap(), wanted);
            if text.is_ascii() && pattern.is_ascii() {
                let found = matches_bytes(text.as_bytes(), pattern.as_bytes()).unwrap();
                prop_assert_eq!(found, wanted);
            }
        }
    }
}
