//! Unicode: normal forms and escapes.

use unicode_normalization::UnicodeNormalization;

use super::catalog::{BOOL, Proc, TEXT, proc};
use super::string::check_length;
use super::value::body;
use crate::error::{Result, SqlError, SqlState};

pub(super) static PROCS: &[Proc] = &[
    proc(4350, "normalize", &[TEXT, TEXT], TEXT, body!(|s: &str, form: &str| normalize(s, form))),
    // The grammar has the form as a word of its own, which may be left out.
    proc(0, "normalize", &[TEXT], TEXT, body!(|s: &str| normalize(s, "NFC"))),
    proc(
        4351,
        "is_normalized",
        &[TEXT, TEXT],
        BOOL,
        body!(|s: &str, form: &str| normalize(s, form).map(|normal| normal == s)),
    ),
    proc(6198, "unistr", &[TEXT], TEXT, body!(|s: &str| unistr(s))),
];

fn normalize(s: &str, form: &str) -> Result<String> {
    if s.is_ascii() && matches!(form.to_ascii_uppercase().as_str(), "NFC" | "NFD" | "NFKC" | "NFKD")
    {
        return Ok(s.to_owned());
    }
    let normal: String = match form.to_ascii_uppercase().as_str() {
        "NFC" => s.nfc().collect(),
        "NFD" => s.nfd().collect(),
        "NFKC" => s.nfkc().collect(),
        "NFKD" => s.nfkd().collect(),
        _ => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid normalization form: {form}"),
            ));
        }
    };
    check_length(normal.len())?;
    Ok(normal)
}

fn invalid_pair() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair")
}

/// The text with `\XXXX`, `\uXXXX`, `\+XXXXXX` and `\UXXXXXXXX` as the characters that they stand
/// for.
fn unistr(s: &str) -> Result<String> {
    let mut out = String::with_capacity(s.len());
    let mut rest = s;
    // The first half of a pair, if the last escape was one.
    let mut high: Option<u32> = None;
    while let Some(c) = rest.chars().next() {
        if c != '\\' || rest[1..].starts_with('\\') {
            if high.is_some() {
                return Err(invalid_pair());
            }
            out.push(c);
            rest = &rest[if c == '\\' { 2 } else { c.len_utf8() }..];
            continue;
        }
        let (code, after) = escape(&rest[1..])?;
        rest = after;
        match (high.take(), code) {
            (None, 0xd800..=0xdbff) => high = Some(code),
            (Some(first), 0xdc00..=0xdfff) => {
                let code = 0x10000 + ((first & 0x3ff) << 10) + (code & 0x3ff);
                out.push(char::from_u32(code).ok_or_else(invalid_pair)?);
            }
            (None, code) => out.push(char::from_u32(code).ok_or_else(invalid_pair)?),
            _ => return Err(invalid_pair()),
        }
    }
    if high.is_some() {
        return Err(invalid_pair());
    }
    Ok(out)
}

/// The number of an escape, behind its backslash, and what follows it.
fn escape(rest: &str) -> Result<(u32, &str)> {
    let (digits, rest) = match rest.as_bytes().first() {
        Some(b'u') => (4, &rest[1..]),
        Some(b'+') => (6, &rest[1..]),
        Some(b'U') => (8, &rest[1..]),
        _ => (4, rest),
    };
    let invalid = || {
        SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape")
            .hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    };
    let (number, after) = rest.split_at_checked(digits).ok_or_else(invalid)?;
    if !number.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(invalid());
    }
    let code = u32::from_str_radix(number, 16).map_err(|_| invalid())?;
    if code == 0 || code > 0x10_ffff {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid Unicode code point: {code:04X}"),
        ));
    }
    Ok((code, after))
}
